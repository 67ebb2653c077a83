package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A Kind is what a group is.
type Kind string

const (
	// Absent: there is no group with this id.
	Absent Kind = "absent"
	// Classic: a consumer group whose members assign partitions themselves.
	// Groups of Kafka Streams were of this kind before KIP-1071.
	Classic Kind = "classic"
	// Consumer: a consumer group whose coordinator assigns partitions (KIP-848).
	Consumer Kind = "consumer"
	// Simple: committed offsets, made by somebody who was never a member
	// (ClassicGroup.isSimpleGroup).
	Simple Kind = "simple"
	// Connect: the workers of a Kafka Connect cluster. They commit nothing: sink
	// connectors have groups of their own, which are consumer groups.
	Connect Kind = "connect"
	// Streams: a group of Kafka Streams (KIP-1071).
	Streams Kind = "streams"
	// Share: a share group (KIP-932). It has no committed offsets but a state
	// for each record in flight.
	Share Kind = "share"
	// Other: members with a protocol of their own, as schema registries have.
	Other Kind = "other"
)

// A Group says what a cluster knows of a group.
type Group struct {
	ID    string
	Kind  Kind
	State string // Kafka's word, such as Empty or Stable; empty if Kind is Absent

	// Err says why nothing is known; Kind and State are empty then.
	Err error
}

// HasMembers reports whether somebody is in the group, or about to be. It is
// true for states that this package does not know.
func (g Group) HasMembers() bool {
	switch {
	case g.Kind == Absent, strings.EqualFold(g.State, "Empty"), strings.EqualFold(g.State, "Dead"):
		return false
	}
	return true
}

// CommitsOffsets reports whether groups of this kind have committed offsets.
func (k Kind) CommitsOffsets() bool { return k != Share }

// describeChunk is how many groups are described in one request.
const describeChunk = 500

// Groups returns what the cluster knows of each group, by id.
//
// ListGroups knows the kind and the state of groups of all kinds (KIP-518,
// KIP-848), but a coordinator that is just taking over leaves out what it has
// not loaded. What it does not list, its coordinator is asked about.
func (c *Cluster) Groups(ctx context.Context, ids []string) map[string]Group {
	found := make(map[string]Group, len(ids))
	patiently(ctx, c.patience, ids, func(ids []string) { c.look(ctx, ids, found) }, func(id string) error { return found[id].Err })
	return found
}

// look asks once.
func (c *Cluster) look(ctx context.Context, ids []string, found map[string]Group) {
	listed, listErr := c.admin.ListGroups(ctx)
	var missing []string
	for _, id := range ids {
		if g, ok := listed[id]; ok && g.State != "" {
			found[id] = Group{ID: id, Kind: kindOf(g.GroupType, g.ProtocolType), State: g.State}
			continue
		}
		found[id] = Group{ID: id, Err: errors.New("its coordinator gave no answer")}
		missing = append(missing, id)
	}
	for chunk := range slices.Chunk(missing, describeChunk) {
		c.describe(ctx, chunk, found)
	}
	if listErr == nil {
		return
	}
	// DescribeGroups speaks of classic groups only. What it does not know may
	// be a group of another kind in the part of the list that is missing.
	for _, id := range missing {
		if found[id].Err == nil && found[id].Kind == Absent {
			found[id] = Group{ID: id, Err: fmt.Errorf("list groups: %w", listErr)}
		}
	}
}

// kindOf returns the kind of a group from its type, which brokers before 3.8 do
// not tell, and the protocol of its members.
func kindOf(groupType, protocol string) Kind {
	switch strings.ToLower(groupType) {
	case "consumer":
		return Consumer
	case "share":
		return Share
	case "streams":
		return Streams
	}
	switch protocol {
	case "":
		return Simple
	case "consumer":
		return Classic
	case "connect":
		return Connect
	case "share":
		return Share
	default:
		return Other
	}
}

// describe asks the coordinators of groups about them.
func (c *Cluster) describe(ctx context.Context, ids []string, found map[string]Group) {
	request := kmsg.NewPtrDescribeGroupsRequest()
	request.Groups = ids
	for _, shard := range c.client.RequestSharded(ctx, request) {
		if shard.Err != nil {
			for _, id := range shard.Req.(*kmsg.DescribeGroupsRequest).Groups {
				found[id] = Group{ID: id, Err: fmt.Errorf("describe: %w", shard.Err)}
			}
			continue
		}
		for i := range shard.Resp.(*kmsg.DescribeGroupsResponse).Groups {
			g := &shard.Resp.(*kmsg.DescribeGroupsResponse).Groups[i]
			found[g.Group] = described(g)
		}
	}
}

