package main

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	built := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123abc"},
			{Key: "vcs.time", Value: "2026-11-29T20:13:51+01:00"},
			{Key: "vcs.modified", Value: "true"},
		},
	}
	tests := []struct {
		name     string
		info     *debug.BuildInfo
		wantText string
		wantJSON string
	}{
		{"from a checkout", built, "apograph v1.2.3 revision 0123abc (modified) go",
			`"version":"v1.2.3","revision":"0123abc","revision_time":"2026-11-29T19:13:51.000Z","modified":true,`},
		{"nothing recorded", &debug.BuildInfo{}, "apograph (devel) go",
			`"version":"(devel)","revision":"","revision_time":null,"modified":false,`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var text, document bytes.Buffer
			v := versionOf(tt.info)
			if err := v.write(&text); err != nil || !strings.HasPrefix(text.String(), tt.wantText) {
				t.Errorf("text %q (%v), want %q...", text.String(), err, tt.wantText)
			}
			want := `{"kind":"Version","schema":"apograph/version/v1",` + tt.wantJSON
			if err := writeJSON(&document, v); err != nil || !strings.HasPrefix(document.String(), want) {
				t.Errorf("JSON %s (%v), want %s...", document.String(), err, want)
			}
			if !json.Valid(document.Bytes()) || strings.Count(document.String(), "\n") != 1 {
				t.Errorf("%s is not one document on one line", document.String())
			}
		})
	}
}
