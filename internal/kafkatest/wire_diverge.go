package kafkatest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A fetched is what a client has said of a partition that it fetches: where, and
// the leader epoch of what stands before that.
type fetched struct {
	topic  string // may be empty where id is not
	id     [16]byte
	number int32
	offset int64
	epoch  int32
}

type fetchedKey struct {
	topic  string
	id     [16]byte
	number int32
}

func (f *fetched) key() fetchedKey { return fetchedKey{f.topic, f.id, f.number} }

// diverge answers a fetch as a broker does whose log has been cut below what the
// client has fetched (Partition.readRecords, KIP-595): with the end of the epoch
// that the client named, and without records. kfake does not look at the epoch.
//
// The broker compares before it looks whether the offset is in its log, but for
// an offset below the log start. A partition that an incremental answer leaves
// out, because nothing is new there, is put into it. It reports whether the
// answer has changed.
func (c *wireConn) diverge(request *kmsg.FetchRequest, response *kmsg.FetchResponse) (changed bool) {
	for _, f := range c.wire.fetching(c.node, request, response) {
		answer := fetchAnswer(response, &f)
		if answer != nil && answer.ErrorCode != 0 && answer.ErrorCode != kerr.OffsetOutOfRange.Code {
			continue
		}
		epoch, end, ok := c.wire.endOfEpoch(c.node, &f)
		if !ok {
			continue
		}
		if answer == nil {
			answer = addFetchAnswer(response, &f)
		}
		answer.ErrorCode, answer.RecordBatches, answer.AbortedTransactions = 0, nil, nil
		answer.DivergingEpoch.Epoch, answer.DivergingEpoch.EndOffset = epoch, end
		changed = true
	}
	return changed
}

// fetching returns the partitions that a fetch is about of which the client has
// named an epoch: those of the request, or of the session that it goes on with
// (KIP-227).
func (w *wire) fetching(node int32, request *kmsg.FetchRequest, response *kmsg.FetchResponse) []fetched {
	named := namedIn(request)
	if request.SessionEpoch < 0 || response.ErrorCode != 0 || response.SessionID == 0 {
		return withEpoch(named)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := sessionKey{node, response.SessionID}
	if request.SessionEpoch == 0 || w.sessions[at] == nil {
		w.sessions[at] = make(map[fetchedKey]fetched)
	}
	members := w.sessions[at]
	for _, t := range request.ForgottenTopics {
		for _, number := range t.Partitions {
			delete(members, fetchedKey{t.Topic, t.TopicID, number})
		}
	}
	for _, f := range named {
		members[f.key()] = f
	}
	all := make([]fetched, 0, len(members))
	for _, f := range members {
		all = append(all, f)
	}
	return withEpoch(all)
}

// A sessionKey names a fetch session: each broker counts its own.
type sessionKey struct{ node, id int32 }

func namedIn(request *kmsg.FetchRequest) (named []fetched) {
	for _, t := range request.Topics {
		for _, p := range t.Partitions {
			f := fetched{topic: t.Topic, id: t.TopicID, number: p.Partition, offset: p.FetchOffset, epoch: p.LastFetchedEpoch}
			if request.Version < 12 {
				f.epoch = -1
			}
			named = append(named, f)
		}
	}
	return named
}

func withEpoch(all []fetched) (with []fetched) {
	for _, f := range all {
		if f.epoch >= 0 {
			with = append(with, f)
		}
	}
	return with
}

func fetchAnswer(response *kmsg.FetchResponse, f *fetched) *kmsg.FetchResponseTopicPartition {
	for i := range response.Topics {
		t := &response.Topics[i]
		if t.Topic != f.topic || t.TopicID != f.id {
			continue
		}
		for j := range t.Partitions {
			if t.Partitions[j].Partition == f.number {
				return &t.Partitions[j]
			}
		}
	}
	return nil
}

func addFetchAnswer(response *kmsg.FetchResponse, f *fetched) *kmsg.FetchResponseTopicPartition {
	t := kmsg.NewFetchResponseTopic()
	t.Topic, t.TopicID = f.topic, f.id
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition = f.number
	t.Partitions = append(t.Partitions, p)
	response.Topics = append(response.Topics, t)
	return &response.Topics[len(response.Topics)-1].Partitions[0]
}

// endOfEpoch returns what a broker says of the epoch that a client has fetched
// last, if the client has more of it, or a later one, than the log.
func (w *wire) endOfEpoch(node int32, f *fetched) (epoch int32, end int64, ok bool) {
	topic := f.topic
	if topic == "" {
		topic = w.nameOf(f.id)
	}
	info := w.info(topic, f.number)
	if info == nil || info.Epoch <= f.epoch || f.offset < info.LogStartOffset {
		return -1, -1, false
	}
	asked := kmsg.NewOffsetForLeaderEpochRequestTopic()
	asked.Topic = topic
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.Partition, p.LeaderEpoch, p.CurrentLeaderEpoch = f.number, f.epoch, -1
	asked.Partitions = append(asked.Partitions, p)
	request := kmsg.NewPtrOffsetForLeaderEpochRequest()
	request.ReplicaID, request.Version = ownReplica, 4
	request.Topics = append(request.Topics, asked)
	answer, err := w.ask(node, request)
	if err != nil || len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return -1, -1, false // the broker is going down
	}
	a := answer.Topics[0].Partitions[0]
	known := a.ErrorCode == 0 && a.EndOffset >= 0 && a.LeaderEpoch >= 0
	return a.LeaderEpoch, a.EndOffset, known && (a.LeaderEpoch < f.epoch || a.EndOffset < f.offset)
}

// ownReplica marks the wire's own requests: no client has this replica id, and
// no fault hits them. To kfake it is as good as that of a consumer.
const ownReplica = -9

func isOwn(request kmsg.Request) bool {
	r, ok := request.(*kmsg.OffsetForLeaderEpochRequest)
	return ok && r.ReplicaID == ownReplica
}

// ask asks a broker on a connection of its own. The wire may wait for a broker,
// as no broker waits for the wire.
func (w *wire) ask(node int32, request *kmsg.OffsetForLeaderEpochRequest) (*kmsg.OffsetForLeaderEpochResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := w.dial(ctx, node)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, request, 1)); err != nil {
		return nil, err
	}
	answer, err := readAnswerFrame(conn)
	if err != nil {
		return nil, err
	}
	response := &kmsg.OffsetForLeaderEpochResponse{}
	return response, readAnswer(&exchange{key: request.Key(), version: request.Version}, answer, response)
}

// readAnswerFrame returns one whole answer, with its length in front.
func readAnswerFrame(conn net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > maxFrame {
		return nil, errors.New("kafkatest: an answer of an impossible length")
	}
	answer := make([]byte, 4+n)
	copy(answer, size[:])
	_, err := io.ReadFull(conn, answer[4:])
	return answer, err
}
