package ledger

import "sync"

// stub: in memory only
var (
	madeMu   sync.RWMutex // guards madeStub, which all ledgers of the process share
	madeStub = map[string]map[string]string{}
)

func (l *Ledger) MadeTopic(name string, id TopicID) (map[string]string, bool) {
	madeMu.RLock()
	defer madeMu.RUnlock()
	m, ok := madeStub[l.path+name+id.String()]
	return m, ok
}

func (l *Ledger) SetMade(name string, id TopicID, settings map[string]string) error {
	madeMu.Lock()
	defer madeMu.Unlock()
	madeStub[l.path+name+id.String()] = settings
	return nil
}
