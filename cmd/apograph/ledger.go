package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"apograph/ledger"
)

func ledgerCommand() command {
	return command{
		path:     "ledger",
		summary:  "look at a ledger file, check it, copy it",
		details:  "None of these commands needs a cluster, and none changes the ledger.",
		examples: []string{"apograph ledger inspect orders.ledger"},
	}
}

// lockWait is how long a command that only reads waits for a process that
// writes the ledger. Those that hold it for a moment are gone by then; a
// replicator holds it until it ends.
const lockWait = 2 * time.Second

// A missingLedgerError says that there is no ledger at a path.
type missingLedgerError struct{ path string }

func (e *missingLedgerError) Error() string {
	return fmt.Sprintf("ledger %s does not exist", e.path)
}

// Unwrap makes errors.Is(err, fs.ErrNotExist) hold.
func (e *missingLedgerError) Unwrap() error { return fs.ErrNotExist }

// ledgerPath returns the ledger that the command line names: its only argument
// or --ledger, else the variable of that flag.
func ledgerPath(inv *invocation) (string, error) {
	switch flag := inv.String("ledger"); {
	case len(inv.args) == 0 && flag == "":
		return "", usagef("no ledger given").withHint("name its file, as an argument or with --ledger FILE")
	case len(inv.args) == 0:
		return flag, nil
	case inv.line.has("ledger") && flag != inv.args[0]:
		return "", usagef("two ledgers given: %s and --ledger %s", quoteArg(inv.args[0]), quoteArg(flag))
	default:
		return inv.args[0], nil
	}
}

// openLedger opens a ledger for reading. While it is open nobody can open it
// for writing: close it soon, and before anything is written to a pipe.
func openLedger(path string) (*ledger.Ledger, error) {
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true, LockTimeout: lockWait})
	return l, ledgerError(path, err)
}

// openLedgerCopy opens a private copy of a ledger, which may take its time with
// it. Closing it removes the copy.
func openLedgerCopy(path string) (*ledger.Ledger, error) {
	l, err := ledger.OpenCopy(path, ledger.Options{LockTimeout: lockWait})
	return l, ledgerError(path, err)
}

// ledgerError gives a missing file the type that has its own exit code: only a
// missing ledger has it, not any file that a command may miss. Of an error that
// speaks of damage it keeps what names the file, bucket, key and law.
func ledgerError(path string, err error) error {
	var damage *ledger.CorruptError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &missingLedgerError{path: path}
	case errors.As(err, &damage):
		return damage
	}
	return err
}

// A flowInfo names a flow in an answer.
type flowInfo struct {
	Source clusterInfo `json:"source"`
	Target clusterInfo `json:"target"`
}

// A clusterInfo names one side of a flow.
type clusterInfo struct {
	Alias     string `json:"alias"`
	ClusterID string `json:"cluster_id"`
}

func flowOf(id ledger.Identity) flowInfo {
	return flowInfo{
		Source: clusterInfo{Alias: id.SourceAlias, ClusterID: id.SourceClusterID},
		Target: clusterInfo{Alias: id.TargetAlias, ClusterID: id.TargetClusterID},
	}
}

func (f flowInfo) String() string { return f.Source.String() + " -> " + f.Target.String() }

func (c clusterInfo) String() string { return fmt.Sprintf("%s (cluster %s)", c.Alias, c.ClusterID) }

// topicIDOf returns a topic id for an answer: nil, which is null, if unknown.
func topicIDOf(id ledger.TopicID) *string {
	if id == (ledger.TopicID{}) {
		return nil
	}
	text := id.String()
	return &text
}
