package kafkatest

import (
	"encoding/json"
	"errors"
)

// rewriteTransactions has the transactions that are going on begin in a partition
// where its log says, given the first offsets of those that are open at its end,
// by producer id; not at all where it holds nothing of them. A broker that becomes
// the leader of a log that was cut takes them from there (ProducerStateManager);
// kfake would go on with the first offset that it remembers, and call aborted what
// the next transaction of the producer writes behind it. No marker is written there
// when such a transaction ends.
func rewriteTransactions(dataDir, topic string, partition int32, open map[int64]int64) error {
	return editSessionState(dataDir, func(file map[string]json.RawMessage) (err error) {
		if file["inProgressTxns"] == nil {
			return nil
		}
		var running []map[string]json.RawMessage
		if err := json.Unmarshal(file["inProgressTxns"], &running); err != nil {
			return err
		}
		for _, one := range running {
			if err := rewriteTransaction(one, topic, partition, open); err != nil {
				return err
			}
		}
		file["inProgressTxns"], err = json.Marshal(running)
		return err
	})
}

func rewriteTransaction(one map[string]json.RawMessage, topic string, partition int32, open map[int64]int64) error {
	var producer int64
	firsts := map[string]map[int32]int64{} // by topic and partition
	if err := errors.Join(json.Unmarshal(one["pid"], &producer), json.Unmarshal(one["txPartFirstOffsets"], &firsts)); err != nil {
		return err
	}
	if _, ok := firsts[topic][partition]; !ok {
		return nil
	}
	delete(firsts[topic], partition)
	if first, ok := open[producer]; ok {
		firsts[topic][partition] = first
	}
	var err error
	one["txPartFirstOffsets"], err = json.Marshal(firsts)
	return err
}
