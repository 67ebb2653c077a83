package mirror

import "apograph/internal/mm2"

// A Placement says where a duty writes.
type Placement struct {
	Duty string // such as offset_syncs
	Pair string // of the clusters that heartbeats are about, such as A->B; else ""
	On   bool

	OnSource    bool   // it writes to the flow's source
	Topic       string // "": it has none of its own
	Replication int    // of the topic; see [Checkpoints.TopicReplication]
	TopicOnly   bool   // the topic is made, and nothing is written to it
}

// Placements returns where each duty of a flow writes, also of those that are off.
func (s Settings) Placements(source, target string, policy mm2.Policy) []Placement {
	syncs, checkpoints := s.OffsetSyncs, s.Checkpoints
	all := []Placement{
		{
			Duty: OffsetSyncsDuty, On: syncs.Enabled, OnSource: !syncs.OnTarget,
			Topic: policy.OffsetSyncsOf(source, target, syncs.OnTarget), Replication: syncs.TopicReplication,
		},
		{Duty: CheckpointsDuty, On: checkpoints.Enabled, Topic: policy.CheckpointsTopic(source), Replication: checkpoints.TopicReplication},
		{Duty: GroupSyncDuty, On: s.GroupSync.Enabled},
	}
	for _, h := range s.Heartbeats {
		all = append(all, Placement{
			Duty: HeartbeatsDuty, Pair: h.pair(), On: true, OnSource: h.OnSource, Topic: policy.HeartbeatsTopic(), Replication: h.TopicReplication,
			TopicOnly: h.Interval == 0,
		})
	}
	if len(s.Heartbeats) == 0 {
		all = append(all, Placement{Duty: HeartbeatsDuty})
	}
	return all
}

func (h Heartbeats) pair() string { return h.Source + "->" + h.Target }

// ReplicationOf returns the replication factor that a topic is made with on a
// cluster of so many brokers, where asked for is that of its settings.
func ReplicationOf(asked, brokers int) int {
	if asked != 0 {
		return asked
	}
	return min(usualReplication, max(brokers, 1))
}
