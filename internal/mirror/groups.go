package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"apograph/internal/connect"
	"apograph/internal/groups"
	"apograph/ledger"
)

// groupPatience is for how long a coordinator that does not answer is asked
// again: not long, as it is asked again the next time in any case, and the
// other groups wait with it.
const groupPatience = 5 * time.Second

// A dialer connects to the groups of a cluster when they are first asked for.
type dialer struct {
	cluster connect.Cluster
	mu      sync.Mutex
	open    *groups.Cluster
}

func (d *dialer) get(ctx context.Context) (*groups.Cluster, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != nil {
		return d.open, nil
	}
	open, err := groups.Open(ctx, d.cluster, groupPatience)
	if err == nil {
		d.open = open
	}
	return open, err
}

func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != nil {
		d.open.Close()
	}
}

// addGroups adds the duties that are about groups.
func (m *Mirror) addGroups() {
	s := m.config.Settings
	if !s.Checkpoints.Enabled && !s.GroupSync.Enabled {
		return
	}
	logger := m.config.Logger.With("duty", "groups")
	w := &watch{config: &m.config, source: &dialer{cluster: m.config.Source}, logger: logger}
	m.close = append(m.close, w.source.close)
	m.board = newBoard(logger)
	if s.Checkpoints.Enabled {
		b := m.board
		if s.GroupSync.Enabled {
			b = nil
		}
		m.addCheckpoints(w, b)
	}
	if s.GroupSync.Enabled {
		m.addGroupSync(w, m.board)
	}
}

// Groups returns where the groups were when they were last looked at; no rows if
// no duty is about them, or they were not looked at yet.
func (m *Mirror) Groups() GroupsStatus {
	if m.board == nil {
		return GroupsStatus{Lag: -1}
	}
	m.board.mu.Lock()
	defer m.board.mu.Unlock()
	return m.board.status
}

// A watch reads what the groups of a flow have committed on the source, and
// translates it. Safe for concurrent use.
type watch struct {
	config *Config
	source *dialer
	logger *slog.Logger

	mu     sync.Mutex  // guards what follows
	chosen chosenGroup // what was listed last
	listed time.Time   // when all of it was; zero: never
	failed string      // why the last list was not whole
}

// chosenGroup is which groups of the source the flow takes care of.
type chosenGroup struct {
	ids    []string // in order
	shares []string // chosen, and of a kind without committed offsets

	leftOut []GroupStatus // not chosen, in order: the first of them
	omitted int           // how many more there are

	// exists are all groups that the source had at that time; nil: not known, or
	// not all.
	exists map[string]bool
	at     time.Time
}

// A groupOffset is an offset that a group has committed on the source in a
// topic that is in scope, and what it is on the target.
type groupOffset struct {
	group    string
	topic    string // on the source
	number   int32
	offset   int64 // negative: none
	epoch    int32 // of the commit; -1: none
	metadata string
	reason   Reason // why there is no translation; "" there is one

	Translation
}

func (o *groupOffset) onSource() groups.Partition {
	return groups.Partition{Topic: o.topic, Number: o.number}
}

func (o *groupOffset) onTarget() groups.Partition {
	return groups.Partition{Topic: o.TargetTopic, Number: o.number}
}

// A reading is one look at all groups.
type reading struct {
	at      time.Time // before anything was asked
	chosen  chosenGroup
	offsets []groupOffset    // by group, topic and partition
	failed  map[string]error // groups whose offsets could not be read
}

// look reads the groups. Its error is for all of them.
func (w *watch) look(ctx context.Context) (*reading, error) {
	r := &reading{at: w.config.Now(), failed: make(map[string]error)}
	source, err := w.source.get(ctx)
	if err != nil {
		return nil, err
	}
	if r.chosen, err = w.list(ctx, source, r.at); err != nil {
		return nil, err
	}
	committed := source.DecidedOffsets(ctx, r.chosen.ids)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, id := range r.chosen.ids {
		if err := committed[id].Err; err != nil {
			r.failed[id] = err
			continue
		}
		r.add(id, committed[id].At)
	}
	if err := w.translate(ctx, r); err != nil {
		return nil, err
	}
	if err := w.distrust(ctx, source, r); err != nil {
		return nil, err
	}
	return r, w.refuseBeyond(ctx, source, r)
}

