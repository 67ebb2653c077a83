package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// ErrNoTopic: the cluster has no topic of a name.
var ErrNoTopic = errors.New("there is no such topic")

// A Topic is what a cluster says of a topic.
type Topic struct {
	ID  [16]byte // zero: unknown, as from brokers before 2.8
	Err error    // ErrNoTopic, or why nothing is known
}

// IsOther reports whether a topic is known to be another one than that of an id:
// neither of them is unknown.
func (t Topic) IsOther(id [16]byte) bool {
	return t.ID != [16]byte{} && id != [16]byte{} && t.ID != id
}

// Topics returns what the cluster says of topics, by name. The error is for all
// of them.
func (c *Cluster) Topics(ctx context.Context, names []string) (map[string]Topic, error) {
	found := make(map[string]Topic, len(names))
	if len(names) == 0 {
		return found, nil
	}
	metadata, err := c.admin.Metadata(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("look at topics on %s: %w", c.Alias, err)
	}
	for _, name := range names {
		detail, ok := metadata.Topics[name]
		switch {
		case !ok, errors.Is(detail.Err, kerr.UnknownTopicOrPartition):
			found[name] = Topic{Err: ErrNoTopic}
		case detail.Err != nil:
			found[name] = Topic{Err: fmt.Errorf("look at topic: %w", detail.Err)}
		default:
			found[name] = Topic{ID: detail.ID}
		}
	}
	return found, nil
}

// Bounds are the log start offset and the high watermark of a partition, or
// why they are not known.
type Bounds struct {
	Start, End int64
	Err        error
}

// Bounds returns the bounds of all partitions of topics. A partition that is
// not among them does not exist, or was not answered for; the error says of
// which brokers there is no answer.
func (c *Cluster) Bounds(ctx context.Context, names []string) (map[Partition]Bounds, error) {
	found := make(map[Partition]Bounds)
	if len(names) == 0 {
		return found, nil
	}
	starts, startsErr := c.admin.ListStartOffsets(ctx, names...)
	ends, endsErr := c.admin.ListEndOffsets(ctx, names...)
	starts.Each(func(start kadm.ListedOffset) {
		b := Bounds{Start: start.Offset, Err: start.Err}
		if end, ok := ends.Lookup(start.Topic, start.Partition); ok && b.Err == nil {
			b.End, b.Err = end.Offset, end.Err
		} else if b.Err == nil {
			b.Err = errNoEnd
		}
		found[Partition{start.Topic, start.Partition}] = b
	})
	if err := errors.Join(startsErr, endsErr); err != nil {
		return found, fmt.Errorf("read the bounds of topics on %s: %w", c.Alias, err)
	}
	return found, nil
}

// BoundsOf returns the bounds of a partition among those that [Cluster.Bounds] found with
// an error, or why they are not known.
func (c *Cluster) BoundsOf(p Partition, found map[Partition]Bounds, err error) (Bounds, error) {
	log, ok := found[p]
	if ok && log.Err == nil {
		return log, nil
	}
	return log, fmt.Errorf("bounds of %v on %s: %w", p, c.Alias, cmp.Or(log.Err, err, errNoPartition))
}

var errNoPartition = errors.New("there is no such partition")

var errNoEnd = errors.New("the high watermark was not answered")
