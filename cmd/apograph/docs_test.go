package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/urfave/cli/v2"

	"apograph/internal/kafkatest"
)

// A standIn is a command of a page that cannot run on fake clusters.
type standIn struct {
	begins  string // the command; the longest that fits counts
	reason  string
	java    bool                     // TestKafkaDocs runs it as it stands
	instead func(*docStage, docStep) // nil: nothing
}

const (
	needsJava       = "Kafka's tools need Java; TestKafkaDocs runs them"
	needsAuthorizer = "the clusters of these tests have no authorizer"
	needsSystemd    = "there is no service manager; what ExecStart names is started, and ended as systemd does"
	needsCheckout   = "it is about the checkout that this test is part of"
)

// standIns are all commands of the pages that do not run as they stand, with the
// reason, and what is done in their place so that the page can go on.
func standIns() []standIn {
	return []standIn{
		{begins: "make demo", reason: needsCheckout},
		{begins: "make test", reason: needsCheckout},
		{begins: "make build", reason: needsCheckout},
		{begins: "systemctl start apograph", reason: needsSystemd, instead: func(s *docStage, _ docStep) { s.startCopier(s.unit) }},
		{begins: "systemctl stop apograph", reason: needsSystemd, instead: func(s *docStage, _ docStep) { s.stopCopier() }},
		{begins: "apograph replicate --config mm2.properties             #", reason: "it would run until it is stopped", instead: func(s *docStage, step docStep) {
			step.script = "apograph replicate --config mm2.properties --once"
			s.do(step)
		}},
		{begins: "kafka-configs.sh", reason: needsJava, java: true},
		{begins: "kafka-transactions.sh", reason: needsJava, java: true},
		{begins: "kafka-consumer-groups.sh", reason: needsJava, java: true},
		{begins: `kafka-consumer-groups.sh --bootstrap-server "$TARGET" --group switch-point`, reason: needsJava, java: true, instead: markSwitch},
		{begins: "kafka-acls.sh", reason: needsAuthorizer},
	}
}

// standIn returns what is done in place of a step, and whether it has one.
func (s *docStage) standIn(step docStep) (instead func(*docStage, docStep), ok bool) {
	var best standIn
	for _, candidate := range standIns() {
		if strings.HasPrefix(step.script, candidate.begins) && len(candidate.begins) > len(best.begins) {
			best = candidate
		}
	}
	s.stood[best.begins] = true
	return best.instead, best.begins != "" && !(best.java && s.tools != "")
}

// markSwitch does what kafka-consumer-groups.sh --to-latest does.
func markSwitch(s *docStage, _ docStep) {
	s.admin(s.target, func(ctx context.Context, admin *kadm.Client) error {
		ends, err := admin.ListEndOffsets(ctx, "orders", "payments", "customers")
		if err != nil {
			return err
		}
		return admin.CommitAllOffsets(ctx, "switch-point", ends.Offsets())
	})
}

// An act is what people and applications do while a page is read.
type act struct {
	heading string // of the section that it comes before
	// alternative: the section is read instead of those around it, so it has
	// clusters and a directory of its own.
	alternative bool
	do          func(*docStage)
}

func migrateActs() []act {
	return []act{
		{heading: "With two addresses and no file", alternative: true},
		{heading: "Take over from a running MirrorMaker 2", alternative: true, do: (*docStage).mirrored},
		{heading: "8. Start the producers on the new cluster", do: func(s *docStage) {
			s.must(s.target.Append(s.t.Context(), kafkatest.None, docRecords("orders", 6)...))
		}},
		{heading: "After step 8", do: func(s *docStage) { // the consumers have read, one of them not all
			at := func(topic string, partition int32, offset int64) kadm.Offset {
				return kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: -1}
			}
			s.commit(s.target, "billing", at("orders", 0, 23), at("orders", 1, 22), at("payments", 0, 21))
		}},
	}
}

// TestDocs runs every command of the pages in docs/runbooks, and of README, in
// order, and holds exit codes and outputs to what the pages say.
func TestDocs(t *testing.T) {
	stood := map[string]bool{}
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages: %v, %v", pages, err)
	}
	acts := map[string][]act{"migrate.md": migrateActs()}
	for _, path := range pages {
		page := mustReadPage(t, path, false)
		t.Run(page.name, func(t *testing.T) { playPage(t, page, acts[page.name], stood) })
	}
	t.Run("README.md", func(t *testing.T) { playReadme(t, stood) })
	for _, s := range standIns() {
		if !stood[s.begins] {
			t.Errorf("no page has the command %q any more", s.begins)
		}
		if s.reason == "" {
			t.Errorf("%q does not run, and nobody knows why", s.begins)
		}
	}
}

func playPage(t *testing.T, page *docPage, acts []act, stood map[string]bool) {
	stage := func() *docStage {
		pair := kafkatest.NewPair(t, kafkatest.Options{})
		s := newDocStage(t, pair.Source.Bootstrap, pair.Target.Bootstrap, page.unit, stood)
		s.fill()
		return s
	}
	page.play(stage(), stage, acts)
}

