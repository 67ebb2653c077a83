//go:build kafka

package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// replicateByFile runs apograph, which must end well, in a directory, where the
// ledgers are.
func replicateByFile(ctx context.Context, t *testing.T, dir, file string) error {
	t.Helper()
	cmd := exec.CommandContext(ctx, "apograph", "replicate", "--once", "--config", file, "-o", "json")
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("replicate: %w: %s\n%s", err, stdout.String(), stderr.String())
	}
	return nil
}

// A fact is one thing that is to be seen of a cluster; it is there with a value,
// or not there.
type fact struct {
	cluster, topic string // topic may be empty
	what           string // "partitions", "replicas", "setting NAME" or "acl ..."
}

func (f fact) String() string {
	return strings.TrimSuffix(f.cluster+"/"+f.topic, "/") + ": " + f.what
}

// facts takes landscapes apart.
func facts(aliases []string, of []landscape) map[fact]string {
	all := map[fact]string{}
	for i, alias := range aliases {
		for name, s := range of[i].topics {
			all[fact{alias, name, "partitions"}] = fmt.Sprint(s.Partitions)
			all[fact{alias, name, "replicas"}] = fmt.Sprint(s.Replicas)
			for key, value := range s.Settings {
				all[fact{alias, name, "setting " + key}] = value
			}
		}
		for _, a := range of[i].acls {
			all[fact{alias, "", "acl " + a.String()}] = "yes"
		}
	}
	return all
}

const absent = "(none)"

// compare expects the same facts from both, but for what is stated.
func (p mirrorPlay) compare(theirs, ours []landscape) {
	p.t.Helper()
	a, b := facts(p.c.clusters, theirs), facts(p.c.clusters, ours)
	both := maps.Clone(a)
	maps.Copy(both, b)
	seen := map[int]map[string]bool{}
	for _, f := range slices.SortedFunc(maps.Keys(both), func(x, y fact) int { return strings.Compare(x.String(), y.String()) }) {
		mm2, apograph := value(a, f), value(b, f)
		if mm2 == apograph {
			continue
		}
		i := slices.IndexFunc(p.c.differs, func(d difference) bool { return d.covers(p.c, f, mm2, apograph) })
		if i < 0 {
			p.t.Errorf("%v: MirrorMaker 2 has %s, apograph %s", f, mm2, apograph)
			continue
		}
		if seen[i] == nil {
			seen[i] = map[string]bool{}
		}
		seen[i][fmt.Sprintf("%s for %s", apograph, mm2)] = true
	}
	for i, d := range p.c.differs {
		if seen[i] == nil && !d.seldom {
			p.t.Errorf("the difference %+v was not seen", d)
		}
		if seen[i] != nil {
			p.t.Logf("differs by right: %s: %s", d.what, strings.Join(slices.Sorted(maps.Keys(seen[i])), ", "))
		}
	}
}

func value(of map[fact]string, f fact) string {
	if v, ok := of[f]; ok {
		return v
	}
	return absent
}

// takeInternal takes MirrorMaker's own topics out of what was made. Their names
// must be those that the policy of each flow gives them, and all of them be there if
// MirrorMaker made them; nothing else about them is of interest.
func (p mirrorPlay) takeInternal(made []landscape, all bool) {
	p.t.Helper()
	for i, names := range p.c.internalTopics(p.t, p.file) {
		for _, name := range names {
			if _, prepared := p.c.before[p.c.clusters[i]].topics[name]; prepared {
				continue
			}
			if _, there := made[i].topics[name]; all && !there {
				p.t.Errorf("%s has no internal topic %s", p.c.clusters[i], name)
			}
			delete(made[i].topics, name)
		}
	}
}

// onlyStated expects of MirrorMaker the topics that were there, and the copies
// that the case states, no others.
func (p mirrorPlay) onlyStated(theirs []landscape) {
	p.t.Helper()
	for i, alias := range p.c.clusters {
		for _, name := range slices.Sorted(maps.Keys(theirs[i].topics)) {
			_, prepared := p.c.before[alias].topics[name]
			stated := slices.ContainsFunc(p.c.copies, func(c mirrorCopy) bool { return c.target == place{alias, name} })
			if !prepared && !stated {
				p.t.Errorf("MirrorMaker 2 made %s/%s, which the case does not state", alias, name)
			}
		}
	}
}

// A difference is one that apograph's users are told of.
type difference struct {
	cluster, topic string // of the fact; empty is any. A cluster must be one that is copied to
	what           string // of the fact; a * at its end is any rest
	mm2, apograph  string // the values; empty is any
	seldom         bool   // not in every case that states it
	readme         string // what README says of it, where it is a rule and not a fault
}

func (d difference) covers(c mirrorCase, f fact, mm2, apograph string) bool {
	same := d.what == f.what
	if prefix, ok := strings.CutSuffix(d.what, "*"); ok {
		same = strings.HasPrefix(f.what, prefix)
	}
	target := slices.ContainsFunc(c.flows, func(x mirrorFlow) bool { return x.target == f.cluster })
	return same && target && (d.cluster == "" || d.cluster == f.cluster) && (d.topic == "" || d.topic == f.topic) &&
		(d.mm2 == "" || d.mm2 == mm2) && (d.apograph == "" || d.apograph == apograph)
}

// internalTopics returns the names of MirrorMaker's own topics on each cluster,
// in the order of the aliases: those of its workers, whose names nobody chooses,
// and those that the policy of each flow names.
func (c mirrorCase) internalTopics(t *testing.T, file string) [][]string {
	t.Helper()
	config := parseMirrorFile(t, file)
	all := make([][]string, len(c.clusters))
	add := func(alias string, names ...string) {
		i := slices.Index(c.clusters, alias)
		for _, name := range names {
			if !slices.Contains(all[i], name) {
				all[i] = append(all[i], name)
			}
		}
	}
	for _, pair := range config.Herders() {
		for _, of := range []string{"configs", "offsets", "status"} {
			add(pair.Target, "mm2-"+of+"."+pair.Source+".internal")
		}
		f, ok := config.Flow(pair.Source, pair.Target)
		if !ok {
			t.Fatalf("no flow %v", pair)
		}
		policy, err := f.Policy()
		if err != nil {
			t.Fatal(err)
		}
		add(pair.Target, policy.HeartbeatsTopic())
		if !f.Enabled() {
			continue
		}
		if on, err := f.Bool("emit.checkpoints.enabled"); err != nil {
			t.Fatal(err)
		} else if on { // else Connect refuses the connector that would make it (KIP-1031)
			add(pair.Target, policy.CheckpointsTopic(pair.Source))
		}
		onTarget := f.Text("offset-syncs.topic.location") == "target"
		syncs := policy.OffsetSyncsOf(pair.Source, pair.Target, onTarget)
		switch on, err := f.Bool("emit.offset-syncs.enabled"); {
		case err != nil:
			t.Fatal(err)
		case on && onTarget:
			add(pair.Target, syncs)
		case on:
			add(pair.Source, syncs)
		}
	}
	return all
}

func parseMirrorFile(t *testing.T, file string) *mm2.Config {
	t.Helper()
	properties, err := javaprops.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	config, err := mm2.ParseConfig(properties, mm2.ConfigOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return config
}
