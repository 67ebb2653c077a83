package translate

// InOrder answers offsets one after the other in one reading, as batches do,
// but in whatever order they come.
func InOrder(b Books, offsets []int64, reverse bool) ([]Result, error) {
	d := forwards()
	if reverse {
		d = backwards()
	}
	s, _, err := open(b)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(offsets))
	for i, offset := range offsets {
		if err := s.answer([]question{{offset, i}}, d, results); err != nil {
			return nil, err
		}
	}
	return results, nil
}
