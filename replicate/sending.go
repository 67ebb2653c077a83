package replicate

import (
	"errors"

	"apograph/internal/recordbatch"
)

// refused deals with a batch that the target will not take as it is: it is
// split until the record at fault stands alone. A batch that does not have its
// own checksum any more was damaged in our memory, which is why it was refused:
// it is fetched again, and never encoded anew.
func (p *partition) refused(a answer) {
	u := p.win.head()
	if u == nil {
		p.win.resume()
		return
	}
	t := p.flow.tools()
	defer p.flow.giveBack(t)
	err := checkBatch(u)
	if err == nil && u.records == 1 && u.recoded {
		p.haltAt(u.entry.Source.Start, a.stop, p.flow.explainRefusal(p, u, a))
		return
	}
	var parts []*unit
	size := len(u.batch)
	if err == nil {
		parts, err = t.halve(u)
	}
	switch {
	case errors.Is(err, errDamaged):
		p.flow.config.Logger.Error("a batch was damaged in memory; it is fetched again", "partition", p.source.String(),
			"offset", u.entry.Source.Start, "error", err)
		if p.backoff(err.Error()) {
			p.restart()
		}
		return
	case err != nil:
		p.haltAt(u.entry.Source.Start, StopCorruptSourceBatch, err.Error())
		return
	}
	if a.stop == StopRecordTooLarge && u.recoded {
		p.asm.joinAtMost(size / 2)
	}
	for _, part := range parts {
		part.stale = p.flow.stale(part.maxTimestamp)
		p.flow.reader.hold(part)
	}
	p.win.split(parts...)
}

// send hands u to the target's leader.
func (p *partition) send(u *unit) {
	recordbatch.Patch(u.batch, p.producer.ID, p.producer.Epoch, u.sequence)
	p.flow.writer.send(p, u)
}

// admit gives u to the window, in pieces if the target would not take it whole.
func (p *partition) admit(u *unit) {
	if limit := p.topic.facts.Load().target.maxBatchBytes(); len(u.batch) > limit && u.records > 1 {
		parts, err := p.asm.tools.halve(u)
		if err != nil {
			u.release()
			p.haltAt(u.entry.Source.Start, StopCorruptSourceBatch, err.Error())
			return
		}
		for _, part := range parts {
			p.admit(part)
		}
		return
	}
	u.stale = p.flow.stale(u.maxTimestamp)
	if u.stale && p.flow.target.distance.far() {
		p.flow.warnOfStaleness()
	}
	p.flow.reader.hold(u)
	p.win.add(u)
}