// add adds what a group has committed, in order.
func (r *reading) add(group string, at map[groups.Partition]groups.Offset) {
	from := len(r.offsets)
	for p, offset := range at {
		r.offsets = append(r.offsets, groupOffset{group: group, topic: p.Topic, number: p.Number, offset: offset.At, epoch: offset.Epoch, metadata: offset.Metadata})
	}
	slices.SortFunc(r.offsets[from:], func(a, b groupOffset) int {
		return cmp.Or(strings.Compare(a.topic, b.topic), cmp.Compare(a.number, b.number))
	})
}

// list returns the chosen groups, which it looks for when that is due, and each
// time until it was given all of them. A group that was known stays so while
// some broker does not answer.
func (w *watch) list(ctx context.Context, source *groups.Cluster, now time.Time) (chosenGroup, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	every := w.config.Settings.Checkpoints.RefreshGroups
	if !w.listed.IsZero() && (every <= 0 || now.Sub(w.listed) < every) {
		return w.chosen, nil
	}
	found, err := source.List(ctx)
	if err != nil && len(found) == 0 && len(w.chosen.ids) == 0 {
		return chosenGroup{}, err
	}
	next := w.choose(found, err == nil)
	next.at = now
	if err == nil {
		w.listed = now
	}
	w.tellList(err, len(next.ids)-len(w.chosen.ids))
	w.chosen = next
	return next, nil
}

// choose returns the groups to take care of.
func (w *watch) choose(found map[string]groups.Group, whole bool) (next chosenGroup) {
	ids := make(map[string]bool)
	if whole {
		next.exists = make(map[string]bool, len(found))
	} else {
		for _, id := range w.chosen.ids {
			ids[id] = true
		}
	}
	var others []string
	for id, g := range found {
		if whole {
			next.exists[id] = true
		}
		if _, ok := w.config.Settings.Checkpoints.Groups.Match(id); !ok {
			others = append(others, id)
			continue
		}
		if g.Kind.CommitsOffsets() {
			ids[id] = true
		} else {
			next.shares = append(next.shares, id)
		}
	}
	next.ids = slices.Sorted(maps.Keys(ids))
	slices.Sort(next.shares)
	slices.Sort(others)
	next.omitted = max(len(others)-PatternRows, 0)
	for _, id := range others[:len(others)-next.omitted] {
		reason := NotMatched
		if w.config.Settings.Checkpoints.Groups.Exclude.Matches(id) {
			reason = Excluded
		}
		next.leftOut = append(next.leftOut, wholeGroup(id, reason))
	}
	return next
}

// tellList says once that the list of groups is not whole.
func (w *watch) tellList(err error, more int) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != w.failed {
		w.logger.Warn("not all groups could be listed; those that were known are gone on with", "error", err)
	}
	if more != 0 {
		w.logger.Info("groups to take care of", "change", more)
	}
	w.failed = text
}

// translate fills in the translations, and leaves out offsets in topics that are
// neither in scope nor in a book: as MirrorMaker 2 does since 3.5, which takes
// no notice of groups without an offset in its topics (KAFKA-14837).
func (w *watch) translate(ctx context.Context, r *reading) error {
	var asked []int
	var positions []Position
	for i := range r.offsets {
		if o := &r.offsets[i]; o.offset >= 0 {
			asked = append(asked, i)
			positions = append(positions, Position{o.group, o.topic, o.number, o.offset, o.epoch})
		}
	}
	translations, err := w.config.Translate.Forward(ctx, positions)
	if err != nil {
		return err
	}
	for i, at := range asked {
		r.offsets[at].Translation = translations[i]
	}
	inScope := make(map[string]bool)
	for i := range r.offsets {
		topic := r.offsets[i].topic
		if _, ok := inScope[topic]; !ok {
			_, inScope[topic] = w.config.Topics.Match(topic)
		}
	}
	r.offsets = slices.DeleteFunc(r.offsets, func(o groupOffset) bool { return o.Pair == 0 && !inScope[o.topic] })
	for i := range r.offsets {
		o := &r.offsets[i]
		switch {
		case o.offset < 0:
			o.reason = NoOffset
		case o.Pair == 0:
			o.reason = NotCopiedYet
		case o.Doubtful:
			o.reason = LogUnknown
		case o.Status == Unknown:
			o.reason = NoBook
		}
	}
	return nil
}

