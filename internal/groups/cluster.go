package groups

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
)

// DefaultPatience is for how long a broker that gives no answer is asked again.
const DefaultPatience = 15 * time.Second

// A Cluster is a Kafka cluster whose groups are read and committed for. Safe
// for concurrent use.
type Cluster struct {
	Alias string // name of the cluster in errors
	ID    string // cluster id

	client   *kgo.Client
	admin    *kadm.Client
	patience time.Duration
}

// Open connects to a cluster. Requests that get no answer, or one that says
// "not now", are repeated for patience; commits are not. The caller closes it.
// Errors are those of [connect.Cluster.Open].
func Open(ctx context.Context, c connect.Cluster, patience time.Duration) (*Cluster, error) {
	client, id, err := c.Open(ctx, kgo.RetryTimeout(patience), kgo.MetadataMinAge(100*time.Millisecond), kgo.DisableClientMetrics())
	if err != nil {
		return nil, err
	}
	return &Cluster{Alias: c.Alias, ID: id, client: client, admin: kadm.NewClient(client), patience: patience}, nil
}

// Close ends the connections.
func (c *Cluster) Close() { c.client.Close() }

// A Partition names one partition of a topic.
type Partition struct {
	Topic  string
	Number int32
}

func (p Partition) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Number) }

// NoOffset stands where a group has committed nothing, or where it is not known
// what it has.
const NoOffset = -1
