package ledger

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// The buckets of a ledger file. There are no others, and none inside another.
const (
	bucketMeta    = "meta"    // format, identity, last commit
	bucketPairs   = "pairs"   // pair -> opening, producers, closing
	bucketState   = "state"   // pair -> last seen bounds, last folded commit
	bucketPages   = "pages"   // pair, source, target -> totals before, entries
	bucketTargets = "targets" // pair, target, source -> nothing
	bucketJournal = "journal" // commit -> entries and states that are not folded yet

	// From format 2 on: the books beside the pairs.
	bucketTopics = "topics" // topic id or name -> when and how it was seen first
	bucketMade   = "made"   // target topic id or name -> settings that were set last
	bucketOrders = "orders" // topic, partition -> what a person ordered
	bucketStops  = "stops"  // topic, partition -> why it cannot go on

	// From format 3 on: what is known about entries of the pairs.
	bucketAccepted = "accepted" // pair, source -> who accepts what, and why
	bucketDoubts   = "doubts"   // pair, kind, source -> since when it is in doubt

	// From format 4 on.
	bucketGroups = "groups" // group -> what was committed for it on the target
)

// bucketNames returns the buckets of a file of a format that this version
// knows.
func bucketNames(format int) []string {
	names := []string{bucketJournal, bucketMeta, bucketPages, bucketPairs, bucketState, bucketTargets}
	if format >= formatFlow {
		names = append(names, flowBuckets()...)
	}
	if format >= formatMarks {
		names = append(names, bucketAccepted, bucketDoubts)
	}
	if format >= formatGroups {
		names = append(names, bucketGroups)
	}
	return names
}

// flowBuckets returns the buckets of the books beside the pairs.
func flowBuckets() []string { return []string{bucketMade, bucketOrders, bucketStops, bucketTopics} }

const checksumSize = 8

// newValue returns the start of a value with room for its checksum and size
// more bytes.
func newValue(size int) []byte { return make([]byte, checksumSize, checksumSize+size) }

// seal writes the checksum into the front of value, which newValue started, and
// returns it.
func seal(bucket string, key, value []byte) []byte {
	binary.BigEndian.PutUint64(value, checksum(bucket, key, value[checksumSize:]))
	return value
}

// unseal returns the payload of a value. It reports false if the value is not
// the one that was written under this key of this bucket.
func unseal(bucket string, key, value []byte) ([]byte, bool) {
	if len(value) < checksumSize {
		return nil, false
	}
	payload := value[checksumSize:]
	return payload, binary.BigEndian.Uint64(value) == checksum(bucket, key, payload)
}

// checksum covers where the value stands as well as what it holds, so that a
// value that was moved or doubled is noticed. Lengths keep the parts apart.
func checksum(bucket string, key, payload []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write([]byte{byte(len(bucket)), byte(len(key))})
	_, _ = d.WriteString(bucket)
	_, _ = d.Write(key)
	_, _ = d.Write(payload)
	return d.Sum64()
}
