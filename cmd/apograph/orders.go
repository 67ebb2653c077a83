package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"apograph/ledger"
	"apograph/replicate"
)

// wholeTopic stands for all partitions of a topic in an order.
const wholeTopic = -1

func pauseCommand() command {
	return command{
		path:    "pause",
		args:    "TOPIC[:PARTITION]",
		maxArgs: 1,
		summary: "stop copying a topic or a partition until it is resumed",
		details: "A running copier finishes what is in flight and leaves the partitions alone\n" +
			"from then on; the others go on. Where none runs, the next one obeys. The pause\n" +
			"is kept in the ledger with who ordered it, and no restart ends it.",
		examples: []string{
			"apograph pause --ledger f.ledger orders",
			"apograph pause --ledger f.ledger orders:3 --reason 'disk of broker 7 is full'",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		flags:   append(ledgerFlags(), reasonFlag()),
		exits:   orderExits(),
		run:     func(ctx context.Context, inv *invocation) error { return runOrder(ctx, inv, true) },
	}
}

func resumeCommand() command {
	return command{
		path:    "resume",
		args:    "TOPIC[:PARTITION]",
		maxArgs: 1,
		summary: "copy again what was paused or has stopped",
		details: "Ends a pause, and tries a partition that has stopped at once. What it stopped\n" +
			"for may need a decision:\n\n" +
			"  --skip START-END      leave out the source offsets from START to before END;\n" +
			"                        they are booked as filtered, with the reason that must\n" +
			"                        be given. START must be where the copy stands\n" +
			"  --accept-recreated    go on with a topic that was deleted and created again\n" +
			"  --accept-truncated    go on with a source that has lost its end\n" +
			"  --recopy              copy again what the target has lost at its end, or all\n" +
			"                        of a target topic that was deleted. What is missing\n" +
			"                        in the middle cannot be put back: order would be lost\n" +
			"  --tolerate-foreign    go on beside records that somebody else writes to the\n" +
			"                        target; they are booked, and offsets still translate\n" +
			"                        exactly. The next resume without it takes it back\n\n" +
			"One of them at a time. A topic that is paused as a whole is resumed as a whole.\n" +
			"The order is kept in the ledger; where no copier runs, the next one obeys.",
		examples: []string{
			"apograph resume --ledger f.ledger orders",
			"apograph resume --ledger f.ledger orders:3 --skip 8812-8813 --reason 'larger than the target takes, ticket 42'",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		// None of these from the environment: each use needs a decision of its own.
		flags: append(ledgerFlags(), []cli.Flag{
			reasonFlag(),
			&cli.StringFlag{Name: "skip", Usage: "leave out the source offsets of a `RANGE` START-END, END excluded; needs --reason"},
			&cli.BoolFlag{Name: "accept-recreated", Usage: "go on with a topic that was deleted and created again"},
			&cli.BoolFlag{Name: "accept-truncated", Usage: "go on with a source partition whose log was cut"},
			&cli.BoolFlag{Name: "recopy", Usage: "copy again what the target has lost"},
			&cli.BoolFlag{Name: "tolerate-foreign", Usage: "go on beside records that others write to the target, and book them"},
		}...),
		exits: orderExits(),
		run:   func(ctx context.Context, inv *invocation) error { return runOrder(ctx, inv, false) },
	}
}

func orderExits() []exitCode { return []exitCode{exitNoLedger, exitLocked, exitDamaged} }

func reasonFlag() cli.Flag {
	return &cli.StringFlag{Name: "reason", Usage: "a `TEXT` of one line that is kept with the order"}
}

func runOrder(ctx context.Context, inv *invocation, pause bool) error {
	order, err := orderOf(inv, pause)
	if err != nil {
		return err
	}
	path, err := flagLedger(inv)
	if err != nil {
		return err
	}
	answer, err := giveOrder(ctx, path, order)
	if err != nil {
		return err
	}
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, answer.Report)
	}
	if _, err := fmt.Fprintln(inv.stdout, printable(answer.Report.headline())); err != nil {
		return err
	}
	return inv.writeTable(partitionTable(answer.Report.State, answer.Report.Partitions, answer.Details))
}

