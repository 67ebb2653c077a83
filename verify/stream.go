package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/pace"
	"apograph/ledger"
)

const (
	// fetchBytes is what one fetch asks for, and what a consumer asks for of one
	// partition by default.
	fetchBytes = 1 << 20

	// leastFetchBytes is what one fetch asks for at least; a broker sends a whole
	// batch in any case.
	leastFetchBytes = 16 << 10

	// fetchWait is how long a broker may wait for data. There is none to wait
	// for, and a broker handles one request of a connection after the other: a
	// waiting fetch would hold up the next round.
	fetchWait = 20 * time.Millisecond

	// quiet is how long a consumer may deliver nothing of a partition before the
	// log is asked whether there is anything left: a consumer never says that it
	// has come to an end that lies behind removed or aborted records.
	quiet = 300 * time.Millisecond

	// ahead is how many fetches one side of a partition may be ahead of the other,
	// each reduced to its items.
	ahead = 2

	// decompressedBytes bounds one decompressed batch.
	decompressedBytes = 256 << 20
)

// A logReader consumes partitions of one cluster, round after round.
type logReader struct {
	site         *site
	client       *kgo.Client
	level        kgo.IsolationLevel
	meter        *meter
	pace         *pace.Limiter
	fetchBytes   int32            // that a fetch asks for
	dilation     *dilation        // nil: it stays what it is
	share        int32            // of memory, for what one fetch is decoded into
	decompressor kgo.Decompressor // for what is fetched beside the consumer
	now          func() time.Time // for how long nothing has come, whatever the clock of the report
}

func (r *run) reader(s *site, level kgo.IsolationLevel) (*logReader, error) {
	d := &dilation{buffers: &r.buffers}
	client, err := s.cluster.Client(
		kgo.FetchIsolationLevel(level),
		kgo.KeepControlRecords(),
		kgo.FetchMinBytes(1),
		kgo.FetchMaxWait(fetchWait),
		kgo.FetchMaxBytes(r.fetchBytes()),
		kgo.FetchMaxPartitionBytes(r.fetchBytes()),
		kgo.MaxDecompressBatchBytes(decompressedBytes),
		kgo.WithPools(d, &r.buffers),
		kgo.WithHooks(d),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.RetryTimeout(s.patience),
		kgo.DisableClientMetrics(),
	)
	if err != nil {
		return nil, err
	}
	reader := &logReader{
		site: s, client: client, level: level, meter: &r.meter, pace: r.pace, fetchBytes: r.fetchBytes(),
		decompressor: kgo.DefaultDecompressor(), now: time.Now,
	}
	if r.config.BytesPerSecond == 0 && r.config.Sample == (Slice{}) {
		reader.dilation, reader.share = d, r.share()
	}
	return reader, nil
}

// share returns how much memory what one fetch is decoded into may take up. A
// consumer holds two.
func (r *run) share() int32 {
	consumers := 2 * min(r.config.Parallel, max(len(r.jobs), 1))
	return int32(inMemory / (2 * consumers))
}

// adapt makes fetches as large as memory allows, by what the last ones were
// decoded into: each one costs the broker about as much, whatever its size.
func (r *logReader) adapt() {
	if r.dilation == nil {
		return
	}
	if n := r.dilation.fetchBytes(r.share, maxFetchBytes); n > r.fetchBytes*5/4 || n < r.fetchBytes*4/5 {
		r.fetchBytes = n
		r.client.UpdateFetchMaxBytes(n, n)
	}
}

// fetchBytes returns what one fetch asks for. Each consumer fetches once ahead:
// all of them together no more than one second's worth.
func (r *run) fetchBytes() int32 {
	if r.config.BytesPerSecond == 0 {
		return fetchBytes
	}
	consumers := int64(2 * r.config.Parallel)
	return int32(min(max(r.config.BytesPerSecond/(2*consumers), leastFetchBytes), fetchBytes))
}

// An extent says what to read of a partition.
type extent struct {
	topicPartition
	id       ledger.TopicID
	from, to int64
}

func (e *extent) len() int64 { return max(e.to-e.from, 0) }

// A portion is an extent to read, and how.
type portion struct {
	extent
	hasher  hasher
	planned int64 // what lies from here on is read only until the limit of bytes is reached
	hollow  bool  // its end may hold nothing, and an answer with nothing can mean that
}

// A round is the reading of some partitions at the same time, through one
// consumer. One partition is read with a bounded buffer. Several are read into
// buffers that hold everything, so that nobody waits for anybody: they must be
// small.
type round struct {
	reader  *logReader
	all     []*reading
	open    map[topicPartition]*reading
	paused  map[string][]int32
	streams []*stream
	cancel  context.CancelFunc
	done    chan struct{}
	topics  []string
}

