package ledger

// The laws of a ledger file, by the names that [CorruptError], [LawError] and
// [Violation] carry. FORMAT.md says what each one asks for.
const (
	// Below the buckets.
	lawMeta      = "meta_pages"
	lawStructure = "structure"
	lawBbolt     = "bbolt_check"
	lawInPlace   = "file_in_place"

	// Of every value.
	lawBuckets  = "known_buckets"
	lawKeys     = "known_keys"
	lawChecksum = "checksum"
	lawEncoding = "encoding"

	// Of one entry.
	lawTile       = "known_tile"
	lawAxes       = "axes"
	lawBalance    = "balance"
	lawGaps       = "gaps"
	lawDigest     = "digest_range"
	lawAttributes = "attributes"

	// Of the books.
	lawPair        = "known_pair"
	lawTiling      = "tiling"
	lawBeforeStart = "before_start"
	lawTotals      = "totals"
	lawIndex       = "target_index"
	lawJournal     = "journal"
	lawOpening     = "openings"
	lawGeneration  = "generations"
	lawClosing     = "closing"
	lawProducers   = "producers"
	lawState       = "state_bounds"
	lawCut         = "cut"
	lawAccepted    = "acceptances"
	lawDoubts      = "doubts"

	// Of the books beside the pairs.
	lawTopics = "seen_topics"
	lawMade   = "made_topics"
	lawOrders = "orders"
	lawStops  = "stops"
	lawGroups = "group_commits"
)
