package replicate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/ledger"
)

// createTopics makes the target topics that do not exist, and adds partitions
// where the target has fewer than the source. A topic that the ledger has a
// book about and that is gone is not made again.
func (f *Flow) createTopics(topics []*topic, books map[topicPartition]ledger.Pair) error {
	booked := map[string]bool{}
	for tp := range books {
		booked[tp.topic] = true
	}
	var changed []*topic
	for _, t := range topics {
		switch {
		case t.stop != nil || t.source.err != nil || t.recreated:
		case t.destination.gone() && (!booked[t.name] || f.toBeRecopied(t.name)):
			changed = append(changed, t)
			f.createTopic(t)
		case t.destination.err == nil && len(t.destination.leaders) < len(t.source.leaders):
			changed = append(changed, t)
			f.growTopic(t)
		case t.destination.err != nil && !t.destination.gone():
			t.stop = &stopped{reason: reasonOf(t.destination.err), detail: fmt.Sprintf("target topic %s: %v", t.target, t.destination.err)}
		default:
			f.warnSettings(t)
		}
	}
	changed = slices.DeleteFunc(changed, func(t *topic) bool { return t.stop != nil || t.growth != nil })
	return f.awaitTopics(changed)
}

// replicas returns the replication factor of a target topic that is made.
func (f *Flow) replicas(t *topic) int16 {
	if f.config.ReplicationFactor != 0 {
		return int16(f.config.ReplicationFactor)
	}
	return int16(max(min(t.source.replicas, f.target.brokers), 1))
}

// createTopic makes one target topic. Settings that the target refuses are
// left out and named.
func (f *Flow) createTopic(t *topic) {
	partitions := int32(len(t.source.leaders))
	replicas := f.replicas(t)
	settings := f.keeps.forTarget(t.facts.Load().source)
	create := func(validate bool, settings map[string]string) error {
		call := f.target.admin.CreateTopics
		if validate {
			call = f.target.admin.ValidateCreateTopics
		}
		responses, err := call(f.ctx, partitions, replicas, pointers(settings), t.target)
		if err != nil {
			return err
		}
		r, err := responses.On(t.target, nil)
		if err == nil && r.Err != nil {
			err = fmt.Errorf("%w: %s", r.Err, r.ErrMessage)
		}
		return err
	}
	err := create(false, settings)
	if err != nil && codeOf(err) == nil { // no answer: it may have been made
		if err = create(false, settings); codeOf(err) == kerr.TopicAlreadyExists {
			err = nil
		}
	}
	if code := codeOf(err); code == kerr.InvalidConfig || code == kerr.PolicyViolation || code == kerr.InvalidRequest {
		for key, value := range maps.Clone(settings) {
			if refusal := create(true, map[string]string{key: value}); refusal != nil {
				delete(settings, key)
				f.config.Logger.Warn("the target refuses a topic setting; it is left out", "topic", t.target, "setting", key, "value", value, "error", refusal)
			}
		}
		if settings["message.timestamp.before.max.ms"] == "" { // brokers before 3.6
			settings["message.timestamp.difference.max.ms"] = unlimited
		}
		err = create(false, settings)
	}
	if err != nil {
		t.stop = &stopped{reason: reasonOf(err), detail: fmt.Sprintf("create target topic %s: %v", t.target, err)}
		return
	}
	t.made, t.justMade = settings, true
	f.config.Logger.Info("topic created", "cluster", f.target.alias, "topic", t.target, "partitions", partitions, "replication_factor", replicas)
}

// pointers returns settings as requests want them.
func pointers(settings map[string]string) map[string]*string {
	out := make(map[string]*string, len(settings))
	for key, value := range settings {
		out[key] = &value
	}
	return out
}

// usualAfter is message.timestamp.after.max.ms of brokers that nobody told otherwise:
// an hour, since Kafka 4.0.
const usualAfter = "3600000"

// warnSettings says what in an existing topic's settings can keep records out
// or change them. What is as brokers have it by themselves is no warning: it keeps
// out only records from the future, which the source, of such brokers, has none of.
func (f *Flow) warnSettings(t *topic) {
	if t.facts.Load().target.get(timestampAfter, unlimited) == usualAfter {
		f.sayOnce(slog.LevelInfo, "usual limit of times", "target topics refuse records that are dated more than an hour ahead, as Kafka does by default; a partition that has one stops (record_refused) until it is raised",
			"cluster", f.target.alias, timestampAfter, usualAfter)
	}
	for _, w := range t.facts.Load().warnings(t) {
		f.warnOnce("target topic "+t.target+w, w, "cluster", f.target.alias, "topic", t.target)
	}
}

