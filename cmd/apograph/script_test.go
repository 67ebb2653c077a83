package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScript runs testdata/script. With UPDATE_GOLDEN=1 in the environment,
// what the commands write replaces the files that the scripts compare it with.
//
// Beside the usual commands of testscript a script has
//
//	ledger FILE            make the ledger of makeLedger
//	earlier FORMAT FILE    copy the ledger of an earlier format from testdata
//	damage FILE            cut a file, so that it is no ledger any more
//	exits CODE PROGRAM...  run a program that must exit with this code
func TestScript(t *testing.T) {
	ledgers, err := filepath.Abs("../../testdata/ledgers/formats")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ledger": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(makeLedger(ts.MkAbs(args[0])))
			},
			"earlier": func(ts *testscript.TestScript, _ bool, args []string) {
				from, err := os.ReadFile(filepath.Join(ledgers, args[0]+".ledger"))
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), from, 0o644))
			},
			"damage": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.Truncate(ts.MkAbs(args[0]), 5000))
			},
			"exits": exits,
		},
	})
}

// exits runs a program and checks its exit code. One that exits with 2 must
// leave standard output empty, whatever it was.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
	if stdout := ts.ReadFile("stdout"); got == int(exitUsage) && stdout != "" {
		ts.Fatalf("exit code 2, but standard output holds %q", stdout)
	}
}
