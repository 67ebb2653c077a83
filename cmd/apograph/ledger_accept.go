package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"apograph/ledger"
)

func ledgerAcceptCommand() command {
	return command{
		path:    "ledger accept",
		args:    "TOPIC:PARTITION:START-END",
		maxArgs: 1,
		summary: "take note of what is lost for ever, or in doubt, and accept it",
		details: "Source offsets that are lost or unexplained stay so for ever, and each report\n" +
			"names them. Once somebody has accepted them, with a reason, they are no fault\n" +
			"any more: verify then says complete_with_accepted_losses, and verify,\n" +
			"replicate and status exit with 0. The same holds for doubts, which verify\n" +
			"calls stale_keys_possible. `apograph verify --mode books` lists them all.\n\n" +
			"Each offset from START to before END must be bad or in doubt; else nothing is\n" +
			"accepted. A later acceptance of the same offsets takes the place of the\n" +
			"earlier one. Names are those of the source. Without --generation it is the\n" +
			"newest generation of the partition. The process that copies is asked, if one\n" +
			"does, else the ledger is written.",
		examples: []string{
			"apograph ledger accept orders:3:8812-8900 --reason 'expired in the outage of 7 May, ticket 42' --ledger f.ledger",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		flags: append(ledgerFlags(), []cli.Flag{
			// Neither from the environment: each use needs a decision of its own.
			reasonFlag(),
			&cli.IntFlag{Name: "generation", Usage: "the generation `N` of the partition that it is about (default the newest)"},
		}...),
		exits: orderExits(),
		run:   runLedgerAccept,
	}
}

func runLedgerAccept(ctx context.Context, inv *invocation) error {
	request, err := acceptRequestOf(inv)
	if err != nil {
		return err
	}
	path, err := flagLedger(inv)
	if err != nil {
		return err
	}
	report, err := giveAcceptance(ctx, path, request)
	if err != nil {
		return err
	}
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, report)
	}
	if err := inv.writeTable(report.table()); err != nil {
		return err
	}
	return inv.writeText(report.headline())
}

// acceptRequestOf returns the acceptance that the command line gives.
func acceptRequestOf(inv *invocation) (r acceptRequest, err error) {
	r = acceptRequest{Reason: inv.String("reason"), By: userAtHost(), AtMillis: time.Now().UnixMilli()}
	if len(inv.args) == 0 {
		return r, usagef("nothing to accept given").withHint("name TOPIC:PARTITION:START-END; `apograph verify --mode books` lists what can be accepted")
	}
	words := strings.Split(inv.args[0], ":")
	if len(words) != 3 {
		return r, usagef("%s is not TOPIC:PARTITION:START-END", quoteArg(inv.args[0]))
	}
	if r.Topic, r.Partition, err = askedPartition([]string{words[0] + ":" + words[1]}); err != nil {
		return r, err
	}
	if r.Offsets, err = parseOffsets("", words[2]); err != nil {
		return r, err
	}
	if n := inv.Int("generation"); inv.line.has("generation") {
		if n < 1 || n > math.MaxInt32 {
			return r, usagef("--generation %d: generations count from 1", n)
		}
		r.Generation = int32(n)
	}
	if strings.TrimSpace(r.Reason) == "" {
		return r, usagef("a reason is needed").withHint("give it with --reason TEXT: every report names it, for whoever asks later")
	}
	return r, checkReason(r.Reason)
}

// giveAcceptance has an acceptance written by the process that holds the ledger,
// or writes it.
func giveAcceptance(ctx context.Context, path string, request acceptRequest) (acceptReport, error) {
	return askFirst(ctx, path, query[acceptReport]{
		holder: func(h *holder) (report acceptReport, err error) {
			err = h.post(ctx, pathAccept, request, &report)
			report.Ledger.Path = path
			return report, err
		},
		file: func() (report acceptReport, err error) {
			l, err := ledger.Open(path, ledger.Options{LockTimeout: lockWait})
			if err != nil {
				return report, ledgerError(path, err)
			}
			report, err = acceptIn(l, request, func() (ledgerInfo, error) { return ledgerInfoOf(path, l) })
			return report, errors.Join(ledgerError(path, err), l.Close())
		},
	})
}

// acceptIn writes an acceptance into a ledger that is open for writing. A
// [*usageError] says that there is nothing to accept, and nothing has changed.
func acceptIn(l *ledger.Ledger, request acceptRequest, describe func() (ledgerInfo, error)) (r acceptReport, err error) {
	pair, err := acceptedPair(l, request)
	if err != nil {
		return r, err
	}
	err = l.Accept(pair.ID, ledger.Acceptance{Range: request.Offsets, Reason: request.Reason, By: request.By, AtMillis: request.AtMillis})
	var law *ledger.LawError
	if errors.As(err, &law) {
		return r, refusedAcceptance(l, request, pair, law)
	}
	if err != nil {
		return r, err
	}
	info, err := describe()
	if err != nil {
		return r, err
	}
	r = acceptReport{
		envelope: newEnvelope("AcceptReport", "accept"),
		Flow:     info.Flow, HolderPID: info.HolderPID, Ledger: info,
		Topic: pair.SourceTopic, TopicID: topicIDOf(pair.SourceTopicID), Partition: pair.Partition, Generation: pair.Generation,
		Offsets: rangeInfo{request.Offsets.Start, request.Offsets.End},
		Reason:  request.Reason, By: request.By, At: instantOf(request.AtMillis),
	}
	if r.Accepted, err = badIn(l, pair.ID, request.Offsets); err != nil {
		return r, err
	}
	for _, p := range l.Pairs() {
		r.Unaccepted += l.Unaccepted(p.ID)
	}
	return r, nil
}

