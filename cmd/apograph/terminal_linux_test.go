package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mustOpenTerminal returns both ends of a pseudo-terminal of a width.
func mustOpenTerminal(t *testing.T, columns int) (control, terminal *os.File) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Close() })
	fd := int(control.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	size := &unix.Winsize{Row: 24, Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return control, terminal
}

// onTerminal runs apograph with standard output and error on one terminal and
// returns what the terminal received.
func onTerminal(t *testing.T, columns int, environment []string, args ...string) string {
	t.Helper()
	control, terminal := mustOpenTerminal(t, columns)
	cmd := exec.CommandContext(t.Context(), "apograph", args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	received, err := io.ReadAll(control)
	// Linux reports the end of a terminal as an input/output error.
	if err != nil && !strings.Contains(err.Error(), unix.EIO.Error()) {
		t.Fatal(err)
	}
	cmd.Wait()
	return strings.ReplaceAll(string(received), "\r\n", "\n")
}

// TestTerminal: with and without NO_COLOR and TERM=dumb no escape sequence
// reaches a terminal, no line is wider than it, and nothing is missing.
func TestTerminal(t *testing.T) {
	ledger := mustMakeLedger(t, t.TempDir()+"/"+strings.Repeat("long", 20)+".ledger")
	for _, columns := range []int{40, 80, 200} {
		for _, environment := range [][]string{{"TERM=xterm"}, {"NO_COLOR=1", "TERM=xterm"}, {"TERM=dumb"}} {
			got := onTerminal(t, columns, environment, "ledger", "inspect", ledger)
			if strings.ContainsAny(got, "\x1b\r") || !strings.Contains(got, "records") {
				t.Errorf("%v: the terminal received %q", environment, got)
			}
			for line := range strings.Lines(got) {
				if width := len(strings.TrimSuffix(line, "\n")); width > columns {
					t.Errorf("%d columns: %q takes %d", columns, line, width)
				}
			}
			if joined := strings.Join(strings.Fields(got), ""); !strings.Contains(joined, ledger) {
				t.Errorf("%d columns: the name of the ledger is not complete:\n%s", columns, got)
			}
		}
	}
	wide := onTerminal(t, 40, nil, "ledger", "inspect", ledger, "-o", "wide")
	if !strings.Contains(wide, ledger+"\n") {
		t.Errorf("-o wide cuts:\n%s", wide)
	}
	refused := onTerminal(t, 80, nil, "ledger", "snapshot", ledger, "-o", "-")
	if !strings.HasPrefix(refused, "apograph: ledger snapshot: a snapshot is not text") {
		t.Errorf("a snapshot on a terminal: %q", refused)
	}
}

// TestAnswersFitTheTerminal: each command's answer has the same words on a
// terminal of any width as in a pipe, whole ones, and no line that would wrap.
func TestAnswersFitTheTerminal(t *testing.T) {
	directory := t.TempDir()
	path := mustMakeLedger(t, directory+"/f.ledger")
	broken := directory + "/broken.ledger"
	content := mustRead(t, mustMakeLedger(t, broken))
	for _, at := range mustFindAll(t, content, "b.orders", 0) {
		content[at] = 'c'
	}
	mustWrite(t, broken, content)
	for _, argv := range [][]string{
		{"translate", "--ledger", path, "orders:0:21", "orders:0:9223372036854775807", "orders:1:2"},
		{"verify", "--ledger", path}, {"ledger", "inspect", path}, {"ledger", "check", path}, {"ledger", "check", broken},
	} {
		_, piped, _ := mustRun(t, argv...)
		for _, columns := range []int{40, 80, 200} {
			got, _, _ := strings.Cut(onTerminal(t, columns, nil, argv...), "\napograph: ")
			for line := range strings.Lines(got) {
				if width := len(strings.TrimSuffix(line, "\n")); width > columns {
					t.Errorf("%q on %d columns: %q takes %d", argv, columns, line, width)
				}
			}
			words := strings.Fields(got)
			for _, word := range strings.Fields(withoutTime(piped)) {
				isHeader := strings.ToUpper(word) == word && strings.ToLower(word) != word
				if len(word) <= minValueColumns && !isHeader && !slices.Contains(words, word) {
					t.Errorf("%q on %d columns: %q is missing or cut:\n%s", argv, columns, word, got)
				}
			}
		}
	}
}

// withoutTime returns an answer without the row that says how long it took.
func withoutTime(answer string) string {
	var rows string
	for line := range strings.Lines(answer) {
		if !strings.HasPrefix(line, "time ") {
			rows += line
		}
	}
	return rows
}

// TestLiveTerminal: a progress line is rewritten only where that works.
func TestLiveTerminal(t *testing.T) {
	_, terminal := mustOpenTerminal(t, 64)
	defer terminal.Close()
	for name, want := range map[string]bool{"xterm": true, "": true, "dumb": false} {
		t.Setenv("TERM", name)
		if c := newConsole(terminal); c.live != want || c.columns != 64 {
			t.Errorf("TERM=%s: live %t on %d columns, want %t on 64", name, c.live, c.columns, want)
		}
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if c := newConsole(file); c.live {
		t.Error("a file is live")
	}
}

// TestFullDisk: an answer that cannot be stored is an error.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	p := &process{cmd: exec.CommandContext(t.Context(), "apograph", "version", "-o", "json")}
	p.cmd.Stdout, p.cmd.Stderr = full, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	want := "apograph: version: write standard output: no space left on device\n"
	if code := p.exitCode(); code != 1 || p.stderr.String() != want {
		t.Errorf("exit %d, stderr %q, want 1 and %q", code, p.stderr.String(), want)
	}
}
