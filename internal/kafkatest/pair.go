package kafkatest

import (
	"fmt"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Options describe a pair of fake clusters. The zero value is a source of one
// broker and a target of three, in memory, on the loopback interface.
type Options struct {
	SourceBrokers int // 0 means 1
	TargetBrokers int // 0 means 3

	// DataDir keeps both clusters on disk, in its directories source and
	// target; see [ClusterOptions].
	DataDir string

	// Network runs both without sockets, for testing/synctest: the source
	// listens from port 10000 on, the target from 20000 on.
	Network *kfake.VirtualNetwork

	SourceKfake, TargetKfake []kfake.Opt
}

// A Pair is a source and a target cluster with different cluster ids.
type Pair struct {
	Source, Target *Cluster
}

// StartPair starts two fake clusters. The caller closes the pair.
func StartPair(o Options) (*Pair, error) {
	source := ClusterOptions{Name: "source", Brokers: max(o.SourceBrokers, 1), Network: o.Network, FirstPort: 10000, Kfake: o.SourceKfake}
	target := ClusterOptions{Name: "target", Brokers: o.TargetBrokers, Network: o.Network, FirstPort: 20000, Kfake: o.TargetKfake}
	if target.Brokers == 0 {
		target.Brokers = 3
	}
	if o.DataDir != "" {
		source.DataDir = filepath.Join(o.DataDir, "source")
		target.DataDir = filepath.Join(o.DataDir, "target")
	}
	p := &Pair{}
	var err error
	if p.Source, err = StartCluster(source); err != nil {
		return nil, fmt.Errorf("start pair: %w", err)
	}
	if p.Target, err = StartCluster(target); err != nil {
		p.Close()
		return nil, fmt.Errorf("start pair: %w", err)
	}
	return p, nil
}

// Close stops both clusters. It may be called more than once.
func (p *Pair) Close() {
	for _, c := range []*Cluster{p.Source, p.Target} {
		if c != nil {
			c.Close()
		}
	}
}

// NewPair is StartPair for a test. At the test's end both clusters are closed,
// and the test fails if anything produced a batch that a broker would have
// stored although it was wrong, or could not have read (see
// [Cluster.BadBatches]).
func NewPair(t TB, o Options) *Pair {
	t.Helper()
	p, err := StartPair(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		p.Close()
		reportBadBatches(t, p.Source)
		reportBadBatches(t, p.Target)
	})
	return p
}

// NewCluster is StartCluster for a test, with the same end as NewPair.
func NewCluster(t TB, o ClusterOptions) *Cluster {
	t.Helper()
	c, err := StartCluster(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		c.Close()
		reportBadBatches(t, c)
	})
	return c
}

func reportBadBatches(t TB, c *Cluster) {
	t.Helper()
	for _, bad := range c.BadBatches() {
		t.Errorf("%s: produced %v", c.options.Name, bad)
	}
}
