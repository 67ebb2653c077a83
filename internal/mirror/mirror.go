package mirror

import (
	"context"
	"slices"
	"sync"
)

// A Mirror is the duties of one flow.
type Mirror struct {
	config Config
	duties []*duty
	board  *board   // of groups; nil: no duty is about groups
	close  []func() // what the duties hold
}

// A DutyError says that a duty could not be done.
type DutyError struct {
	Duty string // such as offset_syncs
	Err  error
}

func (e *DutyError) Error() string { return e.Duty + ": " + e.Err.Error() }
func (e *DutyError) Unwrap() error { return e.Err }

// Start returns the duties of a flow, of which none is begun: [Mirror.Run] or
// [Mirror.Once] does. No cluster is dialed. The caller calls Close when they have
// returned.
func Start(ctx context.Context, config Config) (*Mirror, error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	m := &Mirror{config: config}
	m.addOffsetSyncs()
	m.addHeartbeats()
	m.addGroups()
	return m, nil
}

// Run does what is due until ctx ends.
func (m *Mirror) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, d := range m.duties {
		group.Go(func() { d.run(ctx) })
	}
	group.Wait()
}

// Once does each duty once, at the end of a copy that has one, and returns the
// errors of those that could not be done. Heartbeats on the source of a flow are left
// out, and topics of heartbeats in which there is to be nothing: the copy would lack
// them.
func (m *Mirror) Once(ctx context.Context) []*DutyError {
	failed := make([]*DutyError, len(m.duties))
	var group sync.WaitGroup
	for i, d := range m.duties {
		if d.lives {
			continue
		}
		do := d.do
		if d.once != nil {
			do = d.once
		}
		group.Go(func() {
			if err := d.try(ctx, do); err != nil {
				failed[i] = &DutyError{d.name, err}
			}
		})
	}
	group.Wait()
	return slices.DeleteFunc(failed, func(err *DutyError) bool { return err == nil })
}

// Close ends the connections.
func (m *Mirror) Close() {
	for _, close := range m.close {
		close()
	}
}

// add adds a duty.
func (m *Mirror) add(d *duty) {
	if d.logger == nil {
		d.logger = m.config.Logger.With("duty", d.name)
	}
	d.now, d.status = m.config.Now, DutyStatus{Duty: d.name, Pair: d.pair, Took: -1}
	m.duties = append(m.duties, d)
}

// Duties returns how each duty fares, in the order in which they were added. Those
// that were not done yet are among them.
func (m *Mirror) Duties() []DutyStatus {
	all := make([]DutyStatus, 0, len(m.duties))
	for _, d := range m.duties {
		d.mu.Lock()
		all = append(all, d.status)
		d.mu.Unlock()
	}
	return all
}
