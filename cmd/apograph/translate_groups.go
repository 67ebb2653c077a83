package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"apograph/internal/groups"
	"apograph/translate"
)

// A readGroup is a group as the cluster has it from which it was read.
type readGroup struct {
	groups.Group
	offsetsErr error
	selection  translate.Selection
}

// fault returns why the group cannot be translated, or not all of it.
func (g *readGroup) fault(alias string) error {
	switch {
	case g.Err != nil:
		return fmt.Errorf("group %s on %s: %w", quoteArg(g.ID), alias, g.Err)
	case g.Kind == groups.Absent:
		return fmt.Errorf("group %s does not exist on %s", quoteArg(g.ID), alias)
	case g.offsetsErr != nil:
		return fmt.Errorf("group %s on %s: %w", quoteArg(g.ID), alias, g.offsetsErr)
	}
	return nil
}

// incomplete reports whether the group has offsets that are not translated, in
// topics without a book, or is of a kind that cannot be.
func (g *readGroup) incomplete() bool {
	return !g.Kind.CommitsOffsets() || len(g.selection.NoBook) > 0
}

// note returns what is left out of the group, for a person.
func (g *readGroup) note() string {
	var parts []string
	switch {
	case g.Err != nil || g.offsetsErr != nil || g.Kind == groups.Absent:
	case !g.Kind.CommitsOffsets():
		parts = append(parts, "a "+string(g.Kind)+" group has no committed offsets to translate")
	case len(g.selection.Transfers) == 0:
		parts = append(parts, "it has committed nothing in a topic with a book")
	}
	if left := g.selection.Null; len(left) > 0 {
		parts = append(parts, "left out, as no offset is committed: "+joinFirst(left, groups.Partition.String))
	}
	if left := g.selection.NoBook; len(left) > 0 {
		parts = append(parts, "not translated, as the ledger has no book: "+joinFirst(left, func(s string) string { return s }))
	}
	return strings.Join(parts, "; ")
}

