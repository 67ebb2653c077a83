package fuzz

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/internal/mm2"
	"apograph/replicate"
	"apograph/verify"
)

// TestVerifyKnowsWhatThePolicyLeavesOut: verify is told of no policy, and yet
// misses no book of topics that a policy leaves out, and judges those that it
// adds, and a copy under another name.
func TestVerifyKnowsWhatThePolicyLeavesOut(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	out := []string{"a_target_x", "source_source_x", "source_checkpoints_internal", "mm2-y_internal"}
	for i, topic := range append([]string{"orders", "heartbeats", "far_heartbeats"}, out...) {
		if err := pair.Source.CreateTopic(t.Context(), topic, 1, nil); err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: topic, Value: []byte(topic), Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i))}
		if err := pair.Source.Append(t.Context(), kafkatest.None, r); err != nil {
			t.Fatal(err)
		}
	}
	policy, err := mm2.ParsePolicy(map[string]string{mm2.PolicySeparatorKey: "_"})
	if err != nil {
		t.Fatal(err)
	}
	at := func(alias string, b kafkatest.Bootstrap) connect.Cluster {
		return connect.Cluster{Alias: alias, Bootstrap: b.Addresses, Options: b.DialOptions()}
	}
	config := replicate.Config{
		Source: at("source", pair.Source.Bootstrap), Target: at("target", pair.Target.Bootstrap), LedgerPath: filepath.Join(t.TempDir(), "flow.ledger"),
		Topics: []string{"[^h]*|.*checkpoints.*"}, Policy: policy, Heartbeats: true, Once: true,
	}
	summary, err := replicate.Run(t.Context(), config)
	if err != nil || !summary.Complete || summary.Topics != 3 {
		t.Fatalf("%v, %+v", err, summary)
	}
	report, err := verify.Run(t.Context(), verify.Config{LedgerPath: config.LedgerPath, Source: &config.Source, Target: &config.Target})
	if err != nil || report.Verdict != verify.Complete || report.Summary.Equal != 3 || len(report.Findings) > 0 {
		t.Fatalf("%v, %s, %+v, findings %+v", err, report.Verdict, report.Summary, report.Findings)
	}
	for _, p := range report.Partitions {
		if p.TargetTopic == nil || *p.TargetTopic != "source_"+p.Topic || strings.Contains(strings.Join(out, ","), p.Topic) {
			t.Errorf("%+v", p)
		}
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}
