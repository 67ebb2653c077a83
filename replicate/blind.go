package replicate

import (
	"errors"
	"fmt"

	"apograph/ledger"
)

// What is gone from the target's log is known to be ours by its place and by the
// sequence numbers behind it. That it was what the source has there now is not:
// the source may have been cut since. A record of ours behind it tells, as the two
// go together there, or do not.

// A blindRun is what an adoption has matched by place alone. It gets into the books
// once a record behind it was compared and is equal, and not before.
type blindRun struct {
	target ledger.Range // up to the first offset of others
	held   []func() error
}

// errAgain says that the adoption is to begin again, from the books.
var errAgain = errors.New("to be begun again")

// blindly notes that the next record is matched by its place. Where the source has
// it under the leader epoch that the books have as their last, it is the one that
// was copied: an epoch's offsets are written once (KIP-101).
func (a *adoption) blindly(p *partition) error {
	u := a.queue[0]
	switch {
	case a.blind != nil && len(a.blind.held) >= adoptionWindow:
		return a.unconfirmed(p, StopTargetLostRecords, "too much is gone for it to be compared")
	case a.blind == nil && a.epoch >= 0 && u.entry.LeaderEpoch == a.epoch:
		return nil
	case a.blind == nil:
		if err := a.flush(p); err != nil {
			return err
		}
		a.blind = &blindRun{target: ledger.Range{Start: a.at, End: a.at}}
	}
	if a.blind.target.End == a.at {
		a.blind.target.End = a.at + 1
	}
	return nil
}

// later has something done once what is matched blindly is confirmed: at once if
// nothing is.
func (a *adoption) later(do func() error) error {
	if a.blind == nil {
		return do()
	}
	a.blind.held = append(a.blind.held, do)
	return nil
}

// confirmed books what was matched blindly: the next record is equal on both sides.
func (a *adoption) confirmed(p *partition) error {
	if a.blind == nil {
		return nil
	}
	if err := a.flush(p); err != nil {
		return err
	}
	held := a.blind.held
	a.blind = nil
	for _, do := range held {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// unconfirmed deals with what was matched blindly and is not known to be what the
// source has. It is nobody's copy: once a person has accepted it, it is ours without
// a source, and the source's records are copied in their turn.
func (a *adoption) unconfirmed(p *partition, reason StopReason, why string) error {
	r := a.blind.target
	if b, err := a.peek(0); err != nil {
		return err
	} else if b != nil && b.base > a.at && r.End == a.at {
		r.End = b.base
	}
	accepted, order := a.cutKnown, "--accept-truncated"
	if reason == StopTargetLostRecords {
		accepted, order = a.holeKnown, "--recopy"
	}
	if !accepted {
		return &tailError{reason, fmt.Sprintf("target offsets [%d, %d) behind the books are gone from its log before they could be compared, and %s; to copy again what the source has there: resume %s",
			r.Start, r.End, why, order)}
	}
	a.blind, a.note = nil, ledger.Range{}
	if reason == StopSourceTruncated {
		if err := p.carriedOutCut(); err != nil {
			return err
		}
	}
	if err := p.enterNote(ledger.Entry{Tile: ledger.Orphan, Target: r}); err != nil {
		return err
	}
	return errAgain
}