// read starts a round. The caller takes the streams, which are in the order of
// the portions, and ends the round with close; only then may the reader be used
// again.
func (r *logReader) read(ctx context.Context, portions ...portion) *round {
	ctx, cancel := context.WithCancel(ctx)
	d := &round{
		reader: r, open: map[topicPartition]*reading{}, paused: map[string][]int32{},
		cancel: cancel, done: make(chan struct{}),
	}
	for _, o := range portions {
		room := int64(ahead)
		if len(portions) > 1 {
			room = o.len() + 2
		}
		chunks := make(chan chunk, room)
		used := make(chan []item, ahead)
		s := &stream{chunks: chunks, position: o.from, used: used}
		s.lookInto = func(offset int64) (gap, bool) { return r.lookInto(ctx, o.extent, offset) }
		d.streams = append(d.streams, s)
		d.all = append(d.all, &reading{round: d, portion: o, position: o.from, heard: r.now(), chunks: chunks, used: used, stream: s})
	}
	go func() {
		defer close(d.done)
		d.run(ctx)
	}()
	return d
}

// close ends the round, whether its streams have been used up or not.
func (d *round) close() {
	if d == nil {
		return
	}
	d.cancel()
	<-d.done
	if len(d.topics) > 0 {
		d.reader.client.PurgeTopicsFromConsuming(d.topics...)
		d.reader.client.ResumeFetchPartitions(d.paused)
	}
}

// run reads everything.
func (d *round) run(ctx context.Context) {
	wanted := map[string]map[int32]kgo.Offset{}
	for _, r := range d.all {
		if r.position >= r.to {
			r.finish(nil)
			continue
		}
		d.open[r.topicPartition] = r
		if wanted[r.topic] == nil {
			wanted[r.topic] = map[int32]kgo.Offset{}
			d.topics = append(d.topics, r.topic)
		}
		wanted[r.topic][r.partition] = kgo.NewOffset().At(r.position)
	}
	if len(wanted) == 0 {
		return
	}
	d.reader.client.AddConsumePartitions(wanted)
	var failure error
	for failure == nil && len(d.open) > 0 {
		failure = d.poll(ctx)
		if ctx.Err() != nil {
			failure = context.Cause(ctx)
		}
	}
	for _, r := range d.open {
		r.finish(failure)
	}
}

// poll takes what the consumer has, and looks after the partitions of which it
// has had nothing for a while. An error is none of a partition.
func (d *round) poll(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, quiet)
	fetches := d.reader.client.PollFetches(waiting)
	cancel()
	d.reader.adapt()
	for _, f := range fetches {
		for _, t := range f.Topics {
			for i := range t.Partitions {
				if err := d.take(ctx, t.Topic, &t.Partitions[i]); err != nil {
					return err
				}
			}
		}
	}
	for _, r := range d.all {
		if !r.ended && d.reader.now().Sub(r.heard) >= quiet {
			if err := r.settle(r.look(ctx)); err != nil {
				return err
			}
		}
	}
	return nil
}

// take takes what was fetched of a partition. What is wrong with the client as a
// whole is reported under no topic, and as of every partition.
func (d *round) take(ctx context.Context, topic string, p *kgo.FetchPartition) error {
	if errors.Is(p.Err, context.DeadlineExceeded) || errors.Is(p.Err, context.Canceled) {
		return nil // nothing came while it was waited
	}
	r, ok := d.open[topicPartition{topic, p.Partition}]
	if !ok && topic == "" && p.Err != nil {
		for _, r := range d.all {
			if r.ended {
				continue
			}
			if err := r.settle(r.failed(ctx, p.Err)); err != nil {
				return err
			}
		}
	}
	if !ok {
		return nil
	}
	err := r.deliver(ctx, p)
	if err == nil && p.Err != nil && r.position < r.to {
		err = r.failed(ctx, p.Err)
	}
	return r.settle(err)
}

// A reading is one partition of a round.
type reading struct {
	round *round
	portion
	position int64 // the next offset to deliver
	start    int64 // log start offset as last seen
	failures int   // in a row, without a record
	heard    time.Time
	progress time.Time // zero: none yet
	chunks   chan<- chunk
	used     <-chan []item // to write to again
	stream   *stream
	ended    bool
}

