package verify

// afford lets go of the next part of a job, or of its end, if there are no bytes
// left for it, and counts what is not read. An entry is begun as long as there
// are bytes left.
func (r *run) afford(j *job) error {
	if r.config.MaxBytes == 0 || len(j.parts) == 0 {
		return nil
	}
	skipped := unaffordable()
	p := &j.parts[0]
	cut, err := r.pay(j, p)
	switch {
	case err != nil:
		return err
	case cut == p.to && !(r.spent() && p.from == p.to):
		return nil
	case cut == p.from:
		err = j.skip(j.parts, skipped, r.config.Until)
		j.parts = nil
	default:
		rest := *p
		p.to, p.last, rest.from = cut, false, cut
		if err = j.books.surround(p, r.grain().context); err == nil {
			err = j.skip(append([]part{rest}, j.parts[1:]...), skipped, r.config.Until)
		}
		j.parts = j.parts[:1]
	}
	skipped.note(j)
	return err
}

// pay takes the bytes of a part, and returns up to where there are enough.
func (r *run) pay(j *job, p *part) (mark, error) {
	sides := int64(0)
	for _, s := range []*side{&j.source, &j.target} {
		if s.known && s.unreadable() == nil {
			sides++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	torn := true
	for e, err := range j.books.entries(p.lead.source) {
		switch {
		case err != nil:
			return p.from, err
		case p.before(&e):
			continue
		case p.behind(&e):
			return p.to, nil
		}
		inside := e.Source.Start >= p.from.source && (p.last || e.Source.Start < p.to.source)
		if inside && torn && r.left <= 0 {
			return mark{e.Source.Start, e.Target.Start}, nil
		}
		r.left -= sides * e.Bytes
		torn = !e.Source.Empty()
	}
	return p.to, nil
}

// spent reports whether no bytes are left.
func (r *run) spent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left <= 0
}

// skip counts parts as not read.
func (j *job) skip(parts []part, skipped *skipping, until Until) error {
	for i := range parts {
		s, err := j.books.stretch(parts[i].from, parts[i].to)
		if err != nil {
			return err
		}
		skipped.add(&s)
		if parts[i].last {
			skipped.skipTail(j, until)
		}
	}
	return nil
}
