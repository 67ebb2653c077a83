package replicate

// A recentRecord is one of the copier's records that was explained.
type recentRecord struct {
	hash     uint64
	offset   int64 // on the source; -1: it does not have the record
	producer producerKey
	sequence int32
	aborted  bool // it is of an aborted transaction
}

// recentRecords are the last attachWindow of them, by the order in which they
// stand on the target. An index counts from the first of all.
type recentRecords struct {
	ring    []recentRecord
	end     int            // index behind the last
	byHash  map[uint64]int // the last index with a hash; nil until it is needed
	cursor  int            // behind the one that was repeated last
	repeats repetition
}

func (r *recentRecords) add(x recentRecord) {
	r.repeats.note(x.hash)
	if len(r.ring) < attachWindow {
		r.ring = append(r.ring, x)
	} else {
		at := r.end % attachWindow
		if old := r.ring[at].hash; r.byHash != nil && r.byHash[old] == r.end-attachWindow {
			delete(r.byHash, old)
		}
		r.ring[at] = x
	}
	if r.byHash != nil {
		r.byHash[x.hash] = r.end
	}
	r.end++
}

// get returns the record with an index, nil if it is not kept.
func (r *recentRecords) get(i int) *recentRecord {
	if i < 0 || i >= r.end || i < r.end-len(r.ring) {
		return nil
	}
	return &r.ring[i%attachWindow]
}

// find returns the index of the last record with a hash, -1 if there is none.
func (r *recentRecords) find(hash uint64) int {
	if r.byHash == nil {
		r.byHash = make(map[uint64]int, len(r.ring))
		for i := r.end - len(r.ring); i < r.end; i++ {
			r.byHash[r.get(i).hash] = i
		}
	}
	if i, ok := r.byHash[hash]; ok {
		return i
	}
	return -1
}

// again returns the record of which one with the given hash is a second copy,
// nil if there is none. Of several, it is the one behind the last that was
// repeated.
func (r *recentRecords) again(hash uint64) *recentRecord {
	i := r.cursor
	if x := r.get(i); x == nil || x.hash != hash {
		if i = r.find(hash); i < 0 {
			return nil
		}
	}
	r.cursor = i + 1
	return r.get(i)
}

// numbered returns the record that a producer sent under a number, nil if it is
// not kept.
func (r *recentRecords) numbered(producer producerKey, sequence int32) *recentRecord {
	for i := r.end - 1; ; {
		x := r.get(i)
		switch {
		case x == nil:
			return nil
		case x.producer != producer:
			i--
			continue
		}
		back := int(ahead(x.sequence, sequence))
		if back == 0 {
			return x
		}
		if y := r.get(i - back); back > 0 && y != nil && y.producer == producer && y.sequence == sequence {
			return y
		}
		i--
	}
}
