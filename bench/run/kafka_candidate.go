//go:build kafka

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"apograph/bench/figures"
	"apograph/internal/kafkatest"
)

// A job is one copy: which topic, how it is shaped, between which clusters, and
// under which number, for names that are used once.
type job struct {
	stand          *stand
	row            row
	topic          string
	source, target string // bootstrap servers, as the candidates see them
	ca             string // file of the certificate of both clusters; empty: no TLS
	number         int
	binary         string // of the product
}

// A candidate is a program that copies.
type candidate struct {
	name string
	// command returns the program and its arguments for one copy.
	command func(job) ([]string, error)
	// topic is what the copy is called at the target; nil for one that copies to
	// no cluster.
	topic func(job) string
	// endless candidates do not end by themselves, but are ended when all records
	// have arrived.
	endless bool
	// jvm: the start and the first quarter of the copy are warm-up, and are
	// counted apart.
	jvm bool
}

func candidates() []candidate {
	same := func(j job) string { return j.topic }
	mirrored := func(j job) string { return j.alias() + "." + j.topic }
	return []candidate{
		{name: figures.Apograph, command: apographCommand, topic: same},
		{name: figures.Unproven, command: builtAs("-unproven"), topic: same},
		{name: figures.Decompressed, command: builtAs("-decompressed"), topic: same},
		{name: figures.Copier, command: copierOf, topic: same},
		{name: figures.Floor, command: floorOf},
		{name: figures.MM2, command: mirrorMaker(nil), topic: mirrored, endless: true, jvm: true},
		{name: figures.MM2Tuned, command: mirrorMaker(tuned), topic: mirrored, endless: true, jvm: true},
		{name: figures.Reader}, // only verify has a command for it
	}
}

// candidatesNamed returns those of the names, in the names' order.
func candidatesNamed(names []string) ([]candidate, error) {
	all := candidates()
	var chosen []candidate
	for _, name := range names {
		i := slices.IndexFunc(all, func(c candidate) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no candidate %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func (j job) ledger() string { return j.stand.path(fmt.Sprintf("%d.ledger", j.number)) }

// alias is a new one for every copy, so that MirrorMaker finds no offsets of an
// earlier one.
func (j job) alias() string { return fmt.Sprintf("s%d", j.number) }

// apographCommand is the built product; with TLS, for which it has no flags, its
// engine in this program.
func apographCommand(j job) ([]string, error) {
	if j.ca != "" {
		return ourselves("engine", "-source", j.source, "-target", j.target, "-topic", j.topic, "-ledger", j.ledger(), "-ca", j.ca)
	}
	return []string{
		j.binary, "replicate", "--once", "-o", "json", "--stats", "0", "--ledger", j.ledger(), "--topics", j.topic,
		"--source-bootstrap-server", j.source, "--target-bootstrap-server", j.target,
	}, nil
}

// builtAs is the product as another build has it, whose name ends differently.
func builtAs(suffix string) func(job) ([]string, error) {
	return func(j job) ([]string, error) {
		j.binary += suffix
		return apographCommand(j)
	}
}

func copierOf(j job) ([]string, error) {
	return ourselves("copier", "-source", j.source, "-target", j.target, "-topic", j.topic, "-codec", j.row.Shape.Codec.String(), "-ca", j.ca)
}

func floorOf(j job) ([]string, error) {
	return ourselves("floor", "-source", j.source, "-topic", j.topic, "-sink", j.stand.sink, "-ca", j.ca)
}

// ourselves returns a command of this program's.
func ourselves(args ...string) ([]string, error) {
	self, err := os.Executable()
	return append([]string{self}, args...), err
}

// mirrorMaker returns the command of MirrorMaker with more settings, as
// connect-mirror-maker.sh runs it. The one-node clusters need replication factors
// of 1. What it would do in the other direction is switched off, which is to its
// favour.
func mirrorMaker(more func(job) []string) func(job) ([]string, error) {
	return func(j job) ([]string, error) {
		alias := j.alias()
		settings := []string{
			"clusters=" + alias + ",target",
			alias + ".bootstrap.servers=" + j.source,
			"target.bootstrap.servers=" + j.target,
			alias + "->target.enabled=true",
			alias + "->target.topics=" + j.topic,
			"target->" + alias + ".enabled=false",
			"target->" + alias + ".emit.heartbeats.enabled=false",
		}
		settings = append(settings, kafkatest.MirrorMakerReplicationFactors()...)
		if j.ca != "" {
			settings = append(append(settings, tlsSettings(alias, j.ca)...), tlsSettings("target", j.ca)...)
		}
		if more != nil {
			settings = append(settings, more(j)...)
		}
		path := j.stand.path(alias + ".properties")
		if err := os.WriteFile(path, []byte(strings.Join(settings, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
		jvm := slices.Concat([]string{"-Xms256M", "-Xmx2G"}, performanceJVM)
		return append([]string{"java"}, j.stand.source.JavaCommand(jvm, kafkatest.MirrorMakerClass, path)...), nil
	}
}

// tuned gives MirrorMaker a task for each of up to four partitions, big fetches, and
// batches and compression like the source's. Where each batch has far to go they are
// as large as a topic takes by default.
//
// One partition that is far away has five requests in flight as well, of an
// idempotent producer, which keeps their order; Connect's own setting is one. With
// many partitions that is no help: requests are full without it, and a broker that
// does not lead all of a new topic's partitions yet may refuse a partition's first
// batch and take the second, whereupon this producer tries the first for ever
// (OUT_OF_ORDER_SEQUENCE_NUMBER; seen with 1,000 partitions).
func tuned(j job) []string {
	batch := max(64<<10, j.row.Shape.BatchBytes, j.row.Shape.RecordBytes+1024)
	var more []string
	if j.row.Far == "target" {
		batch = 1_000_000
		if j.row.Partitions == 1 {
			more = []string{"target.producer.enable.idempotence=true", "target.producer.max.in.flight.requests.per.connection=5"}
		}
	}
	return append(more,
		"tasks.max=4",
		j.alias()+".consumer.fetch.max.bytes="+strconv.Itoa(64<<20),
		j.alias()+".consumer.max.partition.fetch.bytes="+strconv.Itoa(4<<20),
		j.alias()+".consumer.max.poll.records=5000",
		j.alias()+".consumer.receive.buffer.bytes="+strconv.Itoa(1<<20),
		"target.producer.batch.size="+strconv.Itoa(batch),
		"target.producer.linger.ms=10",
		"target.producer.compression.type="+j.row.Shape.Codec.String(),
		"target.producer.buffer.memory="+strconv.Itoa(64<<20),
		"target.producer.max.request.size="+strconv.Itoa(8<<20),
	)
}
