package lint_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/lint"
)

// facts returns two clusters about which there is nothing to find with the topics
// and the patterns of the tests below.
func facts() lint.Facts {
	const every = lint.Rights(1<<kmsg.ACLOperationRead | 1<<kmsg.ACLOperationWrite | 1<<kmsg.ACLOperationCreate | 1<<kmsg.ACLOperationAlter |
		1<<kmsg.ACLOperationDescribe | 1<<kmsg.ACLOperationDescribeConfigs | 1<<kmsg.ACLOperationAlterConfigs)
	topic := func(name string) lint.TopicFacts { return lint.TopicFacts{Name: name, Rights: every} }
	return lint.Facts{
		Clusters: map[string]*lint.ClusterFacts{
			"a": {ID: "id-a", Brokers: 3, Rights: every, Topics: []lint.TopicFacts{topic("orders"), topic("pay")}},
			"b": {ID: "id-b", Brokers: 3, Rights: every, Topics: []lint.TopicFacts{topic("a.orders")}},
		},
		Schemas: map[string]*lint.SchemaFacts{"a->b": {Registry: "http://registry", Topics: map[string][]int{"orders": {7}}}},
	}
}

const pay = "topics = orders, pay\nsync.topic.acls.enabled = true\n"

// TestWhatTheClustersSay: each code about clusters has a case that has it and, with
// the one change that is in more, one that has not.
func TestWhatTheClustersSay(t *testing.T) {
	topics := func(f lint.Facts, alias string, names ...string) {
		for _, name := range names {
			f.Clusters[alias].Topics = append(f.Clusters[alias].Topics, lint.TopicFacts{Name: name, Rights: lint.RightsUnknown})
		}
	}
	without := func(f lint.Facts, alias string, operation kmsg.ACLOperation) {
		for i := range f.Clusters[alias].Topics {
			f.Clusters[alias].Topics[i].Rights &^= 1 << operation
		}
	}
	tests := []struct {
		code, lines string
		change      func(lint.Facts)
		line        int      // of the finding
		says        []string // parts of the message
		near        string   // lines with which the same facts have no such finding; "": there are none
	}{
		{code: "AP0701", lines: pay, change: func(f lint.Facts) { f.Clusters["b"] = &lint.ClusterFacts{Err: errors.New("b is gone")} }, line: 3, says: []string{"b is gone"}},
		{code: "AP0702", lines: pay, change: func(f lint.Facts) { without(f, "a", kmsg.ACLOperationRead) }, line: 2, says: []string{"READ", "orders, pay"}, near: "topics = other\n"},
		{code: "AP0702", lines: pay, change: func(f lint.Facts) { without(f, "b", kmsg.ACLOperationWrite) }, line: 3, says: []string{"WRITE", "a.orders"}, near: "topics = pay\n"},
		{code: "AP0702", lines: pay, change: func(f lint.Facts) { without(f, "b", kmsg.ACLOperationAlterConfigs) }, line: 3, says: []string{"ALTER_CONFIGS"}, near: pay + "sync.topic.configs.enabled = false\n"},
		{code: "AP0702", lines: pay, change: func(f lint.Facts) { f.Clusters["b"].Unmakable = []string{"a.pay"} }, line: 3, says: []string{"CREATE on 1 topic: a.pay"}, near: "topics = orders\n"},
		{code: "AP0702", lines: pay, change: func(f lint.Facts) {
			f.Clusters["b"].Topics = append(f.Clusters["b"].Topics, lint.TopicFacts{Name: "a.pay", Rights: lint.RightsUnknown, Hidden: true})
		}, line: 3, says: []string{"DESCRIBE on 1 topic: a.pay"}, near: "topics = orders\n"},
		{code: "AP0714", lines: pay, change: func(f lint.Facts) { f.Clusters["a"].Unmakable = []string{"mm2-offset-syncs.b.internal"} }, line: 2,
			says: []string{"CREATE on mm2-offset-syncs.b.internal", "emit.offset-syncs.enabled"}, near: "topics = pay\noffset-syncs.topic.location = target\n"},
		{code: "AP0714", lines: pay, change: func(f lint.Facts) {
			f.Clusters["b"].Topics = append(f.Clusters["b"].Topics, lint.TopicFacts{Name: "a.checkpoints.internal", Rights: 1 << kmsg.ACLOperationDescribe})
		}, line: 3, says: []string{"WRITE and READ on a.checkpoints.internal"}, near: pay + "emit.checkpoints.enabled = false\n"},
		{code: "AP0714", lines: pay, change: func(f lint.Facts) {
			f.Clusters["b"].Topics = append(f.Clusters["b"].Topics, lint.TopicFacts{Name: "heartbeats", Rights: lint.RightsUnknown, Hidden: true})
		}, line: 3, says: []string{"DESCRIBE on heartbeats"}, near: pay + "emit.heartbeats.enabled = false\n"},
		{code: "AP0713", lines: pay, change: func(f lint.Facts) { f.Clusters["b"].Rights &^= 1 << kmsg.ACLOperationAlter }, line: 3, says: []string{"ALTER", "ACL"}, near: "topics = orders, pay\nsync.topic.acls.enabled = false\n"},
		{code: "AP0713", lines: pay, change: func(f lint.Facts) { f.Clusters["a"].Rights &^= 1 << kmsg.ACLOperationDescribe }, line: 2, says: []string{"DESCRIBE", "ACL"}, near: "topics = orders, pay\nsync.topic.acls.enabled = false\n"},
		{code: "AP0702", lines: "topics = orders, hid", change: func(f lint.Facts) {
			f.Clusters["a"].Topics = append(f.Clusters["a"].Topics, lint.TopicFacts{Name: "hid", Rights: lint.RightsUnknown, Hidden: true})
		}, line: 2, says: []string{"DESCRIBE", "hid"}, near: pay},
		{code: "AP0703", lines: "topics = orders, payments", line: 5, says: []string{"payments"}, near: pay},
		{code: "AP0704", lines: "topics = app.orders", change: func(f lint.Facts) { topics(f, "a", "app.orders", "app-orders") }, line: 5, says: []string{"app-orders"}, near: `topics = app\\.orders`},
		{code: "AP0705", lines: "topics = .*", change: func(f lint.Facts) { topics(f, "a", "_schemas", "connect-status") }, line: 5, says: []string{"_schemas, connect-status"}, near: pay},
		{code: "AP0706", lines: pay, change: func(f lint.Facts) { f.Clusters["b"].ID = "id-a" }, line: 4, says: []string{"id-a"}},
		{code: "AP0707", lines: pay + "apograph.schema.registry.url = http://registry", change: func(f lint.Facts) {
			f.Schemas["a->b"].Unknown = map[string][]int{"orders": {7}}
		}, line: 7, says: []string{"7", "orders"}},
		{code: "AP0708", lines: pay, change: func(f lint.Facts) { f.Schemas["a->b"].Registry = "" }, line: 4, says: []string{"orders"}},
		{code: "AP0709", lines: pay + "apograph.policy = map\napograph.policy.map = orders=all, pay=all", line: 7, says: []string{"orders and pay", "all"}, near: pay + "apograph.policy = map\napograph.policy.map = orders=all"},
		{code: "AP0710", lines: pay + "replication.factor = 4", line: 7, says: []string{"3 brokers", "4 replicas"}, near: pay + "replication.factor = 3"},
		{code: "AP0711", lines: pay + "apograph.schema.registry.url = http://registry", change: func(f lint.Facts) { f.Schemas["a->b"].Err = errors.New("gone") }, line: 7, says: []string{"gone"}},
		{code: "AP0712", lines: "topics = other", line: 4, says: []string{"a->b"}, near: pay},
	}
	covered := map[string]bool{}
	for _, tt := range tests {
		covered[tt.code] = true
		t.Run(tt.code+" "+strings.Join(tt.says, " "), func(t *testing.T) {
			found := func(lines string, change func(lint.Facts)) []lint.Finding {
				f := facts()
				if change != nil {
					change(f)
				}
				r := check(flowLines + lines)
				r.CheckClusters(f)
				return of(r, tt.code)
			}
			got := found(tt.lines, tt.change)
			if len(got) != 1 || got[0].Line != tt.line {
				t.Fatalf("found %v, want one in line %d", got, tt.line)
			}
			for _, part := range tt.says {
				if !strings.Contains(got[0].Message, part) {
					t.Errorf("%q lacks %q", got[0].Message, part)
				}
			}
			if tt.near != "" {
				if got := found(tt.near, tt.change); len(got) > 0 {
					t.Errorf("found %v", got)
				}
			} else if got := found(tt.lines, nil); len(got) > 0 {
				t.Errorf("found %v without the change", got)
			}
		})
	}
	for _, c := range lint.Codes() {
		if strings.HasPrefix(c.ID, "AP07") && !covered[c.ID] {
			t.Errorf("%s has no test", c.ID)
		}
	}
}

// TestAnUnreachableClusterKeepsNothingElseBack: what the other one says is told.
func TestAnUnreachableClusterKeepsNothingElseBack(t *testing.T) {
	f := facts()
	f.Clusters["b"] = &lint.ClusterFacts{Err: errors.New("gone")}
	r := check(flowLines + "topics = nothing")
	r.CheckClusters(f)
	for _, code := range []string{"AP0701", "AP0703", "AP0712"} {
		if len(of(r, code)) != 1 {
			t.Errorf("%s: %v", code, r.Findings)
		}
	}
}

// TestRightsThatAreNotToldAreNotMissing: brokers before 2.3 do not say.
func TestRightsThatAreNotToldAreNotMissing(t *testing.T) {
	f := facts()
	for _, k := range f.Clusters {
		k.Rights = lint.RightsUnknown
		for i := range k.Topics {
			k.Topics[i].Rights = lint.RightsUnknown
		}
	}
	r := check(flowLines + pay)
	r.CheckClusters(f)
	if got := of(r, "AP0702"); len(got) > 0 || !slices.Equal(r.Flows, []lint.Flow{{Source: "a", Target: "b"}}) {
		t.Errorf("%v, flows %v", got, r.Flows)
	}
}
