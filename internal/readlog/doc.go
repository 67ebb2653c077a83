// Package readlog reads all that one partition holds, once: a small topic, such
// as those that MirrorMaker 2 keeps its state in.
//
// It reads to the high watermark that there is when it begins, whatever the
// records are: those of open and aborted transactions too, as the consumers of
// MirrorMaker 2 do by default. A batch that cannot be decoded is handed over as
// such, with its offset, and the reading goes on behind it. It joins no group,
// commits nothing and makes no topic.
//
// Nothing is kept but one answer of a broker, of at most 8 MiB or one batch. What
// is written meanwhile, and what a cleaner removes meanwhile, may be missing.
package readlog
