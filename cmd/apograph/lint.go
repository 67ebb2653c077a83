package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"apograph/internal/lint"
	"apograph/internal/lint/probe"
	"apograph/internal/mm2"
)

func lintCommand() command {
	return command{
		path:    "lint",
		args:    "FILE",
		maxArgs: 1,
		summary: "tell what in a configuration file does not do what its author thinks",
		details: "Reads an mm2.properties or a client.properties; which it is, its keys tell. Each\n" +
			"finding has its place in the file and a code, which docs/lint.md describes. What\n" +
			"is secret is not shown. Key and trust stores are read, as a run does.\n\n" +
			"With --explain it says of one topic whether each flow copies it, under which\n" +
			"name, and by which pattern of which line, or which rule keeps it out. With\n" +
			"--connect it also asks the clusters: whether they can be reached, whether their\n" +
			"users may do what the file asks for, which topics the patterns match, and\n" +
			"whether records carry the ids of schemas; where apograph.schema.registry.url\n" +
			"names the target's registry, whether that knows them. It writes to neither.\n\n" +
			"Exit status: 3 if there is an error or a warning, 0 with nothing but notices.",
		examples: []string{"apograph lint mm2.properties", "apograph lint mm2.properties --explain orders-eu", "apograph lint mm2.properties --connect -o json"},
		formats:  []format{formatTable, formatWide, formatJSON},
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "connect", Usage: "ask the clusters as well", EnvVars: []string{envVar("connect")}},
			stringFlag("explain", "say what becomes of a `TOPIC` of the source, and why"),
		},
		exits: []exitCode{exitFaults, exitInterrupted, exitTerminated},
		run:   runLint,
	}
}

// A lintReport is the answer of `apograph lint`.
type lintReport struct {
	envelope
	File         string             `json:"file"`
	ReadAs       lint.Kind          `json:"read_as"`
	Findings     []lint.Finding     `json:"findings"`
	Explanations []lint.Explanation `json:"explanations,omitempty"` // of --explain
}

func runLint(ctx context.Context, inv *invocation) error {
	if len(inv.args) == 0 {
		return usagef("no file given").withHint("usage: %s", inv.row.usage())
	}
	data, err := readConfiguration(inv.args[0])
	if err != nil {
		return err
	}
	report := lint.Check(inv.args[0], data, mm2.ConfigOptions{})
	report.CheckStores()
	if inv.Bool("connect") {
		facts, err := probe.Ask(ctx, report)
		if err != nil {
			return err
		}
		report.CheckClusters(facts)
	}
	out := lintReport{envelope: newEnvelope("LintReport", "lint"), File: report.File, ReadAs: report.Kind, Findings: []lint.Finding{}}
	for _, f := range report.Findings {
		f.Message, f.Suggestion = clean(f.Message), clean(f.Suggestion)
		out.Findings = append(out.Findings, f)
	}
	if topic := inv.String("explain"); topic != "" {
		var ok bool
		if out.Explanations, ok = report.Explain(topic); !ok {
			return usagef("--explain: %s has no flows", quoteArg(report.File)).withHint("give an mm2.properties with a flow that is enabled")
		}
	}
	if inv.format == formatJSON {
		err = writeJSON(inv.stdout, out)
	} else {
		err = writeLintText(inv, out)
	}
	if !lint.Count(report.Findings).Clean() {
		err = errors.Join(err, verdict(exitFaults))
	}
	return err
}

// maxConfiguration bounds what is read of a configuration file, in bytes.
const maxConfiguration = 16 << 20

// readConfiguration returns what is in a file. That it cannot be read is wrong use.
func readConfiguration(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = errors.New("it is a directory")
	} else if err == nil && info.Size() > maxConfiguration {
		err = fmt.Errorf("it has more than %s", byteSize(maxConfiguration))
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err == nil {
		return data, nil
	}
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return nil, usagef("cannot read %s: %v", quoteArg(path), err)
}

// writeLintText writes each finding in a line, with the suggestion below, then
// what becomes of the topic that was asked for, then what it all comes to.
func writeLintText(inv *invocation, r lintReport) error {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, fmt.Sprintf("%s: %s %s %s%s", placeText(f.File, f.Line, f.Column), f.Level, f.Code, keyText(f), f.Message))
		if f.Suggestion != "" {
			lines = append(lines, "    "+f.Suggestion)
		}
	}
	for _, x := range r.Explanations {
		lines = append(lines, explanationText(x))
	}
	n := lint.Count(r.Findings)
	lines = append(lines, fmt.Sprintf("%s, read as %s: %s, %s, %s", r.File, r.ReadAs,
		counted(int64(n.Errors), "error"), counted(int64(n.Warnings), "warning"), counted(int64(n.Notices), "notice")))
	for _, line := range lines {
		if err := inv.writeText(line); err != nil {
			return err
		}
	}
	return nil
}

// placeText returns file:line:column; the file alone of what is about all of it.
func placeText(file string, line, column int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}

// keyText returns the key of a finding in front of a message that does not begin
// with it.
func keyText(f lint.Finding) string {
	if f.Key == "" || strings.HasPrefix(f.Message, f.Key) {
		return ""
	}
	return f.Key + ": "
}

func explanationText(x lint.Explanation) string {
	text := fmt.Sprintf("%s->%s: %s is not copied", x.Source, x.Target, x.Topic)
	if x.Copied {
		text = fmt.Sprintf("%s->%s: %s is copied to %s", x.Source, x.Target, x.Topic, x.TargetTopic)
	}
	text += ": " + x.Rule
	switch {
	case x.Line > 0:
		text += fmt.Sprintf(" (%s)", placeText(x.File, x.Line, x.Column))
	case x.Pattern != "":
		text += " (default)"
	}
	return text
}
