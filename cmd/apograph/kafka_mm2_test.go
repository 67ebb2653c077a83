//go:build kafka

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// mirrorFiles holds files as MirrorMaker 2 and apograph both take them.
// @bootstrap-1@ and so on stand for the addresses of clusters that run.
const mirrorFiles = "../../testdata/mm2"

// TestKafkaMirrorMaker runs MirrorMaker 2 with a file, takes down what topics,
// settings and ACLs it made and whether all records came; then, on the same
// clusters as they were before, apograph with the same file. Both must have made
// the same, but for the differences that mirrorCases states.
func TestKafkaMirrorMaker(t *testing.T) {
	cases := mirrorCases()
	onlyKnownFiles(t, cases)
	onlyDocumented(t, cases)
	stand := startMirrorStand(t)
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) { stand.run(t, c) })
	}
}

// onlyKnownFiles expects a case for every file.
func onlyKnownFiles(t *testing.T, cases []mirrorCase) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(mirrorFiles, "*.properties"))
	if err != nil || len(paths) < len(cases) {
		t.Fatalf("%d files for %d cases (%v)", len(paths), len(cases), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".properties")
		if !slices.ContainsFunc(cases, func(c mirrorCase) bool { return c.file == name }) {
			t.Errorf("no case for %s", path)
		}
	}
}

// onlyDocumented expects README to tell of every difference.
func onlyDocumented(t *testing.T, cases []mirrorCase) {
	t.Helper()
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := strings.Join(strings.Fields(string(data)), " ")
	said := map[string]bool{}
	for _, c := range cases {
		for _, d := range c.differs {
			if !said[d.readme] && (d.readme == "" || !strings.Contains(readme, d.readme)) {
				t.Errorf("%s: README does not say of %s: %q", c.file, d.what, d.readme)
			}
			said[d.readme] = true
		}
	}
}

// A mirrorStand is the clusters that all cases use, one after the other.
type mirrorStand struct {
	clusters []*kafkatest.Kafka
	born     time.Time // of all records
}

// startMirrorStand starts three clusters with authorizers, to which everybody
// is a super user: ACLs can be looked at, and keep nobody out.
func startMirrorStand(t *testing.T) *mirrorStand {
	t.Helper()
	config := map[string]string{
		"authorizer.class.name":        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                  "User:ANONYMOUS",
		"log.cleaner.enable":           "false", // what a case prepares stays
		"offsets.topic.num.partitions": "1",
	}
	var options []kafkatest.KafkaOptions
	for _, name := range []string{"first", "second", "third"} {
		options = append(options, kafkatest.KafkaOptions{Name: name, HeapMB: 384, Config: config})
	}
	return &mirrorStand{clusters: kafkatest.StartKafkas(t, options...), born: time.Now().Truncate(time.Second)}
}

// run plays one case.
func (s *mirrorStand) run(t *testing.T, c mirrorCase) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	for key, value := range c.environment {
		t.Setenv(key, value)
	}
	file := s.write(t, c)
	play := mirrorPlay{t: t, mirrorStand: s, c: c, file: file}

	play.prepare(ctx)
	play.mirror(ctx)
	theirs := play.record(ctx)
	play.takeInternal(theirs, true)
	play.onlyStated(theirs)
	play.contents(ctx, false)

	play.prepare(ctx)
	play.replicate(ctx)
	ours := play.record(ctx)
	play.takeInternal(ours, false)
	play.compare(theirs, ours)
	play.contents(ctx, true)
}

// write fills in the addresses.
func (s *mirrorStand) write(t *testing.T, c mirrorCase) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(mirrorFiles, c.file+".properties"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i, k := range s.clusters {
		text = strings.ReplaceAll(text, fmt.Sprintf("@bootstrap-%d@", i+1), k.Server())
	}
	path := filepath.Join(t.TempDir(), "mm2.properties")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A mirrorPlay is a case being played.
type mirrorPlay struct {
	*mirrorStand
	t    *testing.T
	c    mirrorCase
	file string
}

// cluster returns a cluster by its alias.
func (p mirrorPlay) cluster(alias string) *kafkatest.Kafka {
	i := slices.Index(p.c.clusters, alias)
	if i < 0 {
		p.t.Fatalf("no cluster %q", alias)
	}
	return p.clusters[i]
}

// prepare makes all clusters what they are before anybody copies.
func (p mirrorPlay) prepare(ctx context.Context) {
	p.t.Helper()
	for _, k := range p.clusters {
		p.must(k.Wipe(ctx))
	}
	for _, alias := range p.c.clusters {
		k, before := p.cluster(alias), p.c.before[alias]
		for _, key := range []string{"log.retention.ms", "log.segment.bytes"} {
			p.must(k.SetBrokerDefault(ctx, key, before.brokers[key]))
		}
		p.must(k.CreateTopics(ctx, before.topics))
		p.must(k.CreateACLs(ctx, before.acls...))
		if records := p.records(before); len(records) > 0 {
			p.must(k.Append(ctx, kafkatest.LZ4, records...))
		}
	}
}

// records are those of a cluster's topics, the same every time.
func (p mirrorPlay) records(before estate) []*kgo.Record {
	var records []*kgo.Record
	for _, name := range slices.Sorted(maps.Keys(before.topics)) {
		state := before.topics[name]
		for i := range state.Records {
			records = append(records, &kgo.Record{
				Topic: name, Partition: int32(i) % int32(state.Partitions),
				Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "%s %d", name, i),
				Headers:   []kgo.RecordHeader{{Key: "n", Value: []byte{byte(i)}}},
				Timestamp: p.born.Add(time.Duration(i) * time.Millisecond),
			})
		}
	}
	return records
}