// described returns the group of an answer. A group that does not exist is Dead
// before version 6 of DescribeGroups, and GROUP_ID_NOT_FOUND from then on
// (KIP-1043).
func described(g *kmsg.DescribeGroupsResponseGroup) Group {
	err := kerr.ErrorForCode(g.ErrorCode)
	switch {
	case errors.Is(err, kerr.GroupIDNotFound), err == nil && g.State == "Dead":
		return Group{ID: g.Group, Kind: Absent}
	case err != nil:
		return Group{ID: g.Group, Err: fmt.Errorf("describe: %w", err)}
	}
	return Group{ID: g.Group, Kind: kindOf("", g.ProtocolType), State: g.State}
}

// An Offset is what a group has committed for one partition.
type Offset struct {
	At       int64  // the next offset to read; negative if there is none
	Epoch    int32  // leader epoch of what was read last (KIP-320); -1: the client did not say
	Metadata string // free text of the member that committed
}

// Offsets are what a group has committed.
type Offsets struct {
	At map[Partition]Offset

	// Err says that they could not be read, or not all of them.
	Err error
}

// Committed returns the offset that a group has committed for a partition, or
// [NoOffset]. Some clients commit a negative offset in place of none
// (KAFKA-15607).
func (o Offsets) Committed(p Partition) int64 {
	if at, ok := o.At[p]; ok && at.At >= 0 {
		return at.At
	}
	return NoOffset
}

// fetchChunk is how many groups are asked for in one request, and fetchesAtOnce
// how many requests are under way. Answers are as long as the groups have
// partitions.
const (
	fetchChunk    = 200
	fetchesAtOnce = 4
)

// Offsets returns all that groups have committed, by id. A group that does not
// exist has committed nothing. Topics that the client may not see are left out
// by the broker without a word.
//
// Only what cannot change any more is returned (KIP-447): a plain fetch from a
// coordinator that has just taken over may lack the latest commits, as it looks
// no further than the high watermark of the offsets topic
// (GroupCoordinatorService.fetchOffsets). Where a transaction may yet commit
// offsets of the group, Err is [kerr.UnstableOffsetCommit] when patience is at
// its end; see [Cluster.DecidedOffsets].
func (c *Cluster) Offsets(ctx context.Context, ids []string) map[string]Offsets {
	return c.offsets(ctx, ids, c.patience)
}

func (c *Cluster) offsets(ctx context.Context, ids []string, patience time.Duration) map[string]Offsets {
	return c.patientOffsets(kadm.RequireStable(ctx), ids, patience)
}

// DecidedOffsets is Offsets, but of groups of which an open transaction may
// commit offsets it returns those from before: what their members would begin
// with if the transaction were aborted.
func (c *Cluster) DecidedOffsets(ctx context.Context, ids []string) map[string]Offsets {
	found := c.Offsets(ctx, ids)
	var undecided []string
	for _, id := range ids {
		if errors.Is(found[id].Err, kerr.UnstableOffsetCommit) {
			undecided = append(undecided, id)
		}
	}
	maps.Copy(found, c.patientOffsets(ctx, undecided, c.patience))
	return found
}

func (c *Cluster) patientOffsets(ctx context.Context, ids []string, patience time.Duration) map[string]Offsets {
	found := make(map[string]Offsets, len(ids))
	patiently(ctx, patience, ids, func(ids []string) { c.fetch(ctx, ids, found) }, func(id string) error { return found[id].Err })
	return found
}

// fetch asks once.
func (c *Cluster) fetch(ctx context.Context, ids []string, found map[string]Offsets) {
	chunks := slices.Collect(slices.Chunk(ids, fetchChunk))
	answers := make([]kadm.FetchOffsetsResponses, len(chunks))
	inParallel(len(chunks), fetchesAtOnce, func(i int) {
		answers[i] = c.admin.FetchManyOffsets(ctx, chunks[i]...)
	})
	for i, chunk := range chunks {
		for _, id := range chunk {
			answer, ok := answers[i][id]
			if !ok {
				found[id] = Offsets{Err: errors.New("fetch offsets: its coordinator gave no answer")}
				continue
			}
			found[id] = offsetsOf(answer)
		}
	}
}

// offsetsOf returns the offsets of an answer. A topic that was deleted while
// the answer was under way has no name any more, and no offsets that mattered.
func offsetsOf(answer kadm.FetchOffsetsResponse) Offsets {
	if answer.Err != nil && !errors.Is(answer.Err, kerr.GroupIDNotFound) {
		return Offsets{Err: fmt.Errorf("fetch offsets: %w", answer.Err)}
	}
	o := Offsets{At: make(map[Partition]Offset)}
	var errs []error
	for _, r := range answer.Fetched.Sorted() {
		switch {
		case r.Topic == "":
		case r.Err != nil:
			errs = append(errs, fmt.Errorf("fetch offset of %s-%d: %w", r.Topic, r.Partition, r.Err))
		default:
			o.At[Partition{r.Topic, r.Partition}] = Offset{At: r.At, Epoch: r.LeaderEpoch, Metadata: r.Metadata}
		}
	}
	o.Err = errors.Join(errs...)
	return o
}
