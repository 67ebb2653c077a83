package ledger

import (
	"encoding/base64"
	"fmt"
)

// A TopicID is the id of a topic (KIP-516). The zero value means unknown:
// Kafka's Uuid.ZERO_UUID is never the id of a topic.
type TopicID [16]byte

// String returns the id as Kafka's Uuid.toString and its tools write it: 22
// characters of URL-safe base64 without padding.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTopicID is the inverse of [TopicID.String].
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	// Strict: otherwise four texts would name each id, by the unused low bits
	// of the last character.
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != len(id) || len(s) != 22 {
		return TopicID{}, fmt.Errorf("ledger: invalid topic id %q", s)
	}
	copy(id[:], b)
	return id, nil
}
