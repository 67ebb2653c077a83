//go:build kafka

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// TestKafkaMeasuredRows puts apograph in MirrorMaker 2's place in the situations
// in which that has been measured to read again, to skip, or to copy twice. Where
// each group goes on must be right: nothing again, nothing missed.
func TestKafkaMeasuredRows(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	k := kafkatest.StartKafkas(t, kafkatest.KafkaOptions{Name: "source"}, kafkatest.KafkaOptions{Name: "target"})
	m := &measured{t: t, ctx: ctx, source: k[0], target: k[1], want: map[groupPlace]int64{}, from: map[groupPlace]int64{}}
	m.clusters = []namedCluster{{"A", m.source}, {"B", m.target}}
	m.flow = newFileFlow(t, m.clusters, []string{"A->B"})
	m.first()
	m.killed()
	m.second()
	m.third()
	m.table()
}

// measured is a flow in which all rows are played, each with topics of its own.
type measured struct {
	t              *testing.T
	ctx            context.Context
	source, target *kafkatest.Kafka
	clusters       []namedCluster
	flow           *fileFlow

	from, want map[groupPlace]int64 // by topics of the source: what groups have committed, and where they must go on
	rows       []measuredRow
}

// A measuredRow is one line of the table.
type measuredRow struct {
	number                         int
	situation, mirrorMaker, result string
}

func (m *measured) must(errs ...error) {
	m.t.Helper()
	if err := errors.Join(errs...); err != nil {
		m.t.Fatal(err)
	}
}

