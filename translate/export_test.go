package translate

// InOrder answers offsets one after the other in one reading, as batches do,
// but in whatever order they come.
func InOrder(b Books, offsets []int64, reverse bool) ([]Result, error) {
	d := forwards()
	if reverse {
		d = backwards()
	}
	var s reading
	if _, err := s.open(b); err != nil {
		return nil, err
	}
	results := make([]Result, len(offsets))
	for i, offset := range offsets {
		if err := s.answer([]question{{offset, i}}, d, func(i int, r Result) { results[i] = r }); err != nil {
			return nil, err
		}
	}
	return results, nil
}
