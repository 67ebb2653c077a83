package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"apograph/internal/connect"
	"apograph/internal/mm2"
)

// The sides of a flow.
const (
	sideSource = "source"
	sideTarget = "target"
)

// A mm2Topic says which internal topic a command is about.
type mm2Topic struct {
	name    func(p mm2.Policy, source, target string, onTarget bool) string
	movable bool // it is where offset-syncs.topic.location says; others are on the target
}

// A mm2Place is a topic on a cluster, and the ledger of its flow.
type mm2Place struct {
	cluster connect.Cluster
	side    string
	topic   string
	ledger  string // "": none
}

// A mm2Flow is the flow whose topics are read.
type mm2Flow struct {
	source, target string // aliases
	policy         mm2.Policy
	location       string // of offset syncs; "": not said
	ledger         string
	cluster        func(side string) (c connect.Cluster, ok bool, err error)
}

// newMM2Place finds the topic that a command line means.
func newMM2Place(inv *invocation, topic mm2Topic) (mm2Place, error) {
	on := inv.String("on")
	if on != "" && on != sideSource && on != sideTarget {
		return mm2Place{}, usagef("--on %s: it is source or target", quoteArg(on))
	}
	f, err := newMM2Flow(inv)
	if err != nil {
		return mm2Place{}, err
	}
	place := mm2Place{side: on, topic: inv.String("topic"), ledger: f.ledger}
	if place.side == "" {
		place.side = f.sideOf(topic)
	}
	var ok bool
	switch place.cluster, ok, err = f.cluster(place.side); {
	case err != nil:
		return place, err
	case !ok:
		return place, usagef("--%s-bootstrap-server is needed", place.side).
			withHint("or --config FILE, an mm2.properties file that names both clusters")
	case !inv.IsSet("topic"):
		place.topic = topic.name(f.policy, f.source, f.target, place.side == sideTarget)
	}
	if err := mm2.CheckTopicName(place.topic); err != nil {
		return place, usagef("--topic: %v", err)
	}
	return place, nil
}

// sideOf returns where a topic lives. Where only the other cluster is given, it is
// that one.
func (f *mm2Flow) sideOf(topic mm2Topic) string {
	side, other := sideTarget, sideSource
	if topic.movable && f.location != sideTarget {
		side, other = sideSource, sideTarget
	}
	_, here, err := f.cluster(side)
	if err != nil || here || topic.movable && f.location != "" {
		return side
	}
	if _, there, _ := f.cluster(other); there {
		return other
	}
	return side
}

func newMM2Flow(inv *invocation) (*mm2Flow, error) {
	c, err := inv.configuration()
	if err != nil {
		return nil, err
	}
	if c == nil {
		return adHocMM2Flow(inv)
	}
	flow, err := c.one(inv)
	if err != nil {
		return nil, err
	}
	policy, err := flow.Policy()
	if err != nil {
		return nil, err
	}
	f := &mm2Flow{source: flow.Source, target: flow.Target, policy: policy, location: flow.Get(syncsLocation).Value}
	f.cluster = func(side string) (connect.Cluster, bool, error) {
		alias, client := flow.Source, flow.SourceClient()
		if side == sideTarget {
			alias, client = flow.Target, flow.TargetClient()
		}
		cluster, err := inv.flowCluster(c.file, alias, client)
		return cluster, err == nil, err
	}
	if inv.row.flag("ledger") != nil {
		f.ledger, err = ledgerIfThere(inv, c)
	}
	return f, err
}

// ledgerIfThere returns the ledger of the only flow of a configuration; "" if it
// has none yet, and none is named.
func ledgerIfThere(inv *invocation, c *configuration) (string, error) {
	paths, err := c.ledgers(inv)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(paths[0]); inv.String("ledger") == "" && errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return paths[0], checkNoDirectory(paths[0])
}

func adHocMM2Flow(inv *invocation) (*mm2Flow, error) {
	settings, err := inv.settings(mm2Settings())
	if err != nil {
		return nil, err
	}
	f := &mm2Flow{ledger: inv.String("ledger"), location: settings[syncsLocation]}
	if f.location != "" && f.location != sideSource && f.location != sideTarget {
		return nil, usagef("-X %s=%s: it is source or target", syncsLocation, f.location)
	}
	delete(settings, syncsLocation)
	settings[mm2.PolicyKey] = string(mm2.PolicyDefault) // all name internal topics alike
	if f.policy, err = mm2.ParsePolicy(settings); err != nil {
		return nil, usagef("-X %v", err)
	}
	f.cluster = func(side string) (connect.Cluster, bool, error) { return clusterOf(inv, side) }
	for side, alias := range map[string]*string{sideSource: &f.source, sideTarget: &f.target} {
		if *alias = inv.String(side + "-alias"); *alias == "" {
			*alias = side
		}
	}
	if f.ledger == "" {
		return f, nil
	}
	return f, checkNoDirectory(f.ledger)
}

// checkIdentity refuses a ledger that is about another cluster than the one that
// was read.
func (p *mm2Place) checkIdentity(ctx context.Context, clusterID string) error {
	if p.ledger == "" {
		return nil
	}
	info, err := readLedgerInfo(ctx, p.ledger)
	if err != nil {
		return err
	}
	known := info.Flow.Source
	if p.side == sideTarget {
		known = info.Flow.Target
	}
	if known.ClusterID != clusterID {
		return usagef("the ledger is about another %s cluster: its id is %s, that of %s is %s", p.side, known.ClusterID, p.cluster.Alias, clusterID)
	}
	return nil
}
