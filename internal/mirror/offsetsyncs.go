package mirror

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/mm2"
	"apograph/internal/readlog"
	"apograph/ledger"
)

const (
	// syncsEvery is how often syncs are written of what has been copied, and
	// syncsAtOnce how many at most: so many records a second is the bound. With
	// more partitions than that at work, they take turns.
	syncsEvery  = time.Second
	syncsAtOnce = 1000

	// syncsOfOne bounds those of one partition: enough for the longest books.
	syncsOfOne = 48

	// fewest is what a partition may need at a time: what voids others, the first
	// record, and the newest.
	fewest = 3

	// stepShare is the part of offset.lag.max that lies between the newest sync
	// and the next: so a group that is that much behind has one near it.
	stepShare = 4
)

// addOffsetSyncs adds the duty of offset syncs.
func (m *Mirror) addOffsetSyncs() {
	if !m.config.Settings.OffsetSyncs.Enabled {
		return
	}
	s := m.newSyncs()
	m.add(&duty{name: OffsetSyncsDuty, every: syncsEvery, do: s.round, once: s.all, logger: s.logger})
}

// A place is a partition of a source topic.
type place struct {
	topic     string
	partition int32
}

// Syncs writes offset syncs: a projection of the committed books.
type syncs struct {
	ledger    *ledger.Ledger
	spacing   int64
	publisher *publisher
	logger    *slog.Logger
	follower  *ledger.Follower

	// What the topic held when it was read, of partitions that have not been
	// looked at since; nil before it is read. After a failure it is read again:
	// what was sent may be there, and a lower offset behind it would say that all
	// before it is void.
	known map[place]copied
	blind bool // it may not be read

	at      map[place]projection // of partitions that have been looked at
	pending []ledger.PairID      // to be looked at, the longest waiting first
	waiting map[ledger.PairID]bool
}

func (m *Mirror) newSyncs() *syncs {
	cluster, o := m.config.Source, m.config.Settings.OffsetSyncs
	if o.OnTarget {
		cluster = m.config.Target
	}
	topic := m.config.Topics.Policy.OffsetSyncsOf(m.config.Source.Alias, m.config.Target.Alias, o.OnTarget)
	logger := m.config.Logger.With("duty", OffsetSyncsDuty)
	return &syncs{
		ledger: m.config.Ledger, spacing: max(o.Spacing/stepShare, 1), logger: logger, follower: m.config.Ledger.Follow(),
		publisher: m.newPublisher(cluster, topic, o.TopicReplication, logger),
	}
}

// round writes what is due.
func (s *syncs) round(ctx context.Context) error {
	if err := s.learn(ctx); err != nil {
		return err
	}
	s.await(s.follower.Take())
	records, after, err := s.plan()
	if err == nil {
		err = s.publisher.publish(ctx, records)
	}
	if err != nil {
		s.known = nil
		return err
	}
	for at, p := range after {
		s.at[at] = p
		delete(s.known, at)
	}
	return nil
}

// all is round until nothing is due any more.
func (s *syncs) all(ctx context.Context) error {
	for {
		if err := s.round(ctx); err != nil {
			return err
		}
		if len(s.pending) == 0 {
			return nil
		}
	}
}

// learn reads what is in the topic, unless it has been read: syncs that an earlier
// process wrote, or MirrorMaker 2.
func (s *syncs) learn(ctx context.Context) error {
	if s.known != nil {
		return nil
	}
	if err := s.publisher.ready(ctx); err != nil {
		return err
	}
	known := map[place]copied{}
	err := readTopic(ctx, s.publisher.topic.cluster, s.publisher.topic.name, func(r readlog.Record) {
		if sync, err := mm2.ParseOffsetSync(r.Key, r.Value); err == nil {
			known[place{sync.Topic, sync.Partition}] = copied{sync.Upstream, sync.Downstream}
		}
	})
	s.blind = errors.Is(err, kerr.TopicAuthorizationFailed)
	switch {
	case s.blind:
		s.publisher.topic.tell("the topic cannot be read here: of what was copied before this start, only the newest record is written", "error", err)
	case err != nil:
		return err
	}
	s.known, s.at, s.pending, s.waiting = known, map[place]projection{}, nil, map[ledger.PairID]bool{}
	var open []ledger.PairID
	for _, pair := range s.ledger.Pairs() {
		if pair.Closed == nil {
			open = append(open, pair.ID)
			s.assume(pair)
		}
	}
	s.await(open)
	return nil
}

// assume has a partition go on where its book ends, if it is not to be known what
// has been written of it: a lower sync than one of before would do harm.
func (s *syncs) assume(pair ledger.Pair) {
	end := s.ledger.Committed(pair.ID).Source
	if !s.blind || end == 0 {
		return
	}
	if newest, err := (book{s.ledger, []part{{pair.ID, end}}}).last(end-1, 0); err == nil && newest.exists() {
		s.at[placeOf(pair)] = projection{last: none(), from: newest.upstream}
	}
}

func placeOf(pair ledger.Pair) place { return place{pair.SourceTopic, pair.Partition} }

// await puts pairs into the line.
func (s *syncs) await(ids []ledger.PairID) {
	for _, id := range ids {
		if !s.waiting[id] {
			s.waiting[id] = true
			s.pending = append(s.pending, id)
		}
	}
}

// plan takes as many pairs out of the line as there is room for, and returns their
// syncs and where their partitions are then.
func (s *syncs) plan() (records []*kgo.Record, after map[place]projection, err error) {
	after = map[place]projection{}
	room := min(max(syncsAtOnce/max(len(s.pending), 1), fewest), syncsOfOne)
	for len(s.pending) > 0 && len(records)+room <= syncsAtOnce {
		id := s.pending[0]
		if pair, ok := s.ledger.Pair(id); ok && pair.Closed == nil {
			if records, err = s.planOne(pair, room, records, after); err != nil {
				return nil, nil, err
			}
		}
		s.pending = s.pending[1:]
		delete(s.waiting, id)
	}
	return records, after, nil
}

func (s *syncs) planOne(pair ledger.Pair, room int, records []*kgo.Record, after map[place]projection) ([]*kgo.Record, error) {
	at := placeOf(pair)
	b, err := bookOf(s.ledger, pair)
	if err != nil {
		return records, err
	}
	syncs, p, err := s.projection(at).next(b, s.ledger.Committed(pair.ID).Source, s.spacing, room)
	if err != nil {
		return records, err
	}
	after[at] = p
	for _, c := range syncs {
		key, value, err := mm2.OffsetSync{Topic: at.topic, Partition: at.partition, Upstream: c.upstream, Downstream: c.downstream}.Encode()
		if err != nil {
			return records, err
		}
		records = append(records, &kgo.Record{Key: key, Value: value})
	}
	return records, nil
}

// projection returns where a partition is.
func (s *syncs) projection(at place) projection {
	if p, ok := s.at[at]; ok {
		return p
	}
	if last, ok := s.known[at]; ok {
		return projection{last: last}
	}
	return projection{last: none()}
}
