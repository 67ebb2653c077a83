package replicate

import (
	"fmt"

	"apograph/ledger"
)

// acceptedAnew reports whether a person has accepted, for each partition of a
// source topic that has an open book, that another topic bears its name now.
func (f *Flow) acceptedAnew(name string, books map[topicPartition]ledger.Pair) bool {
	for tp := range books {
		if tp.topic == name && !f.exactOrder(tp).AcceptRecreated {
			return false
		}
	}
	return true
}

// orphaned reports whether the topic that took the name of the partition's own
// on the source has fewer partitions, so that no generation can follow.
func (p *partition) orphaned() bool {
	now, ok := p.flow.source.topic(p.source.topic)
	return ok && now.isOther(p.pair.SourceTopicID) && int(p.source.partition) >= len(now.leaders)
}

// retire closes the pair of a partition that the source has no more, as a
// person has accepted. What was copied stays on the target and in the books, up to
// where the target has lost it.
func (p *partition) retire(why string, cut *ledger.Cut) {
	f := p.flow
	if err := f.ledger.ClosePair(p.pair.ID, ledger.Closing{Reason: why + "; it has no such partition", Cut: cut}); err != nil {
		f.fail(fmt.Errorf("partition %v: close its books: %w", p.source, err))
		p.halt(StopUnavailable, err.Error())
		return
	}
	f.config.Logger.Info("partition left the flow", "partition", p.source.String(), "generation", p.pair.Generation, "because", why)
	p.phase, p.replaced = phaseStopped, true
	f.reader.remove(p)
	f.learnOrder(p.source)
	f.mu.Lock()
	delete(f.partitions, p.source)
	f.mu.Unlock()
	f.left(p)
}
