package replicate

import (
	"context"

	"apograph/internal/mirror"
)

// A FailedDuty is one that could not be done beside the copying.
type FailedDuty struct {
	Duty  string // such as offset_syncs
	Error string // one line
}

// startMirror makes ready what is written for the clients of MirrorMaker 2.
// Nothing is asked of a cluster yet.
func (f *Flow) startMirror() (err error) {
	if f.config.Mirror.IsZero() {
		return nil
	}
	f.mirror, err = mirror.Start(f.outer, mirror.Config{
		Source: f.config.Source, Target: f.config.Target, Ledger: f.ledger, Topics: f.rules,
		Settings: f.config.Mirror, Translate: f.translator(), Logger: f.config.Logger, Now: f.config.Now,
	})
	return err
}

// Groups returns where the consumer groups of the flow are, as [mirror.Mirror.Groups]
// does.
func (f *Flow) Groups() mirror.GroupsStatus {
	if f.mirror == nil {
		return mirror.GroupsStatus{Lag: -1}
	}
	return f.mirror.Groups()
}

// Duties returns how the duties of the flow fare, as [mirror.Mirror.Duties] does.
func (f *Flow) Duties() []mirror.DutyStatus {
	if f.mirror == nil {
		return nil
	}
	return f.mirror.Duties()
}

func (f *Flow) translator() mirror.Translator {
	if f.config.Translator == nil {
		return nil
	}
	return f.config.Translator(f.ledger)
}

// mirrorOnce does once what else is to be done when all has been copied.
func (f *Flow) mirrorOnce(ctx context.Context) (failed []FailedDuty) {
	if f.mirror == nil {
		return nil
	}
	for _, err := range f.mirror.Once(ctx) {
		f.config.Logger.Error("the duty could not be done", "duty", err.Duty, "error", err.Err)
		failed = append(failed, FailedDuty{err.Duty, err.Err.Error()})
	}
	return failed
}
