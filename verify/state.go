package verify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"apograph/internal/canon"
	"apograph/ledger"
)

// StatePath returns where the state of verifications of a ledger lies: beside
// it.
func StatePath(ledgerPath string) string { return ledgerPath + ".verify" }

// stateHead begins the first line of a state file. Behind it stand the hash of
// the rest as 16 hex digits and a newline; the rest is one JSON document.
const stateHead = "apograph verify state 1 "

// saveInterval is how often the state is written while a run goes on.
const saveInterval = 5 * time.Second

// A proofKey says what a list of proofs is about.
type proofKey struct {
	Topic      string        `json:"topic"`
	Partition  int32         `json:"partition"`
	Generation int32         `json:"generation"`
	Pair       ledger.PairID `json:"pair"`
	Mode       Mode          `json:"mode"`
}

// topicIDs say which logs were read: the ids of the topics, and the leader epochs
// of the partitions, as the clusters said; of the source only in mode full. A log
// is only ever cut when its leader changes, so that under the same epoch it still
// holds what was read, or has lost it to retention or compaction. Under another
// one nothing is taken for granted.
type topicIDs struct {
	Source      string `json:"source_topic_id"`
	Target      string `json:"target_topic_id"`
	SourceEpoch int32  `json:"source_leader_epoch"`
	TargetEpoch int32  `json:"target_leader_epoch"`
}

// A pairState is what is proven of one pair in one mode.
type pairState struct {
	Key    proofKey `json:"key"`
	IDs    topicIDs `json:"ids"`
	Proofs []proof  `json:"proofs"` // in order, none overlap
}

// A stateDocument is what a state file holds.
type stateDocument struct {
	LedgerID   string      `json:"ledger_id"`
	LastCommit Time        `json:"last_commit"` // of the ledger, as it was verified last
	Pairs      []pairState `json:"pairs"`
}

// A proven is what is proven of a ledger, and the file in which that is kept. It
// is safe for concurrent use.
type proven struct {
	path string
	now  func() time.Time

	mu       sync.Mutex // guards all below
	ledgerID string
	commit   time.Time
	pairs    map[proofKey]pairState
	saved    time.Time
	dirty    bool
	failed   error // of the last attempt to write
}

// A strangeError says that a file is no state of a verification.
type strangeError struct{ path string }

func (e *strangeError) Error() string {
	return fmt.Sprintf("%s is there and is no state of a verification: move it away", e.path)
}

// openProven reads the state beside a ledger. Unusable says why what is there is
// not used; it stays until there is something to put in its place. The error is a [*strangeError], or that of
// reading.
func openProven(ledgerPath string, l *ledger.Ledger, now func() time.Time) (p *proven, unusable string, err error) {
	p = &proven{
		path: StatePath(ledgerPath), now: now, saved: now(),
		ledgerID: l.Identity().LedgerID, commit: l.CommitTime(), pairs: map[proofKey]pairState{},
	}
	raw, err := os.ReadFile(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.dirty = true
		return p, "", nil
	case err != nil:
		return nil, "", err
	case len(raw) > 0 && !bytes.HasPrefix(raw, []byte(stateHead)):
		return nil, "", &strangeError{p.path}
	}
	d, ok := parseState(raw)
	switch {
	case !ok:
		return p, "it is damaged", nil
	case d.LedgerID != p.ledgerID:
		return p, "it is about another ledger, " + d.LedgerID, nil
	case d.LastCommit.After(p.commit):
		return p, "the ledger is an older state of what was verified", nil
	}
	for _, s := range d.Pairs {
		p.pairs[s.Key] = s
	}
	p.dirty = true // so that it is known at once whether it can be written
	return p, "", nil
}

// parseState returns what a state file holds; ok is false if it is damaged.
func parseState(raw []byte) (d stateDocument, ok bool) {
	head, body, ok := bytes.Cut(raw, []byte("\n"))
	if !ok || string(head) != stateHead+fmt.Sprintf("%016x", canon.Sum(body)) {
		return d, false
	}
	if json.Unmarshal(body, &d) != nil {
		return d, false
	}
	for i := range d.Pairs {
		if !d.Pairs[i].valid() {
			return d, false
		}
	}
	return d, true
}

// valid reports whether the proofs are in order and make sense.
func (s *pairState) valid() bool {
	end := int64(0)
	for i := range s.Proofs {
		p := &s.Proofs[i]
		if p.Source.Start < end || p.Source.End <= p.Source.Start || p.Target.End < p.Target.Start || p.Records < 0 {
			return false
		}
		if n := p.Found; n != nil && n.Counts.Equal+n.Counts.Missing+n.Counts.Changed+n.Counts.Reordered+n.Counts.NotVerified != p.Records {
			return false
		}
		end = p.Source.End
	}
	return true
}

// get returns what is proven of a pair.
func (p *proven) get(key proofKey) pairState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pairs[key]
}

// put replaces what is proven of a pair, and writes the file from time to time.
func (p *proven) put(key proofKey, ids topicIDs, proofs []proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pairs[key] = pairState{key, ids, slices.Clone(proofs)}
	p.dirty = true
	if p.now().Sub(p.saved) >= saveInterval {
		p.write()
	}
}

// save writes the file if there is something new.
func (p *proven) save() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dirty {
		p.write()
	}
	return p.failed
}

// write writes the file; mu is held. After an error it is tried again later.
func (p *proven) write() {
	p.saved = p.now()
	raw, err := p.encode()
	if err == nil {
		err = replaceFile(p.path, raw)
	}
	p.dirty = err != nil
	if p.failed = err; err != nil {
		p.failed = fmt.Errorf("keep what is proven: %w", err)
	}
}

func (p *proven) encode() ([]byte, error) {
	d := stateDocument{LedgerID: p.ledgerID, LastCommit: Time{p.commit}, Pairs: []pairState{}}
	for _, s := range p.pairs {
		d.Pairs = append(d.Pairs, s)
	}
	slices.SortFunc(d.Pairs, func(a, b pairState) int {
		return cmp.Or(cmp.Compare(a.Key.Topic, b.Key.Topic), cmp.Compare(a.Key.Partition, b.Key.Partition),
			cmp.Compare(a.Key.Pair, b.Key.Pair), cmp.Compare(a.Key.Mode, b.Key.Mode))
	})
	body, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%s%016x\n", stateHead, canon.Sum(body)), body...), nil
}

// replaceFile puts a file in the place of another, so that a crash leaves the one
// or the other.
func replaceFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDirectory(filepath.Dir(path))
}

// syncDirectory makes a rename durable. Windows has no such call.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