// append appends records of unique values, as one batch or one by one.
func (m *measured) append(topic string, from, to, batch int) {
	m.t.Helper()
	p, err := m.source.Producer(kafkatest.None)
	m.must(err)
	defer p.Close()
	for ; from < to; from += batch {
		var records []*kgo.Record
		for i := from; i < min(from+batch, to); i++ {
			records = append(records, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%s %d", topic, i)})
		}
		m.must(p.Append(m.ctx, records...))
	}
}

// at has a group of a topic commit an offset, and says where it must go on.
func (m *measured) at(topic string, committed, want int64) {
	m.t.Helper()
	p := groupPlace{fmt.Sprintf("%s at %d", topic, committed), topic, 0}
	m.from[p], m.want[p] = committed, want
	commitAll(m.t, m.source, map[groupPlace]int64{p: committed})
}

// first fills the topics and copies them.
func (m *measured) first() {
	m.t.Helper()
	topics := map[string]kafkatest.TopicState{}
	for _, name := range []string{"one", "slow", "transactions", "idle", "before", "overtaken", "busy", "quiet", "lagless", "burst", "rewound"} {
		topics[name] = kafkatest.TopicState{Partitions: 1, Settings: kafkatest.LoadConfigs()}
	}
	m.must(m.source.CreateTopics(m.ctx, topics))
	m.append("one", 0, 3590, 500)
	m.append("slow", 0, 70, 1)
	m.transactions()
	m.append("idle", 0, 270, 50)
	m.append("before", 0, 400, 50)
	m.must(m.source.DeleteRecords(m.ctx, "before", 0, 100))
	m.append("overtaken", 0, 300, 50)
	m.append("busy", 0, 633, 50)
	m.append("quiet", 0, 40, 1)
	m.append("rewound", 0, 300, 50)
	for _, offset := range []int64{101, 500, 900, 1795, 3589, 3590} {
		m.at("one", offset, offset)
	}
	m.at("slow", 70, 70)
	m.at("idle", 270, 270)
	m.at("before", 50, 0) // of 400 records 300 are left
	m.at("busy", 600, 600)
	m.at("quiet", 40, 40)
	m.at("rewound", 300, 300)
	m.flow.start()
	m.synced()
	m.append("idle", 270, 300, 1)
	m.synced()
	m.row(1, "group not near the end: 900, 500, 1,795, 101 of 3,590 records", "899, 499, 178, 100 again", m.again("one", 900, 500, 1795, 101))
	m.row(2, "group that keeps up: at the end of 3,590, and 1 before", "54, 53 again", m.again("one", 3590, 3589))
	m.row(3, "slow topic of 70 records, group at the end", "69 again", m.again("slow", 70))
	m.row(5, "idle group at 270 of 300", "67 again, for ever", m.again("idle", 270))
	m.latest()
}

// transactions fills a topic with transactions of three records, some aborted, and
// has groups stand at the end and in the middle.
func (m *measured) transactions() {
	m.t.Helper()
	p, err := m.source.TransactionalProducer("measured", kafkatest.None)
	m.must(err)
	defer p.Close()
	for i := range 300 {
		var records []*kgo.Record
		for j := range 3 {
			records = append(records, &kgo.Record{Topic: "transactions", Value: fmt.Appendf(nil, "transactions %d", 3*i+j)})
		}
		m.must(p.Begin(), p.Append(m.ctx, records...), p.End(m.ctx, i%10 != 9))
	}
	m.must(m.source.WaitDecided(m.ctx, "transactions"))
	// 300 transactions of four offsets, of which every tenth has nothing to read.
	m.at("transactions", 1200, 810)
	m.at("transactions", 600, 405)
}

// synced waits until all groups stand where they must.
func (m *measured) synced() {
	m.t.Helper()
	want := map[groupPlace]int64{}
	for p, at := range m.want {
		want[groupPlace{p.group, "A." + p.topic, 0}] = at
	}
	committedSoon(m.t, m.target, want)
}

func (m *measured) row(number int, situation, mirrorMaker, result string) {
	m.rows = append(m.rows, measuredRow{number, situation, mirrorMaker, result})
}

// again counts what groups of a topic read again that go on where they stand now,
// and says it.
func (m *measured) again(topic string, committed ...int64) string {
	m.t.Helper()
	o := m.oracle(topic)
	var all []string
	for _, from := range committed {
		group := fmt.Sprintf("%s at %d", topic, from)
		start, there := committedOn(m.t, m.target, group)[groupPlace{group, "A." + topic, 0}]
		again, missed := o.outcome(from, start)
		if !there || again != 0 || missed != 0 || start != o.exact(from) {
			m.t.Errorf("%s goes on at %d (%t), exact is %d: %d again, %d missed", group, start, there, o.exact(from), again, missed)
		}
		all = append(all, fmt.Sprint(again))
	}
	return strings.Join(all, ", ") + " again"
}

// oracle reads both sides of a topic when it is copied whole.
func (m *measured) oracle(topic string) (o *copyOracle) {
	m.t.Helper()
	copied := within(m.t, time.Minute, func() bool {
		o = newCopyOracle(m.ctx, m.t, m.source, topic, m.target, "A."+topic, 0)
		return o.complete()
	})
	if !copied {
		m.t.Fatalf("%s is not copied", topic)
	}
	return o
}

// latest has a consumer go on in the group that stood before all that was copied,
// with auto.offset.reset=latest.
func (m *measured) latest() {
	m.t.Helper()
	group := "before at 50"
	got, err := m.target.JavaFailOver(m.ctx, m.target.Bootstrap, kafkatest.FailOver{Topic: "A.before", Protocol: "classic", Reset: "latest", Groups: []string{group}})
	m.must(err)
	if r := got[group]; r.Start != 0 || r.Records != 300 {
		m.t.Errorf("%s: %+v", group, r)
	}
	m.row(7, "group committed before the first copied record, auto.offset.reset=latest", "all 300 unread records skipped", fmt.Sprintf("%d of 300 skipped", 300-got[group].Records))
}

// killed kills the copier, and lets things happen while none runs.
func (m *measured) killed() {
	m.t.Helper()
	m.flow.kill()
	m.append("overtaken", 300, 600, 50)
	m.must(m.source.DeleteRecords(m.ctx, "overtaken", 0, 450))
	m.at("overtaken", 400, 300) // in the hole
	rewound := groupPlace{"rewound at 300", "rewound", 0}
	commitAll(m.t, m.source, map[groupPlace]int64{rewound: 40}) // and the target stays
}

// second goes on, with offset.lag.max=0.
func (m *measured) second() {
	m.t.Helper()
	m.append("lagless", 0, 270, 50)
	m.at("lagless", 270, 270)
	m.flow.write(m.clusters, "offset.lag.max=0")
	m.flow.start()
	m.synced()
	m.append("lagless", 270, 300, 1)
	m.append("burst", 0, 400, 400)
	for _, offset := range []int64{5, 89, 200, 300, 390, 400} {
		m.at("burst", offset, offset)
	}
	m.synced()
	m.row(4, "transactional source: at the end of 1,200 offsets, and at 600", "4, 499 again", m.again("transactions", 1200, 600))
	m.row(6, "idle group at 270 of 300 with offset.lag.max=0", "7 again", m.again("lagless", 270))
	m.row(10, "burst of 400 with offset.lag.max=0: groups at 5, 89, 200, 300, 390, 400", "30 syncs for 400 records", m.again("burst", 5, 89, 200, 300, 390, 400))
	m.overtaken()
	m.twice()
	m.rewound(300)
	m.flow.stop()
}

// overtaken expects what retention took from a stopped copier to be named.
func (m *measured) overtaken() {
	m.t.Helper()
	code, report := m.flow.ask("A->B", "verify", "--topics", "overtaken", "-o", "json")
	if code != 3 || !strings.Contains(report, `"source_offsets":{"start":300,"end":450}`) || !strings.Contains(report, `"kind":"lost"`) {
		m.t.Errorf("verify: exit code %d, %s", code, report)
	}
	code, answer := m.flow.ask("A->B", "translate", "overtaken:0:400", "-o", "json")
	if code != 4 || !strings.Contains(answer, `"target_offset":300,"status":"lost","distance":50`) {
		m.t.Errorf("translate: exit code %d, %s", code, answer)
	}
	m.again("overtaken", 400)
	m.row(8, "retention overtook a stopped copier: source 300-449 gone, group at 400", "one INFO line; 300 without a warning", "lost, named by every command (exit 3); 300, and that 50 are skipped")
}

// twice expects nothing to have been copied twice after the kill.
func (m *measured) twice() {
	m.t.Helper()
	doubled := 0
	for topic, records := range map[string]int{"busy": 633, "quiet": 40} {
		copied, err := m.target.ReadUncommitted(m.ctx, "A."+topic, 0)
		m.must(err)
		doubled += len(copied) - records
	}
	if doubled != 0 {
		m.t.Errorf("%d records were copied twice after the kill", doubled)
	}
	kafkatest.Compare(m.t, m.source.Bootstrap, m.target.Bootstrap, map[string]string{"busy": "A.busy", "quiet": "A.quiet"})
	m.row(9, "SIGKILL before the first flush; a quiet topic fully read (40 of 40)", "633 + 40 records copied twice; 39 again", fmt.Sprintf("%d copied twice; %s", doubled, m.again("quiet", 40)))
}

// rewound expects the checkpoint to follow the group that went back on the source,
// and the commit on the target to be as wanted.
func (m *measured) rewound(committed int64) {
	m.t.Helper()
	const group = "rewound at 300"
	answers, err := m.target.MirrorAnswers(m.ctx, kafkatest.MirrorQuestion{
		Properties: map[string]string{"bootstrap.servers": m.target.Server()}, Aliases: []string{"A"}, Groups: []string{group},
	})
	m.must(err)
	if got := answers[0].Upstream["A"].Offset(group, "A.rewound", 0); got != 40 {
		m.t.Errorf("the checkpoint of %s is %d, want 40", group, got)
	}
	if got := committedOn(m.t, m.target, group)[groupPlace{group, "A.rewound", 0}]; got != committed {
		m.t.Errorf("%s is at %d on the target, want %d", group, got, committed)
	}
}

// third allows rewinds.
func (m *measured) third() {
	m.t.Helper()
	m.want[groupPlace{"rewound at 300", "rewound", 0}] = 40
	m.flow.write(m.clusters, "apograph.sync.group.rewinds=true")
	m.flow.start()
	m.synced()
	m.rewound(40)
	m.flow.stop()
	m.row(11, "rewind on the source, 300 to 40", "checkpoint 1, the group stays at 258", "checkpoint 40; the group stays at 300, or with apograph.sync.group.rewinds=true is at 40")
}

// table writes all rows.
func (m *measured) table() {
	m.t.Helper()
	byNumber := map[int]measuredRow{}
	for _, row := range m.rows {
		byNumber[row.number] = row
	}
	var b strings.Builder
	b.WriteString("| # | situation | MirrorMaker 2 | apograph |\n| --: | --- | --- | --- |\n")
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		row := byNumber[number]
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", number, row.situation, row.mirrorMaker, row.result)
	}
	writeTable(m.t, "measured-rows", b.String())
	if len(byNumber) != 11 {
		m.t.Errorf("%d rows of 11", len(byNumber))
	}
}