// distrust takes back the translations of offsets that may be those of other
// records than the books know: of a topic that was deleted and created again, or
// a log that was cut. The ledger says of a cut what a copier has found; what none has
// seen yet, as one that begins or a partition that is paused, the log itself is asked.
func (w *watch) distrust(ctx context.Context, source *groups.Cluster, r *reading) error {
	names := make(map[string]bool)
	for i := range r.offsets {
		if r.offsets[i].reason == "" {
			names[r.offsets[i].topic] = true
		}
	}
	topics, err := source.Topics(ctx, sortedKeys(names))
	if err != nil {
		return err
	}
	cut := make(map[groups.Partition]bool)
	for _, s := range w.config.Ledger.Stops() {
		if s.Holds(ledger.SourceTruncated) {
			cut[groups.Partition{Topic: s.SourceTopic, Number: s.Partition}] = true
		}
	}
	for i := range r.offsets {
		o := &r.offsets[i]
		if o.reason != "" {
			continue
		}
		found := topics[o.topic]
		switch {
		case found.Err != nil && !errors.Is(found.Err, groups.ErrNoTopic):
			r.failed[o.group] = fmt.Errorf("topic %s on %s: %w", o.topic, source.Alias, found.Err)
			o.reason = failure(found.Err)
		case found.Err != nil, found.IsOther(o.SourceTopicID), cut[o.onSource()]:
			o.reason = SourceChanged
		}
	}
	return w.distrustLogs(ctx, source, r)
}

// distrustLogs takes back the translations of offsets above where logs part from the
// books, or may.
func (w *watch) distrustLogs(ctx context.Context, source *groups.Cluster, r *reading) error {
	pairs := make(map[ledger.PairID]bool)
	for i := range r.offsets {
		if o := &r.offsets[i]; o.reason == "" {
			pairs[o.Pair] = true
		}
	}
	cuts := source.Partings(ctx, w.config.Ledger, slices.Sorted(maps.Keys(pairs)))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i := range r.offsets {
		o := &r.offsets[i]
		switch cut := cuts[o.Pair]; {
		case o.reason != "":
		case cut.Err != nil:
			r.failed[o.group], o.reason = cut.Err, failure(cut.Err)
		case o.offset > cut.At:
			o.reason = SourceChanged
		}
	}
	return nil
}

// refuseBeyond takes back the translations of offsets that the source's log does not
// reach, which are no places in it. One that the ledger has not seen yet is no rare
// thing, for a group may be faster than the copy: then the log itself is asked.
func (w *watch) refuseBeyond(ctx context.Context, source *groups.Cluster, r *reading) error {
	ends := make(map[ledger.PairID]int64)
	var beyond []*groupOffset
	names := make(map[string]bool)
	for i := range r.offsets {
		o := &r.offsets[i]
		if o.reason != "" || o.Status != BeyondCopied {
			continue
		}
		if _, ok := ends[o.Pair]; !ok {
			ends[o.Pair] = w.config.Ledger.State(o.Pair).HighWatermark
		}
		if o.offset > ends[o.Pair] {
			beyond, names[o.topic] = append(beyond, o), true
		}
	}
	bounds, err := source.Bounds(ctx, sortedKeys(names))
	for _, o := range beyond {
		if log, ok := bounds[o.onSource()]; ok && log.Err == nil && o.offset > log.End {
			o.reason = BeyondEnd
		}
	}
	if ctx.Err() != nil {
		return err
	}
	return nil
}
