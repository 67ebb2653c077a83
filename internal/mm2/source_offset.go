package mm2

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A SourceOffset is what Connect keeps of a partition for MirrorMaker 2's source
// connector: the offset of the last record that it has copied
// (MirrorUtils.wrapPartition, wrapOffset; OffsetStorageWriter).
type SourceOffset struct {
	Cluster   string // alias of the source
	Topic     string // on the source
	Partition int32
	Offset    int64 // -1: Connect has forgotten it
}

// ErrNoSourceOffset says that a record of Connect's topic of source offsets is
// none of a source connector of MirrorMaker 2.
var ErrNoSourceOffset = errors.New("no source offset of MirrorMaker 2")

// ParseSourceOffset reads a record of Connect's topic of source offsets
// (offset.storage.topic), whatever the connector is called. The error is
// [ErrNoSourceOffset].
func ParseSourceOffset(key, value []byte) (SourceOffset, error) {
	var named []json.RawMessage
	if err := json.Unmarshal(key, &named); err != nil || len(named) != 2 {
		return SourceOffset{}, fmt.Errorf("key: %w", ErrNoSourceOffset)
	}
	var of struct {
		Cluster   *string `json:"cluster"`
		Topic     *string `json:"topic"`
		Partition *int32  `json:"partition"`
	}
	if err := json.Unmarshal(named[1], &of); err != nil || of.Cluster == nil || of.Topic == nil || of.Partition == nil || *of.Partition < 0 {
		return SourceOffset{}, fmt.Errorf("key: %w", ErrNoSourceOffset)
	}
	found := SourceOffset{*of.Cluster, *of.Topic, *of.Partition, -1}
	if value == nil {
		return found, nil
	}
	var at struct {
		Offset *int64 `json:"offset"`
	}
	if err := json.Unmarshal(value, &at); err != nil || at.Offset == nil || *at.Offset < 0 {
		return SourceOffset{}, fmt.Errorf("value: %w", ErrNoSourceOffset)
	}
	found.Offset = *at.Offset
	return found, nil
}