// joinFirst joins the first few texts, and says how many there are more.
func joinFirst[T any](all []T, text func(T) string) string {
	const most = 5
	var parts []string
	for _, one := range all[:min(len(all), most)] {
		parts = append(parts, text(one))
	}
	if more := len(all) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// A translationGroup is a group in an answer. What was not asked is nil.
type translationGroup struct {
	Group string  `json:"group"`
	Kind  *string `json:"kind"` // where it was read
	State *string `json:"state"`

	TargetGroup *string `json:"target_group"` // for which its offsets are committed
	TargetKind  *string `json:"target_kind"`
	TargetState *string `json:"target_state"`

	Offsets       int              `json:"offsets"`        // rows
	WithoutOffset []groupPartition `json:"without_offset"` // left out: nothing is committed
	WithoutBook   []string         `json:"without_book"`   // topics of which nothing is translated
	Detail        string           `json:"detail"`
}

type groupPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

// fillGroups makes the list of groups, in the order of what was asked.
func (t *translation) fillGroups() {
	if t.read == nil && t.carried == nil {
		return
	}
	index := make(map[string]int)
	at := func(id string) *translationGroup {
		if _, ok := index[id]; !ok {
			index[id] = len(t.Groups)
			t.Groups = append(t.Groups, translationGroup{Group: id, WithoutOffset: []groupPartition{}, WithoutBook: []string{}})
		}
		return &t.Groups[index[id]]
	}
	for i := range t.read {
		t.read[i].describe(at(t.read[i].ID), t.readAlias)
	}
	for i := range t.transfers {
		group := at(t.transfers[i].Group)
		if group.Offsets++; t.carried != nil && group.TargetGroup == nil {
			t.describeTarget(group)
		}
	}
}

func (g *readGroup) describe(to *translationGroup, alias string) {
	to.Kind, to.State = textOrNil(string(g.Kind)), textOrNil(g.State)
	for _, p := range g.selection.Null {
		to.WithoutOffset = append(to.WithoutOffset, groupPartition{p.Topic, p.Number})
	}
	to.WithoutBook = append(to.WithoutBook, g.selection.NoBook...)
	to.Detail = g.note()
	if err := g.fault(alias); err != nil {
		to.Detail = err.Error()
	}
}

func (t *translation) describeTarget(to *translationGroup) {
	id := to.Group
	if t.carry.TargetGroup != "" {
		id = t.carry.TargetGroup
	}
	on := t.carried.Groups[id]
	to.TargetGroup, to.TargetKind, to.TargetState = &id, textOrNil(string(on.Kind)), textOrNil(on.State)
}

// groupTable shows the groups: what they are, and what is left out of them.
func (t *translation) groupTable() *textTable {
	read, carried := t.read != nil, t.carried != nil
	columns := []tableColumn{
		{"GROUP", false, true}, {"KIND", false, read}, {"STATE", false, read},
		{"TARGET-GROUP", false, carried}, {"TARGET-KIND", false, carried}, {"TARGET-STATE", false, carried},
		{"OFFSETS", true, true}, {"DETAIL", false, true},
	}
	var rows [][]string
	for _, g := range t.Groups {
		rows = append(rows, []string{g.Group, orDash(g.Kind), orDash(g.State), orDash(g.TargetGroup),
			orDash(g.TargetKind), orDash(g.TargetState), number(int64(g.Offsets)), g.Detail})
	}
	return tableOf(columns, rows)
}

// tell says on standard error what the form of the answer has no place for, and
// what was done or would be.
func (t *translation) tell(inv *invocation, kafkaCSV bool) {
	if inv.format != formatTable && inv.format != formatWide && inv.format != formatJSON || kafkaCSV {
		for i := range t.read {
			if note := t.read[i].note(); note != "" {
				inv.stderr.say(clean(fmt.Sprintf("translate: group %s: %s", quoteArg(t.read[i].ID), note)))
			}
		}
	}
	if t.carried == nil {
		return
	}
	count := t.count()
	did := fmt.Sprintf("%d to commit, %d there already, %d to skip; nothing is written without --execute",
		count[groups.DoCommit], count[groups.None], count[groups.DoNothing])
	if t.carry.Execute {
		did = fmt.Sprintf("%d committed, %d there already, %d skipped", count[groups.DoCommit], count[groups.None], count[groups.DoNothing])
	}
	inv.stderr.say(clean(fmt.Sprintf("translate: offsets on %s: %s", t.targetAlias, did)))
	if active := t.carried.Active; len(active) > 0 && !t.carry.SkipActive {
		inv.stderr.say(clean(fmt.Sprintf("translate: nothing is committed for any group, as these have members on %s: %s",
			t.targetAlias, joinFirst(active, quoteArg))))
		inv.stderr.say("stop their members first, or leave these groups alone with --skip-active")
	}
}

func (t *translation) count() map[groups.Action]int {
	count := make(map[groups.Action]int)
	for i := range t.transfers {
		count[t.transfers[i].Decision.Action]++
	}
	return count
}

// firstFault says what is wrong with a group where it was read, if anything is.
func (t *translation) firstFault() string {
	for i := range t.read {
		if err := t.read[i].fault(t.readAlias); err != nil {
			return err.Error()
		}
	}
	return ""
}

// problems returns what went wrong with single groups and rows. One that many
// share is said once.
func (t *translation) problems() error {
	var errs []error
	said := make(map[string]bool)
	add := func(err error) {
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			errs = append(errs, err)
		}
	}
	for i := range t.read {
		add(t.read[i].fault(t.readAlias))
	}
	for i := range t.transfers {
		add(t.transfers[i].Err)
	}
	return errors.Join(errs...)
}

// verdicts returns what the exit code has to say about the answer.
func (t *translation) verdicts() error {
	var verdicts []error
	unproven := slices.ContainsFunc(t.read, func(g readGroup) bool { return g.Err == nil && g.incomplete() })
	unproven = unproven || !t.isExact()
	if t.carry.Execute {
		unproven = unproven || t.count()[groups.DoNothing] > 0
		if t.refused() {
			verdicts = append(verdicts, verdict(exitRefused))
		}
	}
	if unproven {
		verdicts = append(verdicts, verdict(exitUnproven))
	}
	return errors.Join(verdicts...)
}

// refused reports whether a group's members stood against what was to be
// committed.
func (t *translation) refused() bool {
	if t.carry.SkipActive || t.carried == nil {
		return false
	}
	return len(t.carried.Active) > 0 || slices.ContainsFunc(t.transfers, func(from translate.Transfer) bool {
		return from.Decision.Reason == groups.Joined
	})
}
