package replicate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"apograph/internal/connect"
	"apograph/internal/mirror"
)

// A DutyPlan says what a run would do beside the copy. Of a duty that is off only
// the first three fields say something.
type DutyPlan struct {
	Duty string // such as offset_syncs
	Pair string // of the clusters that heartbeats are about; else ""
	On   bool

	Cluster           string // alias of the one it writes to
	Topic             string // there; "": it has none of its own
	Create            bool   // the cluster lacks the topic
	ReplicationFactor int    // of the topic; 0 unknown, -1 the cluster's default
	TopicOnly         bool   // the topic is made, as MirrorMaker 2 does, and nothing is written to it

	// Groups is how many groups of the source it is about, of those that this client
	// is told of; -1: it is about none, or they could not be listed.
	Groups int

	MissingPermissions []string // for example "target topic t: WRITE"
}

// planDuties says what is done beside the copy, and which rights are missing for
// it.
func (f *Flow) planDuties(plan *Plan) {
	groups := f.planGroups()
	for _, p := range f.config.Mirror.Placements(f.source.alias, f.target.alias, f.rules.Policy) {
		d := DutyPlan{Duty: p.Duty, Pair: p.Pair, On: p.On, Groups: -1}
		if p.On {
			f.placeDuty(&d, p)
			groups.of(&d)
		}
		plan.Duties = append(plan.Duties, d)
		for _, missing := range d.MissingPermissions {
			plan.Refusals = append(plan.Refusals, fmt.Sprintf("duty %s: missing permission: %s", d.Duty, missing))
		}
	}
}

// placeDuty says where a duty writes.
func (f *Flow) placeDuty(d *DutyPlan, p mirror.Placement) {
	side, c := "target", f.target
	if p.OnSource {
		side, c = "source", f.source
	}
	if d.Cluster = c.alias; p.Topic == "" {
		return
	}
	d.Topic, d.TopicOnly = p.Topic, p.TopicOnly
	need := []kmsg.ACLOperation{kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe}
	switch {
	case d.TopicOnly:
		need = need[1:]
	case d.Duty != mirror.HeartbeatsDuty:
		need = append(need, kmsg.ACLOperationRead) // what is there is gone on from
	}
	looked := c.lookAtTopics(f.ctx, []string{p.Topic})
	d.MissingPermissions = lacking(side+" topic "+p.Topic, rightsTo(looked)[p.Topic], need...)
	for _, t := range looked {
		switch {
		case t.ErrorCode == kerr.UnknownTopicOrPartition.Code:
			d.Create, d.ReplicationFactor = true, mirror.ReplicationOf(p.Replication, c.brokers)
			if c.refusesToMake(f.ctx, []string{p.Topic})[p.Topic] {
				d.MissingPermissions = append(d.MissingPermissions, side+" topic "+p.Topic+": CREATE")
			}
		case t.ErrorCode == 0 && len(t.Partitions) > 0:
			d.ReplicationFactor = len(t.Partitions[0].Replicas)
		}
	}
}

// plannedGroups are the groups that duties are about.
type plannedGroups struct {
	count int // -1: not known
	read  []string
	write []string // missing to commit for them, beside read
}

// of says what a duty is about.
func (g *plannedGroups) of(d *DutyPlan) {
	switch d.Duty {
	case mirror.CheckpointsDuty:
		d.Groups, d.MissingPermissions = g.count, append(d.MissingPermissions, g.read...)
	case mirror.GroupSyncDuty:
		d.Groups, d.MissingPermissions = g.count, slices.Concat(d.MissingPermissions, g.read, g.write)
	}
}

// planGroups looks for the groups, and for the rights to them. A client is told of
// those alone that it may describe, unless it may describe the cluster.
func (f *Flow) planGroups() *plannedGroups {
	s := f.config.Mirror
	g := &plannedGroups{count: -1}
	if !s.Checkpoints.Enabled && !s.GroupSync.Enabled {
		return g
	}
	listed, err := f.source.admin.ListGroups(f.ctx)
	if err != nil {
		f.config.Logger.Warn("not all groups can be listed", "cluster", f.source.alias, "error", err)
		if len(listed) == 0 {
			return g
		}
	}
	var ids []string
	for id, group := range listed {
		if _, ok := s.Checkpoints.Groups.Match(id); ok && !strings.EqualFold(group.GroupType, "share") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	g.count = len(ids)
	g.read = lackingOfGroups("source", f.groupRights(f.config.Source, ids), kmsg.ACLOperationDescribe)
	if s.GroupSync.Enabled {
		g.write = lackingOfGroups("target", f.groupRights(f.config.Target, ids), kmsg.ACLOperationRead)
	}
	return g
}

// lackingOfGroups is lacking for groups, in one line however many they are.
func lackingOfGroups(side string, rights map[string][]kmsg.ACLOperation, need kmsg.ACLOperation) []string {
	var missing []string
	for _, id := range slices.Sorted(maps.Keys(rights)) {
		missing = append(missing, lacking(side+" group "+id, rights[id], need)...)
	}
	if more := len(missing) - 1; more > 0 {
		return []string{fmt.Sprintf("%s, and %d more", missing[0], more)}
	}
	return missing
}

// describeGroupsKey and describeGroupsVersion are of the last version of
// DescribeGroups that has rights to groups that do not exist: from the next one on
// they are an error (KIP-1043), and most of the source's are not on the target yet.
const (
	describeGroupsKey     = 15
	describeGroupsVersion = 5
)

// groupRights returns what a client may do with groups; those of which the cluster
// does not say so are left out.
func (f *Flow) groupRights(of connect.Cluster, ids []string) map[string][]kmsg.ACLOperation {
	rights := map[string][]kmsg.ACLOperation{}
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(describeGroupsKey, describeGroupsVersion)
	client, err := of.Client(kgo.MaxVersions(versions), kgo.DisableClientMetrics())
	if err != nil {
		return rights
	}
	defer client.Close()
	for chunk := range slices.Chunk(ids, describeChunk) {
		f.addGroupRights(f.ctx, client, chunk, rights)
	}
	return rights
}

func (f *Flow) addGroupRights(ctx context.Context, client *kgo.Client, ids []string, rights map[string][]kmsg.ACLOperation) {
	request := kmsg.NewPtrDescribeGroupsRequest()
	request.Groups, request.IncludeAuthorizedOperations = ids, true
	for _, shard := range client.RequestSharded(ctx, request) {
		if errors.Is(shard.Err, kerr.GroupAuthorizationFailed) { // its coordinator is not told either
			for _, id := range shard.Req.(*kmsg.DescribeGroupsRequest).Groups {
				rights[id] = []kmsg.ACLOperation{}
			}
		}
		if shard.Err != nil {
			continue
		}
		for _, g := range shard.Resp.(*kmsg.DescribeGroupsResponse).Groups {
			switch {
			case g.ErrorCode == kerr.GroupAuthorizationFailed.Code:
				rights[g.Group] = []kmsg.ACLOperation{} // to be told of a group needs no more than any right
			case g.ErrorCode == 0 && g.AuthorizedOperations != math.MinInt32:
				rights[g.Group] = kadm.DecodeACLOperations(g.AuthorizedOperations)
			}
		}
	}
}
