package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"apograph/ledger"
)

func ledgerCommand() command {
	return command{
		path:     "ledger",
		summary:  "look at a ledger file, check it, copy it",
		details:  "None of these commands needs a cluster, and none but accept changes the ledger.",
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
// or --ledger, else that of the only flow of its configuration.
func ledgerPath(inv *invocation) (string, error) {
	if len(inv.args) > 0 && inv.line.has("config") {
		return "", usagef("two ledgers given: %s, and that of a flow of --config", quoteArg(inv.args[0]))
	}
	if len(inv.args) == 0 {
		if path, err := configuredLedger(inv); path != "" || err != nil {
			return path, err
		}
	}
	path := inv.String("ledger")
	if len(inv.args) > 0 {
		if inv.line.has("ledger") && path != inv.args[0] {
			return "", usagef("two ledgers given: %s and --ledger %s", quoteArg(inv.args[0]), quoteArg(path))
		}
		path = inv.args[0]
	}
	if path == "" {
		hint := "name its file with --ledger FILE, or --config FILE with its flow"
		if inv.row.maxArgs > 0 {
			hint = "name its file, as an argument or with --ledger FILE, or --config FILE with its flow"
		}
		return "", usagef("no ledger given").withHint("%s", hint)
	}
	return path, checkNoDirectory(path)
}

// flagLedger returns the ledger that --ledger names, or that of the only flow of
// the configuration.
func flagLedger(inv *invocation) (string, error) {
	if path, err := configuredLedger(inv); path != "" || err != nil {
		return path, err
	}
	path := inv.String("ledger")
	if path == "" {
		return "", usagef("no ledger given").withHint("name its file with --ledger FILE, or --config FILE with its flow")
	}
	return path, nil
}

// configuredLedger returns the ledger of the only flow of the configuration; "" if
// the command line names another, or there is none.
func configuredLedger(inv *invocation) (string, error) {
	if inv.line.has("ledger") && !inv.line.has("config") {
		return "", inv.refuseWithoutConfig()
	}
	c, err := inv.configuration()
	if c == nil || err != nil {
		return "", err
	}
	if _, err := c.one(inv); err != nil {
		return "", err
	}
	paths, err := c.ledgers(inv)
	if err != nil {
		return "", err
	}
	return paths[0], checkNoDirectory(paths[0])
}

// checkNoDirectory refuses a directory in place of a ledger.
func checkNoDirectory(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usagef("ledger %s is a directory", path).withHint("a ledger is one file: name it with its directory")
	}
	return nil
}

// openLedger opens a ledger that no process holds for reading: ask the holder
// first, see [askFirst]. While it is open nobody can open it for writing: close
// it soon, and before anything is written to a pipe.
func openLedger(path string) (*ledger.Ledger, error) {
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true, LockTimeout: lockWait})
	return l, ledgerError(path, err)
}

// ledgerError gives a missing file the type that has its own exit code: only a
// missing ledger has it, not any file that a command may miss. Of an error that
// speaks of damage it keeps what names the file, bucket, key and law, or says
// that the file is something else.
func ledgerError(path string, err error) error {
	if err == nil {
		return nil
	}
	var (
		missing *fs.PathError
		damage  *ledger.CorruptError
	)
	// One that took the place of a ledger in use is damage.
	if directory := checkNoDirectory(path); directory != nil && !errors.As(err, &damage) {
		return directory
	}
	switch {
	case errors.As(err, &missing) && missing.Path == path && errors.Is(missing, fs.ErrNotExist):
		return &missingLedgerError{path: path}
	case errors.As(err, &damage) && isForeignFile(path):
		return &foreignFileError{path: path, damage: damage}
	case errors.As(err, &damage):
		named := *damage // which may name a copy
		named.Path = path
		return &named
	}
	return err
}

// A foreignFileError says that a file holds nothing of a ledger. That counts as
// damage, as it may be all that is left of one.
type foreignFileError struct {
	path   string
	damage *ledger.CorruptError
}

func (e *foreignFileError) Error() string {
	return fmt.Sprintf("file %s is not a ledger: %s: law %s: %s", e.path, e.damage.Key, e.damage.Law, e.damage.Detail)
}

func (e *foreignFileError) Unwrap() error { return e.damage }

// Hint returns the advice that goes with the error.
func (e *foreignFileError) Hint() string {
	return "check the path; if this was a ledger once, go on from the newest snapshot that passes `apograph ledger check`"
}

// headBytes is how much of a file isForeignFile looks at. Both meta pages of a
// ledger are in there, unless its pages are larger than any system's.
const headBytes = 128 << 10

// isForeignFile reports whether a file can be read and its head does not hold
// the magic number of bbolt's meta pages (bbolt's internal/common.Magic) at any
// place: a damaged ledger has it twice, of which one is left as a rule.
func isForeignFile(path string) bool {
	// Whoever opens a named pipe waits for its other end.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, headBytes))
	return err == nil && !bytes.Contains(head, binary.NativeEndian.AppendUint32(nil, 0xED0CDAED))
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
