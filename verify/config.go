package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"apograph/internal/connect"
	"apograph/ledger"
)

// A Mode says what is read. The values are part of reports and never change.
type Mode string

const (
	ModeBooks  Mode = "books"  // the ledger alone
	ModeTarget Mode = "target" // the ledger and the target
	ModeFull   Mode = "full"   // the ledger and both clusters
)

// An Until says where verification ends. The values are part of reports and
// never change.
type Until string

const (
	// UntilSourceEnd ends at the end that the source has when verification
	// begins; without a source, at the last end that the copier has seen.
	UntilSourceEnd Until = "source-end"

	// UntilBook ends where the books end, on both sides: the state after a
	// cutover, when others write to the target.
	UntilBook Until = "book"
)

// Defaults of a [Config].
const (
	DefaultMaxFindings = 100
	DefaultParallel    = 4
	DefaultPatience    = 15 * time.Second
	DefaultWait        = time.Minute
)

// A Config says what to verify and how. The zero value of a field is its
// documented default.
type Config struct {
	// LedgerPath is the flow's ledger file, or a snapshot of it. A private copy
	// is worked on, so that the file is locked for a moment only.
	LedgerPath string

	// Books returns a fresh copy of the ledger at LedgerPath, as its last commit
	// left it. A [*ledger.LockedError] means that there is none just now; it is
	// asked again, as it is to see how the books grow. Default: the file is
	// copied, which is not possible while a copier holds it.
	Books func(ctx context.Context) (Copy, error)

	// Standing returns what the copier that holds the ledger has stopped, or what is
	// paused. It is asked before each call of Books, and again when the target's end
	// is known. What stands is not waited for, unless the copier tries it again in
	// time; and what the target holds behind the books of a partition that did not
	// move in between is judged as if no copier was at work. Default: nothing is
	// known to stand.
	Standing func(ctx context.Context) []Standing

	// Wait is how long to wait for a copier that holds the ledger: for a copy of
	// the ledger, and until its books reach the end that the source has when
	// verification begins. Default [DefaultWait]; negative: not at all.
	Wait time.Duration

	// Mode needs the clusters that it reads. Empty: full with both clusters,
	// target with the target alone, books with none.
	Mode Mode

	// Source and Target are the clusters of the flow; nil if not at hand. An
	// empty alias is the ledger's.
	Source *connect.Cluster
	Target *connect.Cluster

	// SourceAlias and TargetAlias are the names that the ledger must have for the
	// clusters, also for one that is not at hand; empty: whatever it has. What a
	// cluster above is called must agree as well.
	SourceAlias string
	TargetAlias string

	// Topics and TopicsExclude say what is verified: regular expressions on the
	// whole source topic name, several separated by commas, as MM2's topics and
	// topics.exclude. Whatever topic of the source they choose is judged, also one
	// that the flow does not have. Empty Topics: all of the flow's.
	Topics        []string
	TopicsExclude []string

	Until Until // default UntilSourceEnd

	// Sample is the part of everything that is read; the rest is not verified.
	// All slices of one number together are everything, and no two have a record
	// in common. The zero value is everything.
	Sample Slice

	// Resume takes over what earlier runs have proven, as far as it still holds,
	// and reads the rest. What is proven by runs with Resume or a Sample is kept
	// at [StatePath].
	Resume bool

	// MaxBytes is how many bytes to read, of canonical records on both sides
	// together; then no entry is begun any more. 0: no limit.
	MaxBytes int64

	// BytesPerSecond limits how fast is read, in canonical bytes on both sides
	// together. 0: no limit.
	BytesPerSecond int64

	// MaxFindings is how many findings a report lists, faults first; the others
	// are counted. Default [DefaultMaxFindings].
	MaxFindings int

	// Parallel is how many partitions are read at a time, each on both sides.
	// Default [DefaultParallel].
	Parallel int

	// Patience is how long a partition may give no answer before it counts as
	// unreadable. Default [DefaultPatience].
	Patience time.Duration

	Version  string           // of the program, for the report
	Logger   *slog.Logger     // default: nothing is logged
	Progress func(Progress)   // called about once a second, from one goroutine
	Now      func() time.Time // default time.Now; called from several goroutines

	grain grain // for tests
}

// A Copy is a private copy of a flow's ledger.
type Copy struct {
	Ledger *ledger.Ledger // open for reading; whoever gets it closes it
	Live   bool           // a copier is at work, and its books go on
}

// Validate returns everything that is wrong with c, joined.
func (c *Config) Validate() error {
	var errs []error
	if c.LedgerPath == "" {
		errs = append(errs, errors.New("no ledger is given"))
	}
	switch c.Mode {
	case "", ModeBooks, ModeTarget, ModeFull:
	default:
		errs = append(errs, fmt.Errorf("unknown mode %q: modes are books, target, full", c.Mode))
	}
	switch c.Until {
	case "", UntilSourceEnd, UntilBook:
	default:
		errs = append(errs, fmt.Errorf("unknown end %q: verification ends at source-end or book", c.Until))
	}
	if c.Mode == ModeFull && c.Source == nil || c.Mode == "" && c.Source != nil && c.Target == nil {
		errs = append(errs, errors.New("comparing with the source needs both clusters"))
	}
	if (c.Mode == ModeFull || c.Mode == ModeTarget) && c.Target == nil {
		errs = append(errs, fmt.Errorf("mode %s needs the target cluster", c.Mode))
	}
	if c.Sample != (Slice{}) && !c.Sample.valid() {
		errs = append(errs, fmt.Errorf("there is no sample %v", c.Sample))
	}
	if (c.Sample != (Slice{}) || c.Resume) && c.mode() == ModeBooks {
		errs = append(errs, errors.New("the mode books reads neither cluster: there is nothing to take a sample of or to resume"))
	}
	if c.MaxFindings < 0 || c.Parallel < 0 || c.Patience < 0 || c.MaxBytes < 0 || c.BytesPerSecond < 0 {
		errs = append(errs, errors.New("a limit is negative"))
	}
	return errors.Join(errs...)
}

// mode returns the mode, which the clusters decide if it is not given.
func (c *Config) mode() Mode {
	switch {
	case c.Mode != "":
		return c.Mode
	case c.Source != nil && c.Target != nil:
		return ModeFull
	case c.Target != nil:
		return ModeTarget
	default:
		return ModeBooks
	}
}

func (c *Config) setDefaults() {
	c.Mode = c.mode()
	if c.Until == "" {
		c.Until = UntilSourceEnd
	}
	if c.MaxFindings == 0 {
		c.MaxFindings = DefaultMaxFindings
	}
	if c.Parallel == 0 {
		c.Parallel = DefaultParallel
	}
	if c.Wait == 0 {
		c.Wait = DefaultWait
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// A UsageError reports that there is nothing to verify as asked for: the ledger
// belongs to another flow, or nothing in it is asked for. No record was read.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

func usageErrorf(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}
