package main

import (
	"context"
	"fmt"
	"strconv"

	"apograph/ledger"
)

func ledgerInspectCommand() command {
	return command{
		path:    "ledger inspect",
		args:    "[FILE]",
		maxArgs: 1,
		summary: "say which flow a ledger belongs to and what it holds",
		details: "Reads the heads of the books only, so it is quick on a ledger of any size; it\n" +
			"does not check them. Records are those that the books count as copied, over\n" +
			"all generations. The size is what is in use; the file may be larger.",
		examples: []string{
			"apograph ledger inspect orders.ledger",
			"apograph ledger inspect --ledger orders.ledger -o json",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		flags:   ledgerFlags(),
		exits:   []exitCode{exitNoLedger, exitLocked, exitDamaged},
		run:     runLedgerInspect,
	}
}

func runLedgerInspect(ctx context.Context, inv *invocation) error {
	path, err := ledgerPath(inv)
	if err != nil {
		return err
	}
	info, err := readLedgerInfo(ctx, path)
	if err != nil {
		return err
	}
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, info)
	}
	return inv.writeTable(info.table())
}

// A ledgerInfo is the answer of `apograph ledger inspect`.
type ledgerInfo struct {
	envelope
	Path       string   `json:"path"`
	Bytes      int64    `json:"bytes"` // in use; the file may be larger
	Format     int      `json:"format"`
	LedgerID   string   `json:"ledger_id"`
	Flow       flowInfo `json:"flow"`
	Topics     int      `json:"topics"`     // source topics that have a book
	Partitions int      `json:"partitions"` // source partitions that have a book
	Records    int64    `json:"records"`    // copied, over all generations
	Entries    int64    `json:"entries"`
	LastCommit instant  `json:"last_commit"`
	HolderPID  *int     `json:"holder_pid"` // the process that writes the ledger and answered; nil if none
}

// ledgerInfoOf returns what there is to say about an open ledger at a path.
func ledgerInfoOf(path string, l *ledger.Ledger) (ledgerInfo, error) {
	type partition struct {
		topic  string
		number int32
	}
	identity := l.Identity()
	info := ledgerInfo{
		envelope:   newEnvelope("LedgerInfo", "ledger"),
		Path:       path,
		Format:     identity.Format,
		LedgerID:   identity.LedgerID,
		Flow:       flowOf(identity),
		LastCommit: instant{l.CommitTime()},
	}
	var err error
	_, info.Bytes, err = l.Usage()
	topics, partitions := map[string]bool{}, map[partition]bool{}
	for _, pair := range l.Pairs() {
		totals := l.Totals(pair.ID)
		topics[pair.SourceTopic] = true
		partitions[partition{pair.SourceTopic, pair.Partition}] = true
		info.Records += totals.Tiles[ledger.Copied]
		info.Entries += totals.Entries
	}
	info.Topics, info.Partitions = len(topics), len(partitions)
	return info, err
}

func (info ledgerInfo) table() *textTable {
	table := &textTable{}
	table.add("ledger", info.Path)
	table.add("id", info.LedgerID)
	table.add("format", strconv.Itoa(info.Format))
	table.add("flow", info.Flow.String())
	table.add("topics", strconv.Itoa(info.Topics))
	table.add("partitions", strconv.Itoa(info.Partitions))
	table.add("records", strconv.FormatInt(info.Records, 10))
	table.add("entries", strconv.FormatInt(info.Entries, 10))
	table.add("size", fmt.Sprintf("%d bytes", info.Bytes))
	table.add("last commit", info.LastCommit.String())
	if info.HolderPID != nil {
		table.add("in use by", "process "+strconv.Itoa(*info.HolderPID))
	}
	return table
}
