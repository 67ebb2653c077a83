package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"apograph/internal/readlog"
)

// A mm2Kind says how records of one kind are read and shown.
type mm2Kind[Row any] struct {
	mm2Topic
	kind, schema string                                  // of the answer
	parse        func(r readlog.Record) (*Row, error)    // nil: it is not asked for
	compare      func(a, b Row) int                      // the order of rows, but with --all
	table        func(rows []Row, exact bool) *textTable // exact: there is a ledger
	seen         func(Row)                               // is told of every row, in order; may be nil
}

// A mm2Report is the answer of `apograph mm2`.
type mm2Report[Row any] struct {
	envelope
	Cluster        clusterInfo       `json:"cluster"`
	Topic          string            `json:"topic"`
	Log            rangeInfo         `json:"log"`
	Ledger         *ledgerRef        `json:"ledger,omitempty"`
	Rows           []Row             `json:"rows"`
	Translations   []syncTranslation `json:"translations,omitempty"`
	Damaged        []mm2Damage       `json:"damaged"`
	DamagedOmitted int               `json:"damaged_omitted"`
}

// A mm2Damage is a record that cannot be read.
type mm2Damage struct {
	Offset int64  `json:"offset"`
	Detail string `json:"detail"`
}

// maxDamage is how many damaged records are told one by one: a topic of something
// else has nothing but such.
const maxDamage = 100

// A mm2Stamp is what there is to say about a record beside its fields.
type mm2Stamp struct {
	Offset int64   `json:"offset"`
	Time   instant `json:"time"`
	Detail string  `json:"detail,omitempty"`
}

// stampOf returns the stamp of a record. Key and value are what its fields encode
// to, if they do.
func stampOf(r readlog.Record, version int16, key, value []byte, err error) mm2Stamp {
	s := mm2Stamp{Offset: r.Offset, Time: instant{r.Time}}
	switch {
	case version != 0:
		s.Detail = fmt.Sprintf("version %d, read as version 0", version)
	case err != nil, !bytes.Equal(key, r.Key), !bytes.Equal(value, r.Value):
		s.Detail = "it has more bytes than its fields need, or a text that is no UTF-8"
	}
	return s
}

func (s *mm2Stamp) add(detail string) {
	if s.Detail != "" && detail != "" {
		s.Detail += "; "
	}
	s.Detail += detail
}

// readMM2 reads a topic. What it keeps grows with the keys of the topic, with --all
// with its records.
func readMM2[Row any](ctx context.Context, inv *invocation, kind mm2Kind[Row], place mm2Place) (*mm2Report[Row], error) {
	if err := place.checkLedger(ctx); err != nil {
		return nil, err
	}
	report := &mm2Report[Row]{
		envelope: newEnvelope(kind.kind, kind.schema), Topic: place.topic, Rows: []Row{}, Damaged: []mm2Damage{},
	}
	all, last := inv.Bool("all"), map[string]Row{}
	log, err := readlog.Read(ctx, place.cluster, place.topic, func(r readlog.Record) {
		row, err := kind.parse(r)
		switch {
		case err != nil:
			report.damage(r.Offset, err)
			return
		case row == nil:
			return
		case all:
			report.Rows = append(report.Rows, *row)
		default:
			last[string(r.Key)] = *row
		}
		if kind.seen != nil {
			kind.seen(*row)
		}
	})
	if errors.Is(err, readlog.ErrNoTopic) {
		return nil, &noInternalTopicError{place.topic, place.cluster.Alias}
	}
	if err != nil {
		return nil, err
	}
	for _, row := range last {
		report.Rows = append(report.Rows, row)
	}
	if !all {
		slices.SortFunc(report.Rows, kind.compare)
	}
	report.Cluster, report.Log = clusterInfo{place.cluster.Alias, log.ClusterID}, rangeInfo{log.Start, log.End}
	if log.Partitions > 1 {
		inv.warnOnce(fmt.Sprintf("topic %s has %d partitions; MirrorMaker 2 uses partition 0, which alone is read", place.topic, log.Partitions))
	}
	return report, place.checkIdentity(ctx, log.ClusterID)
}

// checkLedger finds out before anything is read whether there is one to compare
// with.
func (p *mm2Place) checkLedger(ctx context.Context) error {
	if p.ledger == "" {
		return nil
	}
	_, err := readLedgerInfo(ctx, p.ledger)
	return err
}

func (r *mm2Report[Row]) damage(offset int64, err error) {
	if len(r.Damaged) == maxDamage {
		r.DamagedOmitted++
		return
	}
	r.Damaged = append(r.Damaged, mm2Damage{offset, err.Error()})
}

// A noInternalTopicError says that there is nothing to read.
type noInternalTopicError struct{ topic, alias string }

func (e *noInternalTopicError) Error() string {
	return fmt.Sprintf("cluster %s has no topic %s", e.alias, e.topic)
}

// Hint returns the advice that goes with the error.
func (e *noInternalTopicError) Hint() string {
	return "its name follows the aliases and separators of whoever writes it: name it with --topic, and its cluster with --on source or --on target"
}

// answer writes the report, and returns what it means for the exit code.
func (r *mm2Report[Row]) answer(inv *invocation, kind mm2Kind[Row]) error {
	err := r.write(inv, kind)
	if len(r.Damaged) > 0 {
		err = errors.Join(err, verdict(exitFaults))
	}
	return err
}

func (r *mm2Report[Row]) write(inv *invocation, kind mm2Kind[Row]) error {
	switch inv.format {
	case formatJSON:
		return writeJSON(inv.stdout, r)
	case formatJSONLines:
		for _, d := range r.Damaged {
			inv.stderr.warn(fmt.Sprintf("offset %d of %s cannot be read: %s", d.Offset, r.Topic, d.Detail))
		}
		if r.DamagedOmitted > 0 {
			inv.stderr.warn(fmt.Sprintf("so it is with %d records more", r.DamagedOmitted))
		}
		for i := range r.Rows {
			if err := writeJSON(inv.stdout, &r.Rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := inv.writeTable(kind.table(r.Rows, r.Ledger != nil)); err != nil {
		return err
	}
	for _, table := range []*textTable{translationsTable(r.Translations, r.Ledger != nil), r.damageTable()} {
		if len(table.rows) == 0 {
			continue
		}
		if err := errors.Join(inv.writeText(""), inv.writeTable(table)); err != nil {
			return err
		}
	}
	return nil
}

func (r *mm2Report[Row]) damageTable() *textTable {
	table := &textTable{header: []string{"OFFSET", "DAMAGE"}, right: []bool{true, false}}
	for _, d := range r.Damaged {
		table.add(fmt.Sprint(d.Offset), d.Detail)
	}
	if r.DamagedOmitted > 0 {
		table.add("", fmt.Sprintf("and %d more", r.DamagedOmitted))
	}
	return table
}
