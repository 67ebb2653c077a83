package ledger

// stub: in memory only
var madeStub = map[string]map[string]string{}

func (l *Ledger) MadeTopic(name string, id TopicID) (map[string]string, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	m, ok := madeStub[l.path+name+id.String()]
	return m, ok
}

func (l *Ledger) SetMade(name string, id TopicID, settings map[string]string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	madeStub[l.path+name+id.String()] = settings
	return nil
}
