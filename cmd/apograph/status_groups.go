package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"apograph/internal/groups"
	"apograph/internal/mirror"
)

// A groupStatus is where a consumer group is in one partition. What is not known
// is nil; Topic is "" and Partition nil where the row is about all of the group.
type groupStatus struct {
	Group        string `json:"group"`
	Topic        string `json:"topic"`
	Partition    *int32 `json:"partition"`
	TargetTopic  string `json:"target_topic"`
	SourceOffset *int64 `json:"source_offset"`
	TargetOffset *int64 `json:"target_offset"`
	Committed    *int64 `json:"committed"` // on the target
	Action       string `json:"action"`    // none, commit or skip
	Reason       string `json:"reason"`
}

// setGroups puts into a report where the groups of a flow are.
func (r *statusReport) setGroups(s mirror.GroupsStatus) {
	if s.Rows == nil {
		return
	}
	r.Groups, r.GroupsOmitted, r.SyncLag = make([]groupStatus, 0, len(s.Rows)), s.Omitted, secondsOf(s.Lag)
	for _, g := range s.Rows {
		row := groupStatus{
			Group: g.Group, Topic: g.Topic, TargetTopic: g.TargetTopic, SourceOffset: known(g.SourceOffset),
			TargetOffset: known(g.TargetOffset), Committed: known(g.Committed), Action: string(g.Action), Reason: string(g.Reason),
		}
		if g.Partition >= 0 {
			row.Partition = &g.Partition
		}
		r.Groups = append(r.Groups, row)
	}
}

// A reasonedGroup is a group with partitions about which one thing is to be said.
type reasonedGroup struct {
	group, reason string
	topics        []string
	partitions    int
}

// byPattern reports whether patterns leave the group out.
func (s *reasonedGroup) byPattern() int {
	if mirror.Reason(s.reason).ByPattern() {
		return 1
	}
	return 0
}

// isLeftAlone and isInexact say which rows have something to say in a table.
func (g *groupStatus) isLeftAlone() bool { return g.Action == string(groups.DoNothing) }
func (g *groupStatus) isInexact() bool   { return mirror.Reason(g.Reason).Inexact() }

// reasonedGroups returns the groups of which some rows are to be told, by name and
// reason, and those behind the others that patterns leave out.
func reasonedGroups(rows []groupStatus, told func(*groupStatus) bool) []*reasonedGroup {
	var all []*reasonedGroup
	index := make(map[[2]string]*reasonedGroup)
	for _, r := range rows {
		if !told(&r) {
			continue
		}
		key := [2]string{r.Group, r.Reason}
		if index[key] == nil {
			index[key] = &reasonedGroup{group: r.Group, reason: r.Reason}
			all = append(all, index[key])
		}
		if s := index[key]; r.Partition != nil {
			s.partitions++
			if !slices.Contains(s.topics, r.Topic) {
				s.topics = append(s.topics, r.Topic)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *reasonedGroup) int {
		return cmp.Or(cmp.Compare(a.byPattern(), b.byPattern()), strings.Compare(a.group, b.group), strings.Compare(a.reason, b.reason))
	})
	return all
}

// groupTables show the groups that are left alone, and those that go on behind records
// that they have not read; a table that has none is left out.
func groupTables(rows []groupStatus, omitted int) (tables []*textTable) {
	if alone := reasonedGroups(rows, (*groupStatus).isLeftAlone); len(alone) > 0 {
		tables = append(tables, groupTable("LEFT-ALONE", alone, omitted))
	}
	if inexact := reasonedGroups(rows, (*groupStatus).isInexact); len(inexact) > 0 {
		tables = append(tables, groupTable("INEXACT", inexact, 0))
	}
	return tables
}

// groupTable shows groups. Of those that patterns leave out it shows a few, and how
// many more there are: omitted ones have no row.
func groupTable(reason string, all []*reasonedGroup, omitted int) *textTable {
	table := &textTable{header: []string{"GROUP", reason, "PARTITIONS", "TOPICS"}, right: []bool{false, false, true}}
	shown := 0
	for i, s := range all {
		if shown += s.byPattern(); shown > maxNames {
			table.add(fmt.Sprintf("and %d more", len(all)-i+omitted), "excluded or not_matched", "-", "-")
			break
		}
		partitions := "-"
		if s.partitions > 0 {
			partitions = number(int64(s.partitions))
		}
		table.add(s.group, s.reason, partitions, cmp.Or(joinFirst(s.topics, func(topic string) string { return topic }), "-"))
	}
	return table
}
