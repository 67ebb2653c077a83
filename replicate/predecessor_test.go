package replicate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// Where MirrorMaker 2 keeps what for a flow from "source" to "target".
const (
	syncsTopic   = "mm2-offset-syncs.target.internal"
	offsetsTopic = "mm2-offsets.source.internal"
	beatsTopic   = "heartbeats"
)

// noon is the time of the tests' clock.
var noon = time.UnixMilli(1_700_000_000_000)

// withPredecessor gives the flow a MirrorMaker 2 that has its topics; between tells
// what happens between the two looks.
func (m *mirrored) withPredecessor(between func()) {
	m.t.Helper()
	internal := map[string]string{"cleanup.policy": "compact"}
	mustTopic(m.t, m.pair.Source, syncsTopic, internal)
	mustTopic(m.t, m.pair.Target, beatsTopic, internal)
	if err := m.pair.Target.CreateTopic(m.t.Context(), offsetsTopic, 25, internal); err != nil {
		m.t.Fatal(err)
	}
	m.config.Now = func() time.Time { return noon }
	m.config.Predecessor = &replicate.Predecessor{
		Group: "source-mm2", OffsetsTopic: offsetsTopic, SyncsTopic: syncsTopic, Heartbeats: beatsTopic, Interval: time.Second,
		Wait: func(_ context.Context, d time.Duration) error {
			if m.waits = append(m.waits, d); between != nil {
				between()
			}
			return nil
		},
	}
}

// refused attaches, and expects that it is refused as MirrorMaker is alive.
func (m *mirrored) refused(says string) {
	m.t.Helper()
	m.config.LedgerPath = filepath.Join(m.t.TempDir(), "attached.ledger")
	_, err := replicate.Attach(m.t.Context(), m.config, nil)
	var refused *replicate.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "MirrorMaker 2, or another copier, is alive") {
		m.t.Errorf("%v, want a refusal that says %q", err, says)
	}
	if left, err := os.ReadDir(filepath.Dir(m.config.LedgerPath)); err != nil || len(left) > 0 {
		m.t.Errorf("left behind: %v %v", left, err)
	}
}

func beat(source, target string, age time.Duration) *kgo.Record {
	return kafkatest.MirrorHeartbeat(beatsTopic, source, target, noon.Add(-age))
}

func TestAttachWhileMirrorMakerIsAlive(t *testing.T) {
	tests := []struct {
		name            string
		before, between func(m *mirrored)
		says            string
	}{
		{"a fresh heartbeat where they are rare", func(m *mirrored) {
			m.config.Predecessor.Interval = time.Minute
			mustAppend(m.t, m.Target, beat("source", "target", 179*time.Second), beat("source", "target", 2900*time.Millisecond))
		}, nil, "its last heartbeat in topic heartbeats of cluster target is 2.9s old (if all copiers have been stopped, apograph too, attach in 2m57s)"},
		{"a clock that is ahead", func(m *mirrored) {
			m.config.Predecessor.Interval = 5 * time.Second
			mustAppend(m.t, m.Target, beat("source", "target", -2*time.Second))
		}, nil, "its last heartbeat in topic heartbeats of cluster target is -2s old"},
		{"another heartbeat while one grows old", func(m *mirrored) {
			mustAppend(m.t, m.Target, beat("source", "target", 2900*time.Millisecond))
		}, func(m *mirrored) {
			mustAppend(m.t, m.Target, beat("source", "target", 0))
		}, "another heartbeat has come to topic heartbeats of cluster target"},
		{"a heartbeat between", nil, func(m *mirrored) {
			mustAppend(m.t, m.Target, beat("source", "target", time.Hour))
		}, "another heartbeat has come to topic heartbeats of cluster target"},
		{"an offset sync between", nil, func(m *mirrored) {
			mustAppend(m.t, m.Source, kafkatest.MirrorSync(syncsTopic, "t", 0, 59, 57))
		}, "another offset sync has come to topic mm2-offset-syncs.target.internal of cluster source"},
		{"a target that moves", nil, func(m *mirrored) { m.copies(0, 7) }, "the end of t-0 on cluster target has moved from offset 58 to 65"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMirrored(t)
			m.history()
			m.copies(0, 60)
			m.withPredecessor(func() {
				if tt.between != nil {
					tt.between(m)
				}
			})
			if tt.before != nil {
				tt.before(m)
			}
			m.refused(tt.says)
			if strings.HasSuffix(tt.name, "grows old") && fmt.Sprint(m.waits) != "[100ms]" {
				t.Errorf("waited %v: it is alive before the alignment", m.waits)
			}
		})
	}
}

