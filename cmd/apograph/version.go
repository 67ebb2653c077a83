package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

func versionCommand() command {
	return command{
		path:    "version",
		summary: "print the version of this program",
		details: "Prints version, revision and Go version as the build has recorded them. A\n" +
			"revision is known if the program was built from a checkout, and is marked as\n" +
			"modified if the checkout held changes.",
		examples: []string{"apograph version", "apograph version -o json"},
		formats:  []format{formatTable, formatJSON},
		run: func(_ context.Context, inv *invocation) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{}
			}
			v := versionOf(info)
			if inv.format == formatJSON {
				return writeJSON(inv.stdout, v)
			}
			return v.write(inv.stdout)
		},
	}
}

// A versionInfo is the answer of `apograph version`.
type versionInfo struct {
	envelope
	Version      string  `json:"version"`       // as Go writes module versions; "(devel)" if none
	Revision     string  `json:"revision"`      // commit; empty if not known
	RevisionTime instant `json:"revision_time"` // of the commit
	Modified     bool    `json:"modified"`      // the checkout held changes
	GoVersion    string  `json:"go_version"`
	OS           string  `json:"os"`
	Arch         string  `json:"arch"`
}

func versionOf(info *debug.BuildInfo) versionInfo {
	v := versionInfo{
		envelope:  newEnvelope("Version", "version"),
		Version:   info.Main.Version,
		GoVersion: runtime.Version(),
		OS:        runtime.GOOS,
		Arch:      runtime.GOARCH,
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "vcs.time":
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
				v.RevisionTime = instant{t}
			}
		}
	}
	return v
}

// write writes the version on one line.
func (v versionInfo) write(w io.Writer) error {
	words := []string{"apograph", v.Version}
	if v.Revision != "" {
		words = append(words, "revision", v.Revision)
	}
	if v.Modified {
		words = append(words, "(modified)")
	}
	words = append(words, v.GoVersion, v.OS+"/"+v.Arch)
	_, err := fmt.Fprintln(w, strings.Join(words, " "))
	return err
}