// acceptedPair returns the pair that an acceptance is about: the newest
// generation of its partition, unless it names one.
func acceptedPair(l *ledger.Ledger, request acceptRequest) (ledger.Pair, error) {
	pairs := generations(l, request)
	if len(pairs) == 0 {
		return ledger.Pair{}, usagef("the ledger has no book about %s:%d", request.Topic, request.Partition)
	}
	if request.Generation == 0 {
		return pairs[len(pairs)-1], nil
	}
	i := slices.IndexFunc(pairs, func(p ledger.Pair) bool { return p.Generation == request.Generation })
	if i < 0 {
		return ledger.Pair{}, usagef("%s:%d has no generation %d, its newest is %d", request.Topic, request.Partition, request.Generation, pairs[len(pairs)-1].Generation)
	}
	return pairs[i], nil
}

// generations returns the pairs of the partition that an acceptance names, the
// newest last.
func generations(l *ledger.Ledger, request acceptRequest) []ledger.Pair {
	pairs := slices.DeleteFunc(l.Pairs(), func(p ledger.Pair) bool {
		return p.SourceTopic != request.Topic || p.Partition != request.Partition
	})
	slices.SortFunc(pairs, func(a, b ledger.Pair) int { return cmp.Compare(a.Generation, b.Generation) })
	return pairs
}

// refusedAcceptance says why there is nothing to accept, and names another
// generation that has it.
func refusedAcceptance(l *ledger.Ledger, request acceptRequest, pair ledger.Pair, law *ledger.LawError) error {
	err := usagef("%s:%d, generation %d: %s", request.Topic, request.Partition, pair.Generation, law.Detail)
	for _, other := range generations(l, request) {
		bad, failed := badIn(l, other.ID, request.Offsets)
		if other.ID != pair.ID && failed == nil && len(bad) > 0 {
			return err.withHint("generation %d has such offsets there: name it with --generation %d", other.Generation, other.Generation)
		}
	}
	return err.withHint("only what is lost, unexplained or in doubt can be accepted: `apograph verify --mode books` lists it")
}

// badIn returns what is bad or in doubt within a range of a pair.
func badIn(l *ledger.Ledger, id ledger.PairID, in ledger.Range) ([]acceptedInfo, error) {
	found, err := badTilesIn(l, id, in)
	for _, d := range l.StandingDoubts(id) {
		if start, end := max(d.Range.Start, in.Start), min(d.Range.End, in.End); start < end {
			found = append(found, acceptedInfo{d.Kind.String(), start, end, "", instantOf(d.AtMillis)})
		}
	}
	return found, err
}

// badTilesIn returns the lost and unexplained tiles within a range of a pair.
func badTilesIn(l *ledger.Ledger, id ledger.PairID, in ledger.Range) ([]acceptedInfo, error) {
	found := []acceptedInfo{}
	for e, err := range l.Entries(id, in.Start) {
		if err != nil {
			return nil, err
		}
		if e.Source.Start >= in.End {
			break
		}
		if start, end := max(e.Source.Start, in.Start), min(e.Source.End, in.End); e.Tile.Bad() && start < end {
			found = append(found, acceptedInfo{e.Tile.String(), start, end, e.Cause.String(), instantOf(e.LastKnownMillis)})
		}
	}
	return found, nil
}

// An acceptReport is the answer of `apograph ledger accept`.
type acceptReport struct {
	envelope
	Flow       flowInfo       `json:"flow"`
	HolderPID  *int           `json:"holder_pid"` // of the process that has written it; nil: this one
	Ledger     ledgerInfo     `json:"ledger"`
	Topic      string         `json:"topic"`
	TopicID    *string        `json:"topic_id"`
	Partition  int32          `json:"partition"`
	Generation int32          `json:"generation"`
	Offsets    rangeInfo      `json:"source_offsets"`
	Reason     string         `json:"reason"`
	By         string         `json:"by"`
	At         instant        `json:"at"`
	Accepted   []acceptedInfo `json:"accepted"`   // what is bad or in doubt there
	Unaccepted int64          `json:"unaccepted"` // lost and unexplained offsets of the ledger that nobody has accepted
}

// An acceptedInfo is a bad tile, or a doubt, as far as it was accepted.
type acceptedInfo struct {
	Kind      string  `json:"kind"` // lost, unexplained, or that of a doubt
	Start     int64   `json:"start"`
	End       int64   `json:"end"`
	Cause     string  `json:"cause"`
	LastKnown instant `json:"last_known"` // when the records were last known to be there; of a doubt, when it came up
}

func (r *acceptReport) table() *textTable {
	table := &textTable{header: []string{"TOPIC", "PARTITION", "GENERATION", "SOURCE OFFSETS", "WHAT", "CAUSE", "LAST-KNOWN"}, right: []bool{false, true, true}}
	for _, a := range r.Accepted {
		table.add(r.Topic, number(int64(r.Partition)), number(int64(r.Generation)), fmt.Sprintf("[%d, %d)", a.Start, a.End),
			inWords(a.Kind), cmp.Or(inWords(a.Cause), "-"), cmp.Or(a.LastKnown.String(), "-"))
	}
	return table
}

// headline says in one line what was accepted and what is left.
func (r *acceptReport) headline() string {
	line := fmt.Sprintf("accepted by %s: %s", r.By, r.Reason)
	if r.Unaccepted > 0 {
		return line + "; " + strconv.FormatInt(r.Unaccepted, 10) + " lost or unexplained offsets of this ledger are not accepted"
	}
	return line + "; no other offset of this ledger is lost or unexplained"
}
