package replicate

import "time"

// duties are what a flow does for topics beside copying them, and when it last
// did.
type duties struct {
	settings, acls time.Time
}

// doDuties does what is due for topics.
func (f *Flow) doDuties(topics []*topic) {
	now := f.now()
	if due(&f.duties.settings, now, f.config.Settings.Interval) {
		f.keepSettings(topics)
	}
	f.lookForDrift(topics)
	if f.config.ACLs.Enabled && due(&f.duties.acls, now, f.config.ACLs.Interval) {
		f.syncACLs()
	}
}

// due reports whether so long has passed since the last time, which is now then.
func due(last *time.Time, now time.Time, every time.Duration) bool {
	if !last.IsZero() && now.Sub(*last) < every {
		return false
	}
	*last = now
	return true
}
