package ledger

// A PairID names a pair within one ledger file. Ids are assigned by
// [Ledger.OpenPairs], start at 1 and are never used again; 0 is no pair.
type PairID uint32

// A Producer says under which producer id, epoch and sequence numbers the
// records of a pair were sent, from a certain count of records on.
type Producer struct {
	ID       int64 // producer id, as the target assigned it
	Epoch    int16
	Sequence int32 // sequence number of the first record sent under ID and Epoch
	Appended int64 // the pair's Position.Appended when ID and Epoch came into use
}

// Next returns the sequence number that the next record gets after appended of
// the pair's records: (Sequence + appended - Appended) mod 2^31. After 2^31-1
// comes 0, as in Kafka's DefaultRecordBatch.incrementSequence.
func (p Producer) Next(appended int64) int32 {
	return int32((int64(p.Sequence) + appended - p.Appended) & (1<<31 - 1))
}

// A Closing says why and when a pair's generation ended.
type Closing struct {
	Reason   string
	AtMillis int64 // Unix time in milliseconds; 0 = the ledger's clock
	Cut      *Cut  // nil, or where the target was cut off: what the books say from there on holds no more
}

// A Pair is one source partition copied to one target partition, in one
// generation. It is a value: changing it changes no ledger.
type Pair struct {
	ID            PairID // assigned by OpenPairs
	SourceTopic   string
	SourceTopicID TopicID // zero: unknown
	TargetTopic   string
	TargetTopicID TopicID // zero: unknown
	Partition     int32   // the same on both sides
	Generation    int32   // from 1; a new one for each opening of the same source partition

	// ScopeStart is the first source offset in scope: below it everything is
	// before_start. Entries that are appended to a pair without others move it
	// up.
	ScopeStart int64

	TargetBase int64    // target offset at which the target book starts
	Producer   Producer // the latest one; Ledger.Producers has all

	OpenedMillis int64    // Unix time in milliseconds, set by OpenPairs
	Closed       *Closing // nil: open
}

// A State is what was last seen of a pair's source.
type State struct {
	LogStart      int64 // log start offset; -1 unknown
	LastStable    int64 // last stable offset; -1 unknown
	HighWatermark int64 // high watermark; -1 unknown
	SeenMillis    int64 // when the three were seen, Unix time in milliseconds; -1 never

	// CaughtUpMillis is when the copy was last known to be at the source's end,
	// Unix time in milliseconds; -1 never.
	CaughtUpMillis int64

	// CompactSeen: the source topic has or had cleanup.policy compact, or a
	// batch of it showed evidence of compaction.
	CompactSeen bool
}

// A Position is a place in a pair's list of entries.
type Position struct {
	Source   int64 // end of the source book: the next source offset to account for
	Target   int64 // end of the target book: the next target offset to account for
	Appended int64 // records of ours on the target in this generation: copied + orphan
}

// Totals counts what a pair's entries hold.
type Totals struct {
	Tiles   [NumTiles]int64 // offsets in each tile, gaps inside copied entries included
	Bytes   int64           // canonical bytes of the copied records
	Entries int64
}

// A Scope says which topics a flow was last started with, as its user wrote it.
type Scope struct {
	Topics        []string // patterns; at most 64 KiB each
	TopicsExclude []string // patterns of topics that are left out all the same
}

// An Identity says which flow a ledger belongs to. It never changes.
type Identity struct {
	LedgerID        string // random, unique; Create makes one where it is empty
	SourceAlias     string
	TargetAlias     string
	SourceClusterID string
	TargetClusterID string
	CreatedMillis   int64 // Unix time in milliseconds; Create sets it where it is 0
	Format          int   // of the file; set by the ledger
}