// TestAttachBesideALaggingLeader: a leader that has just been elected gives nothing of
// MirrorMaker's topics for a while, which is not their end.
func TestAttachBesideALaggingLeader(t *testing.T) {
	m := newMirrored(t)
	m.history()
	m.copies(0, 60)
	m.withPredecessor(nil)
	m.config.Predecessor.Interval = time.Minute
	mustAppend(t, m.Target, beat("source", "target", 2900*time.Millisecond))
	fake, asked := m.pair.Target.Fake(), 0
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if asked++; asked > 6 {
			return nil, nil, false
		}
		answer := kmsg.NewFetchResponseTopicPartition()
		answer.HighWatermark, answer.LastStableOffset = 0, 0
		return fetchAnswer(r, answer), nil, true
	})
	m.refused("its last heartbeat in topic heartbeats of cluster target is 2.9s old")
}

// TestAttachWithMirrorMakersWorkers waits until the group of its workers is empty.
func TestAttachWithMirrorMakersWorkers(t *testing.T) {
	m := newMirrored(t)
	m.history()
	m.copies(0, 60)
	m.withPredecessor(nil)
	leave := m.joins("source-mm2")
	m.refused("its group source-mm2 on cluster target has members, 1 in all")
	leave()
	if p := m.attach(replicate.Attached); p.Copied != 53 {
		t.Errorf("%+v", p)
	}
}

// TestAttachBesideOtherMirrors: workers under another alias are those of the copy if
// their source offsets say so, with a file and without; else they are named.
func TestAttachBesideOtherMirrors(t *testing.T) {
	const offsets = "mm2-offsets.other.internal"
	tests := []struct {
		name      string
		predicted bool // by a file
		before    func(m *mirrored)
		refused   bool
	}{
		{"copies the topic", true, func(m *mirrored) {
			mustAppend(m.t, m.Target, kafkatest.MirrorSourceOffset(offsets, "other", "t", 0, 59))
		}, true},
		{"copies the topic, and there is no file", false, func(m *mirrored) {
			mustAppend(m.t, m.Target, kafkatest.MirrorSourceOffset(offsets, "other", "t", 0, 59))
		}, true},
		{"copies it to another name", false, func(m *mirrored) {
			mustTopic(m.t, m.pair.Target, "other.t", nil)
			mustAppend(m.t, m.Target, kafkatest.MirrorSourceOffset(offsets, "other", "t", 0, 59))
		}, false},
		{"copies another topic", true, func(m *mirrored) {
			mustAppend(m.t, m.Target, kafkatest.MirrorSourceOffset(offsets, "other", "u", 0, 59))
		}, false},
		{"has copied nothing", false, func(*mirrored) {}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMirrored(t)
			m.history()
			m.copies(0, 60)
			mustTopic(t, m.pair.Target, offsets, map[string]string{"cleanup.policy": "compact"})
			if tt.predicted {
				m.withPredecessor(nil)
			}
			tt.before(m)
			leave := m.joins("other-mm2")
			var log bytes.Buffer
			m.config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			if tt.refused {
				m.refused("the group other-mm2 on cluster target has members, 1 in all, and its source offsets say that it copies topic t, here to t")
				leave()
			}
			m.attach(replicate.Attached)
			if named := strings.Contains(log.String(), "group=other-mm2 members=1"); named == tt.refused {
				t.Errorf("log %q", log.String())
			}
		})
	}
}

// joins has a Connect worker join a group, and returns what makes it leave.
func (m *mirrored) joins(group string) (leave func()) {
	m.t.Helper()
	client, err := m.Target.Client()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(client.Close)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = group, "connect", 30_000, 30_000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "sessioned"
	join.Protocols = append(join.Protocols, protocol)
	var member string
	for range 2 { // the first answer gives the id (KIP-394)
		answer, err := join.RequestWith(m.t.Context(), client)
		if err != nil {
			m.t.Fatal(err)
		}
		member = answer.MemberID
		join.MemberID = member
	}
	return func() {
		m.t.Helper()
		request := kmsg.NewPtrLeaveGroupRequest()
		request.Group, request.MemberID = group, member
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = member
		request.Members = append(request.Members, one)
		if _, err := request.RequestWith(m.t.Context(), client); err != nil {
			m.t.Fatal(err)
		}
	}
}