// settle ends the reading if it is at its end or failed for good. It returns an
// error that is none of the partition.
func (r *reading) settle(err error) error {
	var own *readError
	switch {
	case r.ended:
		return nil
	case errors.As(err, &own):
		r.finish(own)
	case err != nil:
		return err
	case r.position >= r.to:
		r.finish(nil)
	}
	return nil
}

// finish ends the reading. The consumer keeps the partition, so that its log can
// still be looked into, and fetches nothing more of it.
func (r *reading) finish(failure error) {
	d := r.round
	r.ended = true
	r.stream.failure = failure
	close(r.chunks)
	d.reader.meter.offsets.Add(max(r.to-r.position, 0))
	if _, ok := d.open[r.topicPartition]; ok {
		delete(d.open, r.topicPartition)
		d.paused[r.topic] = append(d.paused[r.topic], r.partition)
		d.reader.client.PauseFetchPartitions(map[string][]int32{r.topic: {r.partition}})
	}
}

// deliver hands the records of a fetched partition over.
func (r *reading) deliver(ctx context.Context, p *kgo.FetchPartition) error {
	r.heard = r.round.reader.now()
	if p.Err == nil {
		r.start = max(r.start, p.LogStartOffset)
	}
	if len(p.Records) == 0 {
		return nil
	}
	items := r.items(len(p.Records))
	before, bytes := r.position, 0
	var full error
	for _, record := range p.Records {
		if record.Offset >= r.planned && r.round.reader.meter.full(int64(bytes)) {
			full = r.unreadable(NotRead, errFull)
			break
		}
		if record.Offset >= r.to {
			r.position = r.to
			break
		}
		if record.Offset < r.position {
			continue // never seen of kgo; a record must not be delivered twice
		}
		items = append(items, r.hasher.item(record))
		bytes += len(r.hasher.buffer)
		r.position = record.Offset + 1
		record.Recycle() // nothing of it is used from here on
	}
	if r.position == before {
		return full // a chunk for each step forward and no more: there is room for those
	}
	m := r.round.reader.meter
	m.records.Add(int64(len(items)))
	m.bytes.Add(int64(bytes))
	if err := r.round.wait(ctx, int64(bytes)); err != nil {
		return err
	}
	return firstError(r.hand(ctx, before, items), full)
}

// items returns an empty slice with room for n items.
func (r *reading) items(n int) []item {
	select {
	case items := <-r.used:
		return slices.Grow(items, n)
	default:
		return make([]item, 0, n)
	}
}

// wait waits until n bytes may have been read. That time counts for no
// partition as one in which nothing came.
func (d *round) wait(ctx context.Context, n int64) error {
	if d.reader.pace == nil {
		return nil
	}
	before := d.reader.now()
	err := d.reader.pace.Wait(ctx, n)
	waited := d.reader.now().Sub(before)
	for _, r := range d.all {
		r.heard = r.heard.Add(waited)
		if !r.progress.IsZero() {
			r.progress = r.progress.Add(waited)
		}
	}
	return err
}

// hand passes on what has become known since a position.
func (r *reading) hand(ctx context.Context, before int64, items []item) error {
	r.round.reader.meter.offsets.Add(r.position - before)
	select {
	case r.chunks <- chunk{items: items, next: r.position, start: r.start}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// While the other side was waited for, nobody asked the consumer for more.
	r.failures, r.progress = 0, r.round.reader.now()
	r.heard = r.progress
	return nil
}

// skip says that nothing stands between the position and an offset.
func (r *reading) skip(ctx context.Context, to int64) error {
	before := r.position
	r.position = min(max(to, before), r.to)
	return r.hand(ctx, before, nil)
}

// again has the consumer begin anew at the position, with what it has buffered
// or believes of the partition dropped.
func (r *reading) again() {
	client := r.round.reader.client
	client.RemoveConsumePartitions(map[string][]int32{r.topic: {r.partition}})
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: {r.partition: kgo.NewOffset().At(r.position)}})
}

// look asks the log itself whether anything is left, after the consumer has
// delivered nothing for a while.
func (r *reading) look(ctx context.Context) error {
	if r.progress.IsZero() {
		r.progress = r.heard
	}
	r.heard = r.round.reader.now()
	next, more, err := r.round.reader.probe(ctx, r.extent, r.hollow, r.position)
	late := r.heard.Sub(r.progress) >= r.round.reader.site.patience
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !late && !errors.Is(err, errBroken):
		return nil
	case err != nil:
		return r.giveUp(ctx, err)
	case !more:
		return r.skip(ctx, r.to)
	case late:
		return r.giveUp(ctx, fmt.Errorf("the consumer does not get past it, though the log goes on at offset %d", next))
	}
	return nil
}
