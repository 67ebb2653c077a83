package replicate_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// TestFetchRefusedAsAWhole: a broker that answers fetches with nothing but an
// error is asked with pauses, whether its partitions are behind or wait; they
// stop as unavailable, and go on when the broker does.
func TestFetchRefusedAsAWhole(t *testing.T) {
	for _, behind := range []bool{false, true} {
		t.Run(fmt.Sprintf("behind %v", behind), func(t *testing.T) {
			t.Parallel()
			refuseFetches(t, behind)
		})
	}
}

func refuseFetches(t *testing.T, behind bool) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	var refuse atomic.Bool
	var refused atomic.Int64
	fake := pair.Source.Fake()
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if !refuse.Load() {
			return nil, nil, false
		}
		refused.Add(1)
		response := r.ResponseKind().(*kmsg.FetchResponse)
		response.ErrorCode = kerr.UnknownServerError.Code
		return response, nil, true
	})
	config := livingConfig(t, pair, "t")
	config.UnavailableAfter = 300 * time.Millisecond
	refuse.Store(behind)
	l := live(t, pair, config)
	if !behind {
		l.at("t", 0, 5)
		refuse.Store(true)
	}
	l.stopped("t", 0, replicate.StopUnavailable)
	if n := refused.Load(); n == 0 || n > 500 { // one in 100 ms, until the flow looks
		t.Errorf("%d fetches were refused", n)
	}
	refuse.Store(false)
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	l.at("t", 0, 10)
	l.end()
}

// TestBatchInFlightIsNotForgotten: a partition that waits for its source's
// leader, in vain many times, keeps the batch whose answer is still to come.
func TestBatchInFlightIsNotForgotten(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	l := live(t, pair, livingConfig(t, pair, "t"))
	l.at("t", 0, 0)
	gate := make(chan struct{})
	produce := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.Produce, Topic: "t", Count: 1, Gate: gate})
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	if err := produce.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	fetch := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Fetch, Count: -1, Err: kerr.OffsetOutOfRange})
	if err := fetch.Wait(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
	close(gate)
	fetch.Remove()
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	l.at("t", 0, 10)
	l.end()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, l.config.LedgerPath, "t")
}