// TestAttachAfterMirrorMaker: signs that are old, or of other flows, are none.
func TestAttachAfterMirrorMaker(t *testing.T) {
	m := newMirrored(t)
	m.history()
	m.copies(0, 60)
	m.withPredecessor(func() { mustAppend(t, m.Target, beat("other", "target", 0)) })
	mustAppend(t, m.Target, beat("source", "target", 3*time.Second), beat("source", "other", time.Second), beat("other", "target", 0))
	mustAppend(t, m.Target, &kgo.Record{Topic: beatsTopic, Value: []byte("x")})
	if p := m.attach(replicate.Attached); p.Copied != 53 || p.Unprovable.Any() {
		t.Errorf("%+v", p)
	}
	m.config.Now = nil
	m.goesOn(map[ledger.Tile]int64{ledger.Copied: 53, ledger.Foreign: 5})
	if fmt.Sprint(m.waits) != "[3s]" {
		t.Errorf("waited %v", m.waits)
	}
}

// TestAttachBehindACopierThatWasJustStopped waits until its last heartbeat is old, be
// it one of this package's, which are as MirrorMaker's.
func TestAttachBehindACopierThatWasJustStopped(t *testing.T) {
	m := newMirrored(t)
	m.history()
	m.copies(0, 60)
	m.withPredecessor(nil)
	mustAppend(t, m.Target, beat("source", "target", 400*time.Millisecond))
	m.attach(replicate.Attached)
	if fmt.Sprint(m.waits) != "[2.6s 3s]" {
		t.Errorf("waited %v", m.waits)
	}
}

// TestAttachWithoutMirrorMakersTopics: what is not there is no sign.
func TestAttachWithoutMirrorMakersTopics(t *testing.T) {
	m := newMirrored(t)
	m.history()
	m.copies(0, 60)
	m.config.Predecessor = &replicate.Predecessor{
		Group: "source-mm2", OffsetsTopic: offsetsTopic, SyncsTopic: syncsTopic, SyncsTarget: true, Heartbeats: beatsTopic, Interval: time.Second,
		Wait: instantly,
	}
	if p := m.attach(replicate.Attached); p.Copied != 53 {
		t.Errorf("%+v", p)
	}
}

// TestTakeoverByHint: where the content tells little an offset sync says where the
// copy begins, if it is right.
func TestTakeoverByHint(t *testing.T) {
	tests := []struct {
		name          string
		source, start int64 // of the sync for the first record, and of the books
	}{
		{"right", 12, 12},
		{"about another record", 13, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMirrored(t)
			same := numbered(0, 24)
			for i := range same {
				same[i].Key, same[i].Value, same[i].Timestamp = nil, []byte{'v', byte(i % 12)}, time.UnixMilli(1)
			}
			mustAppend(t, m.Source, same...)
			m.copies(12, 24)
			m.withPredecessor(nil)
			mustAppend(t, m.pair.Source.Bootstrap, kafkatest.MirrorSync(syncsTopic, "t", 0, tt.source, 0))
			if p := m.attach(replicate.Attached); p.BeforeStart != tt.start || p.Copied != 12 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestTakeoverOfNumberedRecords: MirrorMaker's producer was made idempotent, and
// its own topics say that the copy is its.
func TestTakeoverOfNumberedRecords(t *testing.T) {
	for _, known := range []*kgo.Record{
		kafkatest.MirrorSourceOffset(offsetsTopic, "source", "t", 0, 59),
		kafkatest.MirrorSync(syncsTopic, "t", 0, 0, 0),
	} {
		m := newMirrored(t)
		m.history()
		for _, part := range [][2]int64{{0, 30}, {10, 60}} {
			records, err := m.Read(t.Context(), part[0], part[1])
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				mustAppend(t, m.Target, &kgo.Record{Topic: "t", Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)})
			}
		}
		m.withPredecessor(nil)
		on := m.Target
		if known.Topic == syncsTopic {
			on = m.Source
		}
		mustAppend(t, on, known)
		p := m.attach(replicate.Attached)
		if p.Copied != 53 || p.Duplicates != 14 || p.Aborted != 10 || p.Unprovable.Any() {
			t.Errorf("%+v", p)
		}
		m.config.Now = nil
		m.goesOn(map[ledger.Tile]int64{ledger.Copied: 53, ledger.Foreign: 10, ledger.Duplicate: 14})
	}
}

// TestForgottenSourceOffset: Connect has been told to forget the offset.
func TestForgottenSourceOffset(t *testing.T) {
	m := newMirrored(t)
	inTens(t, m.Source, 0, 20)
	mustRun(t, m.config) // the copy is this package's
	m.withPredecessor(nil)
	for _, offset := range []int64{7, -1} {
		mustAppend(t, m.Target, kafkatest.MirrorSourceOffset(offsetsTopic, "source", "t", 0, offset))
	}
	m.attach(replicate.Attached)
	if of := producers(t, m.config); len(of) < 2 || of[0].ID < 0 {
		t.Errorf("producers %+v: the copy's own is not known", of)
	}
}
