package mirror

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/mm2"
)

// addHeartbeats adds a duty for each pair of clusters. Like MirrorMaker 2's it
// makes the topic even where nothing is to be written, and beats for the first
// time after an interval (MirrorHeartbeatConnector, MirrorHeartbeatTask).
func (m *Mirror) addHeartbeats() {
	for _, h := range m.config.Settings.Heartbeats {
		cluster := m.config.Target
		if h.OnSource {
			cluster = m.config.Source
		}
		logger := m.config.Logger.With("duty", HeartbeatsDuty, "pair", h.pair())
		beats := &heart{Heartbeats: h, now: m.config.Now, publisher: m.newPublisher(cluster, m.config.Topics.Policy.HeartbeatsTopic(), h.TopicReplication, logger)}
		d := &duty{name: HeartbeatsDuty, pair: h.pair(), first: h.Interval, every: h.Interval, do: beats.beat, lives: h.OnSource || h.Copied, logger: logger}
		if h.Interval == 0 {
			d.every, d.do, d.lives = never, beats.publisher.ready, true
		}
		m.add(d)
	}
}

// A heart writes heartbeats of one pair of clusters.
type heart struct {
	Heartbeats
	now       func() time.Time
	publisher *publisher
}

// beat writes one heartbeat. The record bears the time that its value has.
func (h *heart) beat(ctx context.Context) error {
	at := h.now()
	key, value, err := mm2.Heartbeat{Source: h.Source, Target: h.Target, Timestamp: at.UnixMilli()}.Encode()
	if err != nil {
		return err
	}
	return h.publisher.publish(ctx, []*kgo.Record{{Key: key, Value: value, Timestamp: at}})
}
