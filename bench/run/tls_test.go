package main

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestCopiesOverTLS has each candidate of ours copy between fakes that speak TLS
// alone.
func TestCopiesOverTLS(t *testing.T) {
	ctx := testContext(t)
	ca, keys := filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(t.TempDir(), "keys.pem")
	must(t, writeKeys(ca, keys))
	certificate, err := tls.LoadX509KeyPair(keys, keys)
	must(t, err)
	fake := func(id string, options ...kfake.Opt) string {
		secure := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
		c, err := kfake.NewCluster(append(options, kfake.NumBrokers(1), kfake.ClusterID(id), kfake.TLS(secure))...)
		must(t, err)
		t.Cleanup(c.Close)
		return strings.Join(c.ListenAddrs(), ",")
	}
	source, target := fake("source", kfake.SeedTopics(2, "a", "b")), fake("target")
	dial, err := dialOptions(ca)
	must(t, err)
	writeSome(t, ctx, source, dial, "a", "b")
	must(t, copierCommand(ctx, []string{"-source", source, "-target", target, "-topic", "a", "-ca", ca}))
	path := filepath.Join(t.TempDir(), "f.ledger")
	must(t, engineCommand(ctx, []string{"-source", source, "-target", target, "-topic", "b", "-ledger", path, "-ca", ca}))
	for _, topic := range []string{"a", "b"} {
		ends, err := readEnds(ctx, target, topic, dial...)
		must(t, err)
		if ends[0] != 100 || ends[1] != 100 {
			t.Errorf("%s ends at %v", topic, ends)
		}
	}
	if err := copierCommand(ctx, []string{"-source", source, "-target", target, "-topic", "b"}); err == nil {
		t.Error("without TLS it copies as well")
	}
}

func writeSome(t *testing.T, ctx context.Context, servers string, dial []kgo.Opt, topics ...string) {
	t.Helper()
	client, err := kgo.NewClient(append(dial, kgo.SeedBrokers(servers), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	must(t, err)
	defer client.Close()
	for _, topic := range topics {
		for i := range 200 {
			must(t, client.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: []byte(strconv.Itoa(i))}).FirstErr())
		}
	}
}

func TestNoCertificateNoTLS(t *testing.T) {
	if dial, err := dialOptions(""); dial != nil || err != nil {
		t.Errorf("%v, %v", dial, err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	must(t, os.WriteFile(empty, []byte("no certificate"), 0o600))
	for _, path := range []string{empty, empty + "-not"} {
		if _, err := dialOptions(path); err == nil {
			t.Errorf("%s is a certificate", path)
		}
	}
}