// warnings lists what on the target can keep records out or change them.
func (x *topicFacts) warnings(t *topic) []string {
	var found []string
	warn := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, key := range []string{timestampBefore, timestampAfter} {
		if v := x.target.get(key, unlimited); v != unlimited && !(key == timestampAfter && v == usualAfter) {
			warn("the target topic refuses some record times: %s=%s; a record beyond it stops its partition (record_refused): to take all, set it to %s for the time of the copy", key, v, unlimited)
		}
	}
	if v := x.target.get("compression.type", "producer"); v != "producer" {
		warn("the target topic compresses anew: compression.type=%s", v)
	}
	if x.target.stampsTimes() {
		warn("the target topic stamps its own times (message.timestamp.type=LogAppendTime); records are compared without theirs")
	}
	if have, want := int64(x.target.maxBatchBytes()), x.source.integer("max.message.bytes", 0); have < want {
		warn("the target topic takes smaller batches than the source: max.message.bytes=%d, the source has %d", have, want)
	}
	if have, want := len(t.destination.leaders), len(t.source.leaders); have > want {
		warn("the target topic has %d partitions, the source %d; the others stay as they are", have, want)
	}
	return found
}

func (f *Flow) growTopic(t *topic) {
	want := len(t.source.leaders)
	switch {
	case t.otherTarget:
		t.growth = &stopped{reason: StopTargetRecreated, detail: fmt.Sprintf("topic %s of cluster %s has id %v, the books are about another", t.target, f.target.alias, t.destination.id)}
		return
	case !f.stands(t):
		t.growth = &stopped{reason: StopUnavailable, detail: fmt.Sprintf("target topic %s has changed since it was looked at; it is looked at again", t.target)}
		return
	}
	responses, err := f.target.admin.UpdatePartitions(f.ctx, want, t.target)
	if err == nil {
		r, ok := responses[t.target]
		if !ok {
			err = errors.New("the answer leaves the topic out")
		} else if r.Err != nil {
			err = fmt.Errorf("%w: %s", r.Err, r.ErrMessage)
		}
	}
	if err != nil {
		t.growth = &stopped{reason: reasonOf(err), detail: fmt.Sprintf("grow target topic %s to %d partitions: %v", t.target, want, err)}
		return
	}
	f.config.Logger.Info("partitions added", "cluster", f.target.alias, "topic", t.target, "partitions", want)
}

// awaitTopics waits until every partition of the topics has a leader, and
// learns ids and settings as they came to be.
func (f *Flow) awaitTopics(topics []*topic) error {
	if len(topics) == 0 {
		return nil
	}
	limit := f.config.UnavailableAfter
	if !f.config.Once {
		limit = min(limit, 10*time.Second) // it is looked at again
	}
	generation := f.target.seen()
	_ = f.target.retry(f.ctx, limit, func(ctx context.Context) (err error) {
		if generation, err = f.target.refresh(ctx, generation); err != nil {
			return err
		}
		for _, t := range topics {
			if t.destination, _ = f.target.topic(t.target); !t.destination.led(len(t.source.leaders)) {
				err = fmt.Errorf("topic %s: %w", t.target, kerr.LeaderNotAvailable)
			}
		}
		return err
	})
	for _, t := range topics {
		if !t.destination.led(len(t.source.leaders)) && t.destination.err != nil {
			t.stop = &stopped{reason: StopUnavailable, detail: fmt.Sprintf("target topic %s has just been made, and is not there yet: %v", t.target, t.destination.err)}
		}
	}
	if err := context.Cause(f.ctx); err != nil {
		return err
	}
	f.learnSettings(topics)
	return f.rememberMade(topics)
}

// rememberMade records which topics this flow made: their settings are its to
// keep in step.
func (f *Flow) rememberMade(topics []*topic) error {
	for _, t := range topics {
		if t.made == nil || t.destination.err != nil {
			continue
		}
		if err := f.setMade(t, t.made); err != nil {
			return err
		}
		t.made = nil
	}
	return nil
}

// led reports whether the first n partitions all have a leader.
func (t topicState) led(n int) bool {
	if t.err != nil || len(t.leaders) < n {
		return false
	}
	return !slices.ContainsFunc(t.leaders[:n], func(l leader) bool { return l.node < 0 })
}
