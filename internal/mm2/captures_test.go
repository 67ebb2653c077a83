package mm2_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apograph/internal/mm2"
)

// A capture is what a real MirrorMaker 2 wrote between two real brokers, and what
// its own classes answered: testdata/captures.
type capture struct {
	Syncs       string            `json:"offset_syncs_topic"`
	SyncsOn     string            `json:"offset_syncs_cluster"`
	Checkpoints string            `json:"checkpoints_topic"`
	Target      string            `json:"target_alias"`
	Internal    []captureRecord   `json:"internal"`
	Partitions  []capturePair     `json:"partitions"`
	Groups      []captureOfGroups `json:"groups"`
}

type captureRecord struct {
	Cluster string `json:"cluster"`
	Topic   string `json:"topic"`
	Offset  int64  `json:"offset"`
	Key     string `json:"key"`
	Value   string `json:"value"`
}

type capturePair struct {
	Source    string     `json:"source"`
	Partition int32      `json:"partition"`
	Target    string     `json:"target"`
	Kept      [][3]int64 `json:"store_kept"`
	Translate [][3]int64 `json:"store_translate"`
	OnlyLast  [][3]int64 `json:"store_translate_only_last"`
}

type captureOfGroups struct {
	Group   string `json:"group"`
	Offsets []struct {
		Source     string `json:"source"`
		Partition  int32  `json:"partition"`
		Upstream   int64  `json:"upstream"`
		JavaClient *int64 `json:"java_client"`
	} `json:"offsets"`
}

func captures(t *testing.T) map[string]capture {
	t.Helper()
	paths, err := filepath.Glob("testdata/captures/*.json")
	if err != nil || len(paths) != 11 {
		t.Fatalf("%v, %v", paths, err)
	}
	all := map[string]capture{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var c capture
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = c
	}
	return all
}

// bytesOf returns key and value of a record.
func (r captureRecord) bytesOf(t *testing.T) (key, value []byte) {
	t.Helper()
	key, keyErr := hex.DecodeString(r.Key)
	value, valueErr := hex.DecodeString(r.Value)
	if keyErr != nil || valueErr != nil {
		t.Fatalf("%+v", r)
	}
	return key, value
}

// kindOf says which kind of records a topic of a capture has.
func (c *capture) kindOf(r captureRecord) string {
	switch {
	case r.Topic == c.Syncs && r.Cluster == c.SyncsOn:
		return "offset_sync"
	case r.Topic == c.Checkpoints && r.Cluster == c.Target:
		return "checkpoint"
	case strings.HasSuffix(r.Topic, "heartbeats"):
		return "heartbeat"
	}
	return ""
}

// TestCapturesAreReadAndWritten: every record, to the byte.
func TestCapturesAreReadAndWritten(t *testing.T) {
	seen := map[string]int{}
	for name, c := range captures(t) {
		for _, r := range c.Internal {
			kind := c.kindOf(r)
			if kind == "" {
				continue // of Connect
			}
			key, value := r.bytesOf(t)
			got, err := parseWire(t, kind, key, value)
			if err != nil {
				t.Errorf("%s %+v: %v", name, r, err)
				continue
			}
			k, v, err := got.encode(t, kind)
			if err != nil || !bytes.Equal(k, key) || !bytes.Equal(v, value) {
				t.Errorf("%s %+v: written %x %x, %v", name, r, k, v, err)
			}
			seen[kind]++
		}
	}
	if seen["offset_sync"] < 300 || seen["checkpoint"] < 90 || seen["heartbeat"] < 100 {
		t.Errorf("records: %v", seen)
	}
}

// storeOf returns a store that has read all syncs of a capture.
func (c *capture) storeOf(t *testing.T, lastOnly bool) *mm2.OffsetSyncStore {
	t.Helper()
	store := mm2.NewOffsetSyncStore(lastOnly)
	for _, r := range c.Internal {
		if c.kindOf(r) == "offset_sync" {
			sync, err := mm2.ParseOffsetSync(r.bytesOf(t))
			if err != nil {
				t.Fatal(err)
			}
			store.Add(sync)
		}
	}
	store.ReachedEnd()
	return store
}

// TestCapturesAreTranslated: for every offset that a group could have committed,
// the answer is that of MirrorMaker 2's class. In a capture null is no answer, but
// an answer of 0 reads the same, so known is asked for apart.
func TestCapturesAreTranslated(t *testing.T) {
	answers := 0
	for name, c := range captures(t) {
		all, last := c.storeOf(t, false), c.storeOf(t, true)
		for _, p := range c.Partitions {
			var kept [][3]int64
			for _, k := range all.Kept(p.Source, p.Partition) {
				kept = append(kept, [3]int64{int64(k.Slot), k.Upstream, k.Downstream})
			}
			if fmt.Sprint(kept) != fmt.Sprint(p.Kept) {
				t.Errorf("%s %s-%d keeps %v, want %v", name, p.Source, p.Partition, kept, p.Kept)
			}
			for store, ranges := range map[*mm2.OffsetSyncStore][][3]int64{all: p.Translate, last: p.OnlyLast} {
				for _, r := range ranges {
					for g := r[0]; g <= r[1]; g++ {
						if got, _ := store.Translate(p.Source, p.Partition, g); got != r[2] {
							t.Errorf("%s %s-%d: %d becomes %d, want %d", name, p.Source, p.Partition, g, got, r[2])
						}
						answers++
					}
				}
			}
		}
	}
	if answers < 10000 {
		t.Errorf("%d answers", answers)
	}
}

// TestCapturesOfClients: what RemoteClusterUtils.translateOffsets answered is the
// last checkpoint of the group.
func TestCapturesOfClients(t *testing.T) {
	answers := 0
	for name, c := range captures(t) {
		targets := map[string]string{}
		for _, p := range c.Partitions {
			targets[fmt.Sprintf("%s-%d", p.Source, p.Partition)] = p.Target
		}
		var records [][2][]byte
		for _, r := range c.Internal {
			if c.kindOf(r) == "checkpoint" {
				key, value := r.bytesOf(t)
				records = append(records, [2][]byte{key, value})
			}
		}
		for _, g := range c.Groups {
			read := remoteOffsets(t, records, g.Group)
			for _, o := range g.Offsets {
				if o.JavaClient == nil {
					continue
				}
				topic := targets[fmt.Sprintf("%s-%d", o.Source, o.Partition)]
				if got := read[fmt.Sprintf("%s-%d", topic, o.Partition)]; got.Downstream != *o.JavaClient {
					t.Errorf("%s: group %s in %s-%d: %+v, want %d", name, g.Group, topic, o.Partition, got, *o.JavaClient)
				}
				answers++
			}
		}
	}
	if answers < 30 {
		t.Errorf("%d answers", answers)
	}
}
