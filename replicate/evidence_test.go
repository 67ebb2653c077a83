package replicate_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// TestRefusedBatchIsSplitInOrder: a batch that the target will not take is halved
// until what is refused is taken, and its parts arrive in order.
func TestRefusedBatchIsSplitInOrder(t *testing.T) {
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 16)...)
	refused := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "t", Count: 3, Err: kerr.MessageTooLarge})
	got := mustComplete(t, pair, configFor(t, pair, "t"))
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 16})
	if refused.Hits() != 3 {
		t.Errorf("%d batches were refused", refused.Hits())
	}
}

// TestForgottenWhileFollowersLag: a batch is in the leader's log, not replicated
// yet, and the answer says that nobody knows; meanwhile the leader forgets the
// producer. Whoever takes the high watermark for the log's end writes it again.
func TestForgottenWhileFollowersLag(t *testing.T) {
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	release, err := pair.Target.HoldHighWatermark("t", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	produced := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.Produce, Count: -1, Delay: 1})
	asked := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.ListOffsets, Count: -1, Delay: 1})
	done := make(chan error, 1)
	go func() {
		defer release()
		_ = produced.Wait(t.Context(), 1)
		_ = asked.Wait(t.Context(), asked.Hits()+3)
		done <- pair.Target.ForgetProducers("t", 0)
		_ = asked.Wait(t.Context(), asked.Hits()+40) // time enough to write it again
	}()
	config := configFor(t, pair, "t")
	config.ProduceTimeout = 100 * time.Millisecond
	got := mustComplete(t, pair, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 10})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestEndOffsetAloneIsNoTruncation: after an election a leader may not know yet
// how far its log is replicated, and say that it ends below the position. Nothing
// is cut, and nothing stops.
func TestEndOffsetAloneIsNoTruncation(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	config := livingConfig(t, pair, "t")
	config.RetryAfter = time.Hour // a partition that stops stays stopped
	l := live(t, pair, config)
	l.at("t", 0, 10)
	release, err := pair.Source.HoldHighWatermark("t", 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	unknown := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Fetch, Topic: "t", Count: 3, Err: kerr.OffsetOutOfRange})
	if err := unknown.Wait(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	release()
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 5)...)
	l.at("t", 0, 15)
	l.end()
}

// TestProducerIDIsDurableBeforeItsUse: each producer id under which a batch
// arrives at the target is in the ledger's file by then. Else a copier that dies
// would leave records that the next one takes for somebody else's.
func TestProducerIDIsDurableBeforeItsUse(t *testing.T) {
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	config := configFor(t, pair, "t")
	var mu sync.Mutex
	seen := map[int64]bool{}
	look := func(request kmsg.Request) bool {
		batch := request.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records
		id := int64(binary.BigEndian.Uint64(batch[43:]))
		mu.Lock()
		defer mu.Unlock()
		if !seen[id] && !durable(t, config.LedgerPath, id) {
			t.Errorf("a batch arrives under producer id %d, which is not in the ledger", id)
		}
		seen[id] = true
		return false
	}
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.Produce, Count: -1, When: look})
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "t", Count: 3, Err: kerr.OutOfOrderSequenceNumber})
	mustComplete(t, pair, config)
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 2 {
		t.Errorf("%d producer ids, want one and its successor", len(seen))
	}
}

// durable reports whether a copy of a ledger's file knows a producer id.
func durable(t *testing.T, path string, id int64) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return false
	}
	copied := filepath.Join(t.TempDir(), "copy.ledger")
	if err := os.WriteFile(copied, data, 0o600); err != nil {
		t.Error(err)
		return false
	}
	l, err := ledger.Open(copied, ledger.Options{ReadOnly: true})
	if err != nil {
		t.Error(err)
		return false
	}
	defer l.Close()
	for _, p := range l.Pairs() {
		for _, producer := range l.Producers(p.ID) {
			if producer.ID == id {
				return true
			}
		}
	}
	return false
}