// play runs the steps of a page on a stage, and the alternatives on stages of
// their own; without alternative these are left out.
func (p *docPage) play(s *docStage, alternative func() *docStage, acts []act) {
	var files []docStep // what the reader has written
	main, heading := s, ""
	for _, step := range p.steps {
		if step.heading != heading {
			heading, s = step.heading, main
			for _, a := range acts {
				switch {
				case a.heading != heading:
					continue
				case a.alternative && alternative == nil:
					s = nil
					continue
				case a.alternative:
					s = alternative()
					s.follow(files)
				}
				if a.do != nil {
					a.do(s)
				}
			}
		}
		if s == nil {
			continue
		}
		if strings.HasPrefix(step.script, "export ") || strings.HasPrefix(step.script, "cat > ") {
			files = append(files, step)
		}
		s.do(step)
	}
	if main.copier != nil {
		main.t.Errorf("%s: nothing stops the copier", p.name)
	}
	for _, a := range acts {
		if !slices.ContainsFunc(p.steps, func(step docStep) bool { return step.heading == a.heading }) {
			main.t.Errorf("%s has no section %q", p.name, a.heading)
		}
	}
}

// TestDocsMirrorMakerBack: what the page says of a MirrorMaker 2 that came back and
// copied again what the copier had copied: verify tells where, resume goes on, and a
// ledger that is made anew names each double.
func TestDocsMirrorMakerBack(t *testing.T) {
	page := mustReadPage(t, "../../docs/runbooks/migrate.md", false)
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	s := newDocStage(t, pair.Source.Bootstrap, pair.Target.Bootstrap, page.unit, map[string]bool{})
	s.fill()
	for _, step := range page.steps {
		if strings.HasPrefix(step.script, "export ") || strings.HasPrefix(step.script, "cat > ") {
			s.do(step)
		}
	}
	does := func(code int, script, says string) {
		t.Helper()
		stdout, stderr, got := s.run(script)
		if got != code || !strings.Contains(evenBlanks(stdout), says) {
			t.Errorf("%s: exit code %d, want %d, and %q\n%s%s", script, got, code, says, stdout, stderr)
		}
	}
	s.mirrored()
	does(0, "apograph attach --config mm2.properties", "")
	does(0, "apograph replicate --config mm2.properties --once", "")
	s.must(s.mirror(t.Context(), "orders", 0))
	s.must(s.source.Append(t.Context(), kafkatest.None, docRecords("orders", 2)...))
	does(1, "apograph replicate --config mm2.properties --once", "foreign_writer")
	does(0, "apograph resume orders --config mm2.properties && apograph replicate --config mm2.properties --once", "")
	does(0, "apograph verify --config mm2.properties", "verdict complete\nBeside the copies the target holds 20 records or transaction markers that others wrote, at orders-0 [20, 40). ")
	does(0, "mv old-to-new.ledger before.ledger && apograph attach --config mm2.properties", "")
	does(0, "apograph verify --config mm2.properties", "named duplicate orders 0 ")
	if stdout, _, _ := s.run("apograph verify --config mm2.properties"); strings.Contains(stdout, "Beside the copies") {
		t.Errorf("others wrote beside the copies, it says:\n%s", stdout)
	}
}

// TestDocsInline: the commands that pages name in their sentences exist, with
// their flags.
func TestDocsInline(t *testing.T) {
	pages, _ := filepath.Glob("../../docs/runbooks/*.md")
	for _, path := range pages {
		for _, span := range mustReadPage(t, path, false).spans {
			words := strings.Fields(span.script)[1:]
			c, ok := docCommand(words)
			if !ok {
				t.Errorf("%s: there is no %q", span.place, span.script)
				continue
			}
			for _, word := range words {
				if name, ok := strings.CutPrefix(word, "--"); ok && !c.hasFlag(name) {
					t.Errorf("%s: %q has no flag --%s", span.place, c.path, name)
				}
			}
		}
	}
}

// playReadme runs README's commands. Its readers have a topic that is long enough
// for the offsets that it names, and MirrorMaker 2's file.
func playReadme(t *testing.T, stood map[string]bool) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	s := newDocStage(t, pair.Source.Bootstrap, pair.Target.Bootstrap, "", stood)
	s.fill()
	s.must(s.source.Append(t.Context(), kafkatest.None, docRecords("orders", 2600)...))
	s.do(docStep{place: "mm2.properties", script: "cat > mm2.properties <<END\n" +
		"clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\nemit.heartbeats.enabled = false\nEND\n"})
	mustReadPage(t, "../../README.md", true).play(s, nil, nil)
}

func docCommand(words []string) (command, bool) {
	for _, c := range commands() {
		path := strings.Fields(c.path)
		if len(words) >= len(path) && slices.Equal(words[:len(path)], path) {
			return c, true
		}
	}
	return command{}, false
}

func (c command) hasFlag(name string) bool {
	return slices.ContainsFunc(c.flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}