// orderOf returns the order that the command line gives.
func orderOf(inv *invocation, pause bool) (ledger.Order, error) {
	o := ledger.Order{
		Paused: pause, By: userAtHost(), Reason: inv.String("reason"), AtMillis: time.Now().UnixMilli(),
		AcceptRecreated: inv.Bool("accept-recreated"), AcceptTruncated: inv.Bool("accept-truncated"),
		Recopy: inv.Bool("recopy"), TolerateForeign: inv.Bool("tolerate-foreign"),
	}
	err := oneDecision(inv)
	if err != nil {
		return o, err
	}
	if o.SourceTopic, o.Partition, err = askedPartition(inv.args); err != nil {
		return o, err
	}
	if text := inv.String("skip"); text != "" {
		if o.Skip, err = parseOffsets("--skip ", text); err != nil {
			return o, err
		}
		if o.Partition == wholeTopic {
			return o, usagef("--skip is about one partition: name TOPIC:PARTITION")
		}
		if o.Reason == "" {
			return o, usagef("--skip needs --reason").withHint("it is kept with the offsets that are left out, for whoever asks later")
		}
	}
	return o, checkReason(o.Reason)
}

// oneDecision refuses a command line with more than one of the decisions that a
// resumption can bring: each is about another reason to stop, and a partition
// stops for one.
func oneDecision(inv *invocation) error {
	var given []string
	for _, flag := range []string{"skip", "accept-recreated", "accept-truncated", "recopy", "tolerate-foreign"} {
		if inv.Bool(flag) || inv.String(flag) != "" && flag == "skip" {
			given = append(given, "--"+flag)
		}
	}
	if len(given) > 1 {
		return usagef("%s: one decision at a time", strings.Join(given, " and ")).
			withHint("`apograph status --stopped` says what each partition stopped for")
	}
	return nil
}

// maxReason is how many bytes the ledger takes as a reason.
const maxReason = 1024

func checkReason(text string) error {
	if len(text) > maxReason || strings.ContainsAny(text, "\r\n") {
		return usagef("--reason is more than one line or %d bytes", maxReason)
	}
	return nil
}

// askedPartition reads TOPIC or TOPIC:PARTITION. No topic has a colon in its
// name (Kafka's Topic.LEGAL_CHARS).
func askedPartition(args []string) (topic string, partition int32, err error) {
	if len(args) == 0 {
		return "", 0, usagef("no topic given").withHint("name TOPIC, or TOPIC:PARTITION for one partition of it")
	}
	topic, text, one := strings.Cut(args[0], ":")
	if topic == "" {
		return "", 0, usagef("%s names no topic", quoteArg(args[0]))
	}
	if !one {
		return topic, wholeTopic, nil
	}
	n, parseErr := strconv.ParseInt(text, 10, 32)
	if parseErr != nil || n < 0 {
		return "", 0, usagef("%s is neither TOPIC nor TOPIC:PARTITION", quoteArg(args[0]))
	}
	return topic, int32(n), nil
}

// parseOffsets reads START-END. Errors begin with a prefix.
func parseOffsets(prefix, text string) (ledger.Range, error) {
	from, to, ok := strings.Cut(text, "-")
	start, startErr := strconv.ParseInt(from, 10, 64)
	end, endErr := strconv.ParseInt(to, 10, 64)
	if !ok || startErr != nil || endErr != nil || start < 0 || end == math.MaxInt64 {
		return ledger.Range{}, usagef("%s%s is no range of offsets", prefix, quoteArg(text)).
			withHint("8812-8813 is offset 8812 alone: END is the first offset behind the range")
	}
	if start >= end {
		return ledger.Range{}, usagef("%s%s is empty", prefix, quoteArg(text)).
			withHint("END is the first offset behind the range: %d-%d is offset %d alone", start, start+1, start)
	}
	return ledger.Range{Start: start, End: end}, nil
}

// userAtHost returns who runs this process, for reports.
func userAtHost() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// giveOrder has an order carried out by the process that holds the ledger, or
// leaves it in the ledger for the next one.
func giveOrder(ctx context.Context, path string, o ledger.Order) (orderResponse, error) {
	return askFirst(ctx, path, query[orderResponse]{
		holder: func(h *holder) (answer orderResponse, err error) {
			err = h.post(ctx, pathOrder, orderRequest{o}, &answer)
			answer.Report.Ledger.Path = path
			return answer, err
		},
		file: func() (answer orderResponse, err error) {
			l, err := ledger.Open(path, ledger.Options{LockTimeout: lockWait})
			if err != nil {
				return answer, ledgerError(path, err)
			}
			answer, err = orderInFile(path, l, o)
			return answer, errors.Join(err, l.Close())
		},
	})
}

