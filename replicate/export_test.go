package replicate

// HeldBytes returns how many bytes of record batches the flow holds: fetched,
// or reserved for a fetch, and not yet in the books. It may be called once the
// flow has a partition at work.
func (f *Flow) HeldBytes() (n int64) {
	for _, b := range []*budget{f.reader.budget, f.reader.tailBudget} {
		b.mu.Lock()
		n += b.used
		b.mu.Unlock()
	}
	return n
}
