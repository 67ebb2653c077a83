package verify

import (
	"cmp"
	"fmt"
)

// An outage is that a whole cluster has gone away.
type outage struct {
	side string // "source" or "target"
	err  error  // a connect.UnreachableError
}

func (o *outage) Error() string { return o.err.Error() }
func (o *outage) Unwrap() error { return o.err }

// A cause says why a side could not be read somewhere. What follows from it in
// one partition is one finding, however many parts are concerned.
type cause struct {
	reason Reason
	text   string
	unverified
}

// adopt adds what a cause concerns to what is known of it.
func (j *job) adopt(c cause) {
	for i := range j.causes {
		if old := &j.causes[i]; old.reason == c.reason && old.text == c.text {
			old.extend(&c.unverified)
			return
		}
	}
	j.causes = append(j.causes, c)
}

// reportCauses reports all causes.
func (j *job) reportCauses() {
	for i := range j.causes {
		c := &j.causes[i]
		text := c.text
		if c.records > 0 {
			text = unverifiedText(c.records) + c.text
		}
		j.findings.note(NotVerified, c.reason, &c.source, &c.target, "%s", text)
	}
}

// abandon counts a part as not verified, because a cluster has gone away.
func (j *job) abandon(p *part, lost *outage, until Until) error {
	s, err := j.books.stretch(p.from, p.to)
	if err != nil {
		return err
	}
	j.row.NotVerified += s.records
	j.adopt(cause{Unreadable, lost.Error(), unverified{s.records, Range{s.from.source, s.to.source}, Range{s.from.target, s.to.target}}})
	if p.last && until == UntilBook {
		j.row.AfterBook = j.beyond()
	}
	return nil
}

// extend adds what lies beside, before or behind.
func (u *unverified) extend(v *unverified) {
	u.records += v.records
	u.source = Range{min(u.source.Start, v.source.Start), max(u.source.End, v.source.End)}
	u.target = Range{min(u.target.Start, v.target.Start), max(u.target.End, v.target.End)}
}

// findCauses takes together why each side could not be read and which records
// that concerns; it is told even if no copied record is concerned. What was not
// read is proven by no one.
func (j *judge) findCauses(b *books, source, target *stream) {
	for _, side := range []struct {
		name  string
		log   *stream
		start func(u *unverified) int64
	}{
		{"source", source, func(u *unverified) int64 { return u.source.Start }},
		{"target", target, func(u *unverified) int64 { return u.target.Start }},
	} {
		broken := j.brokenIn(b, side.name, side.log)
		for _, reason := range []Reason{Moving, Unreadable} {
			u := j.unverified[lack{reason, side.name}]
			own := broken != nil && (broken.reason == reason || reason == Unreadable && broken.reason == NotRead)
			text := "the " + side.name + " could not be read there"
			switch {
			case u == nil && !own:
				continue
			case own && (u == nil || side.start(u) >= broken.offset):
				text = fmt.Sprintf("the %s partition could not be read from offset %d on: %v", side.name, broken.offset, broken.err)
			case own:
				text += fmt.Sprintf("; from offset %d on: %v", broken.offset, broken.err)
			case reason == Moving:
				text = "the " + side.name + "'s log was cut while it was read"
			}
			if u == nil {
				u = j.behindBreak(side.name, broken.offset)
			}
			if own {
				reason = broken.reason
			}
			j.causes = append(j.causes, cause{reason, text, *u})
			j.in.findings.unread, j.in.findings.open = true, true
		}
	}
}

// brokenIn returns why a side could not be read to the end of the part, nil if it
// could. Where there are no records at all it counts that none could be read.
func (j *judge) brokenIn(b *books, side string, log *stream) *readError {
	if log == nil {
		return nil
	}
	broken, end := log.broken(), j.part.to.target
	start := b.pair.TargetBase
	if side == "source" {
		end, start = j.part.to.source, b.pair.ScopeStart
	}
	if j.part.last {
		end = max(end, start+1)
	}
	if broken == nil || broken.offset >= end {
		return nil
	}
	return broken
}

// behindBreak returns what lies behind the place from which a side could not be
// read, where no copied record does.
func (j *judge) behindBreak(side string, offset int64) *unverified {
	p := &j.part
	from := mark{p.to.source, p.to.target}
	if side == "source" {
		from.source = min(max(offset, p.from.source), p.to.source)
	} else {
		from.target = min(max(offset, p.from.target), p.to.target)
	}
	return &unverified{source: Range{from.source, p.to.source}, target: Range{from.target, p.to.target}}
}

// A lack is why records are not verified, and on which side, if that is one.
type lack struct {
	reason Reason
	side   string
}

// unverifiedText begins what is said of records that could not be compared.
func unverifiedText(records int64) string {
	return counted(records, "copied record") + " could not be compared: "
}

func lackText(reason Reason) string {
	switch reason {
	case Retention:
		return "they lie below the log start of the source or the target"
	case Compaction:
		return "compaction has removed them from the source or the target"
	default:
		return "the digest of their entry covers others as well, and the source was not read"
	}
}

// vanish takes a record of a target that holds nothing at all of what it should
// hold: all of that is one finding.
func (j *judge) vanish(u *unit, k int) {
	v := &unverified{source: *one(u.slots[k].source), target: *one(u.booked(k))}
	if u.note() {
		v.source = *at(u.entry.Source.Start)
	} else {
		v.records = 1
		j.counts.Missing++
	}
	if j.vanished == nil {
		j.vanished = v
		return
	}
	j.vanished.extend(v)
}

// reportVanished reports what vanish has taken.
func (t *tally) reportVanished(nothing, renamed string) {
	if v := t.vanished; v != nil {
		t.findings.fault(Missing, &v.source, &v.target, "%s%s", cmp.Or(nothing, "not on the target"), renamed)
	}
}