func orderInFile(path string, l *ledger.Ledger, o ledger.Order) (orderResponse, error) {
	if err := replicate.OrderOffline(l, o); err != nil {
		return orderResponse{}, err
	}
	all, err := statusInFile(l)
	if err != nil {
		return orderResponse{}, err
	}
	all = slices.DeleteFunc(all, func(p replicate.PartitionStatus) bool { return !isAbout(o, p.Topic, p.Partition) })
	info, err := ledgerInfoOf(path, l)
	if err != nil {
		return orderResponse{}, ledgerError(path, err)
	}
	report, details := newOrderReport(o, info, l, all)
	return orderResponse{report, details}, nil
}

// An orderReport is the answer of `apograph pause` and `apograph resume`.
type orderReport struct {
	envelope
	Flow       flowInfo          `json:"flow"`
	State      string            `json:"state"`      // of the flow, as in a status report
	HolderPID  *int              `json:"holder_pid"` // of the process that obeys; nil: the next one will
	Order      orderInfo         `json:"order"`
	Ledger     ledgerInfo        `json:"ledger"`
	Partitions []partitionStatus `json:"partitions"` // what they do now
}

// An orderInfo is an order in an answer.
type orderInfo struct {
	Action          string     `json:"action"` // pause or resume
	Topic           string     `json:"topic"`
	Partition       *int32     `json:"partition"` // nil: all of them
	Skip            *rangeInfo `json:"skip"`      // nil: nothing
	AcceptRecreated bool       `json:"accept_recreated"`
	AcceptTruncated bool       `json:"accept_truncated"`
	Recopy          bool       `json:"recopy"`
	TolerateForeign bool       `json:"tolerate_foreign"`
	Reason          string     `json:"reason"`
	By              string     `json:"by"`
	At              instant    `json:"at"`
}

// A rangeInfo is a half-open range of offsets in an answer.
type rangeInfo struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

func newOrderReport(o ledger.Order, info ledgerInfo, l *ledger.Ledger, all []replicate.PartitionStatus) (orderReport, []string) {
	r := orderReport{
		envelope: newEnvelope("OrderReport", "order"),
		Flow:     info.Flow, State: stateStopped, HolderPID: info.HolderPID, Ledger: info,
		Order: orderInfo{
			Action: "resume", Topic: o.SourceTopic, AcceptRecreated: o.AcceptRecreated, AcceptTruncated: o.AcceptTruncated,
			Recopy: o.Recopy, TolerateForeign: o.TolerateForeign,
			Reason: o.Reason, By: o.By, At: instantOf(o.AtMillis),
		},
	}
	if info.HolderPID != nil {
		r.State = stateRunning
	}
	if o.Paused {
		r.Order.Action = "pause"
	}
	if o.Partition != wholeTopic {
		r.Order.Partition = &o.Partition
	}
	if !o.Skip.Empty() {
		r.Order.Skip = &rangeInfo{o.Skip.Start, o.Skip.End}
	}
	var details []string
	r.Partitions, details = partitionRows(l, all)
	return r, details
}

// headline says in one line what was ordered and who obeys.
func (r *orderReport) headline() string {
	line := r.Order.Action + " " + r.Order.Topic
	if r.Order.Partition != nil {
		line += fmt.Sprintf(":%d", *r.Order.Partition)
	}
	if s := r.Order.Skip; s != nil {
		line += fmt.Sprintf(", leaving out source offsets %d to %d", s.Start, s.End-1)
	}
	for _, decision := range []struct {
		is   bool
		what string
	}{
		{r.Order.AcceptRecreated, "accepted as created again"}, {r.Order.AcceptTruncated, "accepted as truncated"},
		{r.Order.Recopy, "copying again what the target lost"}, {r.Order.TolerateForeign, "tolerating records of others on the target"},
	} {
		if decision.is {
			line += ", " + decision.what
		}
	}
	if r.HolderPID != nil {
		return line + ": ordered, process " + strconv.Itoa(*r.HolderPID) + " obeys"
	}
	return line + ": in the ledger, for the next run"
}
