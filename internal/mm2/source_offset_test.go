package mm2_test

import (
	"errors"
	"testing"

	"apograph/internal/mm2"
)

func TestParseSourceOffset(t *testing.T) {
	const key = `["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]`
	tests := []struct {
		name       string
		key, value string
		want       mm2.SourceOffset
		no         bool
	}{
		{"as MirrorMaker 2 writes it", key, `{"offset":1234}`, mm2.SourceOffset{Cluster: "A", Topic: "t", Offset: 1234}, false},
		{"of a connector with a name of its own", `["mine",{"topic":"träffic","partition":7,"cluster":"us-west"}]`, `{"offset":0}`, mm2.SourceOffset{Cluster: "us-west", Topic: "träffic", Partition: 7}, false},
		{"taken back", key, "", mm2.SourceOffset{Cluster: "A", Topic: "t", Offset: -1}, false},
		{"of checkpoints", `["MirrorCheckpointConnector",{"partition":0,"topic":"A.t","group":"g"}]`, `{"offset":0}`, mm2.SourceOffset{}, true},
		{"of heartbeats", `["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]`, `{"offset":0}`, mm2.SourceOffset{}, true},
		{"of another connector", `["file",{"filename":"f"}]`, `{"position":3}`, mm2.SourceOffset{}, true},
		{"a partition below 0", `["x",{"cluster":"A","partition":-1,"topic":"t"}]`, `{"offset":1}`, mm2.SourceOffset{}, true},
		{"a partition that is none", `["x",{"cluster":"A","partition":1.5,"topic":"t"}]`, `{"offset":1}`, mm2.SourceOffset{}, true},
		{"an offset below 0", key, `{"offset":-2}`, mm2.SourceOffset{}, true},
		{"no offset", key, `{}`, mm2.SourceOffset{}, true},
		{"one element", `["x"]`, `{"offset":1}`, mm2.SourceOffset{}, true},
		{"no JSON", "\x00", `{"offset":1}`, mm2.SourceOffset{}, true},
		{"no key", "", `{"offset":1}`, mm2.SourceOffset{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var value []byte
			if tt.value != "" {
				value = []byte(tt.value)
			}
			got, err := mm2.ParseSourceOffset([]byte(tt.key), value)
			if got != tt.want || errors.Is(err, mm2.ErrNoSourceOffset) != tt.no || err != nil && !tt.no {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
