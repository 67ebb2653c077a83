package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"apograph/translate"
)

// askedOffsets returns the offsets that the command line asks for, in order,
// with their groups where they have any. What groups have committed has yet to
// be read: then there are none.
func askedOffsets(inv *invocation) (*translate.Sheet, error) {
	file, groups := inv.String("from-file"), askedGroups(inv)
	switch {
	case file != "" && len(inv.args) > 0:
		return nil, usagef("offsets are given both as arguments and with --from-file")
	case file != "":
		plan, err := readPlanFile(inv, file)
		if err != nil {
			return nil, err
		}
		return selectGroups(file, plan, groups)
	case len(groups) > 0 && len(inv.args) > 0:
		return nil, usagef("both offsets and --group are given")
	case len(groups) > 0:
		return &translate.Sheet{Grouped: true}, nil // they are read later
	case len(inv.args) == 0:
		return nil, usagef("no offset given").
			withHint("name offsets as TOPIC:PARTITION:OFFSET, a file of them with --from-file FILE, or a group with --group NAME")
	}
	return planOfArguments(inv.args)
}

// askedGroups returns the groups that the command line names, each once.
func askedGroups(inv *invocation) []string {
	return slices.Compact(slices.Sorted(slices.Values(inv.StringSlice("group"))))
}

func planOfArguments(args []string) (*translate.Sheet, error) {
	var plan translate.Sheet
	for _, arg := range args {
		query, err := translate.ParseQuery(arg)
		if err != nil {
			return nil, usagef("offset %s: %v", quoteArg(arg), err).
				withHint("an offset is written TOPIC:PARTITION:OFFSET, as in orders:0:881204")
		}
		plan.Add(translate.PlanRow{Query: query})
	}
	return &plan, nil
}

// readPlanFile reads a file of offsets. What is wrong with its lines is wrong
// use: nothing has been attempted.
func readPlanFile(inv *invocation, path string) (plan *translate.Sheet, err error) {
	in := inv.stdin
	if path != "-" {
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return plan, usagef("--from-file %s does not exist", quoteArg(path))
		}
		if err != nil {
			return plan, fmt.Errorf("--from-file: %w", err)
		}
		defer file.Close()
		in = file
	}
	plan, err = translate.ReadSheet(in)
	var fault *translate.PlanError
	if errors.As(err, &fault) {
		return plan, usagef("--from-file %s: %v", quoteArg(path), fault).
			withHint("a line is topic,partition,offset or group,topic,partition,offset, and there is no header")
	}
	if err != nil {
		return plan, fmt.Errorf("--from-file %s: %w", path, err)
	}
	return plan, nil
}

// selectGroups returns what groups ask for of the plan in a file: of one with
// groups their rows, of one without all rows for the one group.
func selectGroups(file string, plan *translate.Sheet, groups []string) (*translate.Sheet, error) {
	if len(groups) == 0 {
		return plan, nil
	}
	if !plan.Grouped {
		if len(groups) > 1 {
			return plan, usagef("--from-file %s is for one group, and %d are given", quoteArg(file), len(groups))
		}
		plan.SetGroup(groups[0])
		return plan, nil
	}
	for _, group := range groups {
		if !plan.HasGroup(group) {
			return plan, usagef("--from-file %s has no offsets of group %s", quoteArg(file), quoteArg(group))
		}
	}
	plan.KeepGroups(groups)
	return plan, nil
}
