package mirror

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/internal/mm2"
)

// beatsOf returns the heartbeats on a cluster, and checks that each record has the
// time that it tells.
func beatsOf(t *testing.T, b kafkatest.Bootstrap) (all []mm2.Heartbeat) {
	t.Helper()
	for _, r := range records(t, b, "heartbeats") {
		h, err := mm2.ParseHeartbeat(r.Key, r.Value)
		if err != nil || h.Timestamp != r.Timestamp.UnixMilli() || len(r.Headers) > 0 {
			t.Errorf("%+v: %+v %v", r, h, err)
		}
		all = append(all, h)
	}
	return all
}

func bothWays(interval time.Duration) Settings {
	return Settings{Heartbeats: []Heartbeats{{Source: "A", Target: "B", Interval: interval}, {Source: "B", Target: "A", OnSource: true, Interval: interval}}}
}

// TestHeartbeats: one each interval, the first after one, on the cluster that its
// key says; through a time in which the cluster takes none.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worldOn(t, kafkatest.Options{Network: new(kfake.VirtualNetwork)}, bothWays(2*time.Second))
		m := w.start()
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); m.Run(ctx) }()
		<-time.After(9 * time.Second)
		fault := w.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "heartbeats", Err: kerr.TopicAuthorizationFailed, Count: -1})
		<-time.After(20 * time.Second)
		if hits := fault.Hits(); hits < 2 || hits > 6 {
			t.Errorf("tried %d times in 20 s", hits)
		}
		if n := w.log.times("it will be tried again"); n != 1 {
			t.Errorf("said %d times that it is not done", n)
		}
		fault.Remove()
		<-time.After(20 * time.Second)
		if n := w.log.times("the duty is done again"); n != 1 {
			t.Errorf("said %d times that it is done again", n)
		}
		cancel()
		<-ended
		m.Close()
		for alias, c := range map[string]*kafkatest.Cluster{"A": w.Source, "B": w.Target} {
			beats := beatsOf(t, c.Bootstrap)
			want := map[string]int{"A": 24, "B": 9}[alias]
			if len(beats) < want-1 || len(beats) > want+4 {
				t.Errorf("%d beats on %s, want %d", len(beats), alias, want)
			}
			if after := beats[0].Timestamp - began.UnixMilli(); after < 2000 || after > 2500 {
				t.Errorf("the first beat on %s came after %d ms", alias, after)
			}
			for i, h := range beats {
				if h.Target != alias || h.Source == alias || i < 4 && h.Timestamp/1000 != beats[0].Timestamp/1000+2*int64(i) {
					t.Errorf("beat %d on %s: %+v, the first at %d", i, alias, h, beats[0].Timestamp)
				}
			}
		}
	})
}

// TestHeartbeatsAtTheEnd: a copy that has an end writes one to its target, and
// none to its source.
func TestHeartbeatsAtTheEnd(t *testing.T) {
	w := newWorld(t, bothWays(time.Second))
	at := time.UnixMilli(1_700_000_000_123)
	w.config.Now = func() time.Time { return at }
	w.mustOnce()
	if got := beatsOf(t, w.Target.Bootstrap); len(got) != 1 || got[0] != (mm2.Heartbeat{Source: "A", Target: "B", Timestamp: at.UnixMilli()}) {
		t.Errorf("beats %+v", got)
	}
	if w.Source.Fake().TopicInfo("heartbeats") != nil {
		t.Error("the source has heartbeats")
	}
}

// TestHeartbeatsOff: the topic is made, and nothing is in it.
func TestHeartbeatsOff(t *testing.T) {
	w := newWorld(t, Settings{Heartbeats: []Heartbeats{{Source: "A", Target: "B"}}})
	w.mustOnce()
	if w.Target.Fake().TopicInfo("heartbeats") != nil {
		t.Error("the topic is made behind a copy that has an end")
	}
	if err := w.start().duties[0].do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info := w.Target.Fake().TopicInfo("heartbeats"); info == nil || info.NumReplicas != 3 {
		t.Fatalf("the topic is %+v", info)
	}
	if got := beatsOf(t, w.Target.Bootstrap); len(got) != 0 {
		t.Errorf("beats %v", got)
	}
}

// TestReplicationOfInternalTopics: three, or as many as there are brokers, or what
// somebody says.
func TestReplicationOfInternalTopics(t *testing.T) {
	for _, tt := range []struct{ brokers, asked, want int }{{1, 0, 1}, {2, 0, 2}, {4, 0, 3}, {4, 4, 4}, {4, 1, 1}} {
		pair := kafkatest.Options{TargetBrokers: tt.brokers}
		w := worldOn(t, pair, Settings{Heartbeats: []Heartbeats{{Source: "A", Target: "B", Interval: time.Second, TopicReplication: tt.asked}}})
		w.mustOnce()
		if got := w.Target.Fake().TopicInfo("heartbeats").NumReplicas; got != tt.want {
			t.Errorf("%+v: made with %d", tt, got)
		}
	}
}

// TestOneDutyFailsAlone: what one cannot do keeps no other from being done.
func TestOneDutyFailsAlone(t *testing.T) {
	s := bothWays(time.Second)
	s.OffsetSyncs = OffsetSyncs{Enabled: true}
	w := newWorld(t, s)
	m := w.withBook()
	m.copy(3)
	m.commit()
	if err := w.Source.CreateTopic(t.Context(), syncsTopic, 1, nil); err != nil {
		t.Fatal(err)
	}
	w.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: syncsTopic, Err: kerr.TopicAuthorizationFailed, Count: -1})
	failed := w.once()
	if len(failed) != 1 || failed[0].Duty != "offset_syncs" || !strings.Contains(failed[0].Error(), syncsTopic+" on A") {
		t.Errorf("failed %v", failed)
	}
	if got := beatsOf(t, w.Target.Bootstrap); len(got) != 1 {
		t.Errorf("beats %v", got)
	}
}

// TestNothingToDo: a flow without duties reaches for no cluster.
func TestNothingToDo(t *testing.T) {
	w := newWorld(t, Settings{})
	if m := w.start(); len(m.duties) != 0 {
		t.Errorf("%d duties", len(m.duties))
	}
}

// TestLackingRights: a duty that may not write says which right it takes, also where
// the cluster only says that the producer is given no id.
func TestLackingRights(t *testing.T) {
	for _, fault := range []kafkatest.Fault{
		{Kind: kafkatest.ErrorBefore, Key: kmsg.InitProducerID, Err: kerr.ClusterAuthorizationFailed, Count: -1},
		{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "heartbeats", Err: kerr.TopicAuthorizationFailed, Count: -1},
	} {
		w := worldOn(t, kafkatest.Options{}, Settings{Heartbeats: []Heartbeats{{Source: "A", Target: "B", Interval: time.Second}}})
		m := w.start()
		if err := w.Target.CreateTopic(t.Context(), "heartbeats", 1, nil); err != nil {
			t.Fatal(err)
		}
		w.Target.MustFault(t, fault)
		failed := m.Once(t.Context())
		m.Close()
		if len(failed) != 1 || !strings.Contains(failed[0].Error(), "(missing permission: WRITE ") || !strings.Contains(failed[0].Error(), "on topic heartbeats of B") {
			t.Errorf("%v: the duty says %v", fault.Err, failed)
		}
	}
}