func (p mirrorPlay) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// mirror runs MirrorMaker 2 until it has done everything, and kills it.
func (p mirrorPlay) mirror(ctx context.Context) {
	p.t.Helper()
	began := time.Now()
	m := p.clusters[0].StartMirrorMaker(p.t, p.file)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	var last []landscape
	for steady := 0; steady < max(p.c.steady, 3); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("MirrorMaker has not done its work: %v", p.missing(m, p.record(p.t.Context())))
		}
		if !m.Running() {
			p.t.Fatal("MirrorMaker has ended by itself")
		}
		now := p.record(ctx)
		if p.missing(m, now) == nil && sameLandscapes(last, now) {
			steady++ // requests that its log does not tell of have been answered
		} else {
			steady = 0
		}
		last = now
	}
	p.t.Logf("MirrorMaker took %v", time.Since(began).Round(time.Millisecond))
	p.must(m.Kill())
}

// missing says what MirrorMaker has still to do; nil if nothing.
func (p mirrorPlay) missing(m *kafkatest.MirrorMaker, now []landscape) error {
	for _, f := range p.c.flows {
		duties := []string{kafkatest.MirrorMakerMakesTopics, kafkatest.MirrorMakerSyncsACLs, kafkatest.MirrorMakerSyncsSettings}
		for _, duty := range duties {
			if slices.Contains(p.c.idle, duty) || slices.Contains(f.idle, duty) {
				continue
			}
			if done, err := m.Did(f.source, f.target, duty); err != nil || !done {
				return errors.Join(err, fmt.Errorf("%s->%s: %s", f.source, f.target, duty))
			}
		}
	}
	for i, want := range p.c.internalTopics(p.t, p.file) {
		for _, name := range want {
			if _, there := now[i].topics[name]; !there {
				return fmt.Errorf("%s has no topic %s", p.c.clusters[i], name)
			}
		}
	}
	for _, c := range p.c.copies {
		have, want := p.topic(now, c.target), p.topic(now, c.source)
		if have.Partitions < want.Partitions || have.Records < p.preparedRecords(c.source) {
			return fmt.Errorf("%s is not %s", c.target, c.source)
		}
	}
	return nil
}

// preparedRecords is how many records a topic has before anybody copies. Of a
// topic that is a copy itself, it is those of its original.
func (p mirrorPlay) preparedRecords(at place) int64 {
	for _, c := range p.c.copies {
		if c.target == at {
			return p.preparedRecords(c.source)
		}
	}
	return p.c.before[at.cluster].topics[at.topic].Records
}

func (p mirrorPlay) topic(of []landscape, at place) kafkatest.TopicState {
	return of[slices.Index(p.c.clusters, at.cluster)].topics[at.topic]
}

// A landscape is what an administrator sees of a cluster.
type landscape struct {
	topics map[string]kafkatest.TopicState
	acls   []kafkatest.ACL
}

// record looks at all clusters of the case.
func (p mirrorPlay) record(ctx context.Context) []landscape {
	p.t.Helper()
	var all []landscape
	for _, alias := range p.c.clusters {
		k := p.cluster(alias)
		topics, err := k.TopicStates(ctx)
		p.must(err)
		acls, err := k.ACLs(ctx)
		p.must(err)
		all = append(all, landscape{topics, acls})
	}
	return all
}

// sameLandscapes compares all but how many records there are: heartbeats never
// end.
func sameLandscapes(a, b []landscape) bool {
	return slices.EqualFunc(a, b, func(a, b landscape) bool {
		return slices.Equal(a.acls, b.acls) && maps.EqualFunc(a.topics, b.topics, func(a, b kafkatest.TopicState) bool {
			return a.Partitions == b.Partitions && maps.Equal(a.Settings, b.Settings)
		})
	})
}

// replicate runs apograph, which must end well.
func (p mirrorPlay) replicate(ctx context.Context) {
	p.t.Helper()
	dir := p.t.TempDir()
	for range max(p.c.rounds, 1) {
		began := time.Now()
		p.must(replicateByFile(ctx, p.t, dir, p.file))
		p.t.Logf("apograph took %v", time.Since(began).Round(time.Millisecond))
	}
	for _, f := range p.c.flows {
		mustCheck(p.t, filepath.Join(dir, f.source+"-to-"+f.target+".ledger"))
	}
}

// contents compares every copy with its original, record by record. Heartbeats
// that a MirrorMaker writes meanwhile are let be.
func (p mirrorPlay) contents(ctx context.Context, apograph bool) {
	p.t.Helper()
	for _, c := range p.c.copies {
		beats := strings.HasSuffix(c.target.topic, "heartbeats") && !apograph
		if beats || apograph && slices.Contains(p.c.left, c.target.topic) {
			continue
		}
		want, err := p.cluster(c.source.cluster).ReadTopic(ctx, c.source.topic)
		p.must(err)
		differences, err := p.cluster(c.target.cluster).Compare(ctx, c.source.topic, c.target.topic, want)
		p.must(err)
		if !apograph && slices.Contains(p.c.restamped, c.target.topic) {
			if len(differences) == 0 {
				p.t.Errorf("MirrorMaker 2 made %v with the times of %v", c.target, c.source)
			}
			continue
		}
		for _, d := range differences {
			p.t.Errorf("apograph %v: %v", apograph, d)
		}
	}
}
