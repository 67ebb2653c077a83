package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// nobody is the id of a user who owns nothing.
const nobody = 65534

// asNobody has a command run by a user without rights.
func asNobody(cmd *exec.Cmd) {
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// inNamespace has a command run as root of a namespace of its own, behind a line
// of shell that changes what is mounted there.
func inNamespace(line string) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.Args = slices.Concat([]string{"sh", "-c", line + ` && exec "$@"`, "sh"}, cmd.Args)
		cmd.Path, cmd.Err = "/bin/sh", nil
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
}

// mustOpenToAll lets every user come to the program and to files among the
// temporary ones, and gives all of them a directory for their own.
func mustOpenToAll(t *testing.T, paths ...string) {
	t.Helper()
	program, err := exec.LookPath("apograph")
	if err != nil {
		t.Fatal(err)
	}
	temporary, root := t.TempDir(), filepath.Dir(filepath.Dir(filepath.Dir(program)))
	paths = append(paths, program)
	for _, path := range append(paths, temporary) {
		for dir := path; len(dir) > len(root); dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, info.Mode()|0o055); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(temporary, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temporary)
}

// A placeCase is a good ledger in a place where it cannot be used.
type placeCase struct {
	name   string
	change func(*exec.Cmd)
	file   os.FileMode
	dir    os.FileMode
	says   string // what the system calls it
	// onlyWrites is that commands which only read have their answer all the same.
	onlyWrites bool
}

// TestLedgerOutOfReach: a ledger that may not be read, or not be written, is no
// damage: each command that needs to says with exit code 1 which file and what
// the system calls it, and the others answer.
func TestLedgerOutOfReach(t *testing.T) {
	c := newFaultCase(t)
	directory := t.TempDir()
	output := t.TempDir() // for what commands write
	mustOpenToAll(t, directory, output)
	if err := os.Chmod(output, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(directory, "f.ledger")
	mustWrite(t, path, c.good)
	places := []placeCase{
		{name: "unreadable file", change: asNobody, file: 0, dir: 0o755, says: "permission denied"},
		{name: "read-only file", change: asNobody, file: 0o444, dir: 0o555, says: "permission denied", onlyWrites: true},
		{name: "closed directory", change: asNobody, file: 0o644, dir: 0o600, says: "permission denied"},
	}
	readOnly := inNamespace(fmt.Sprintf("mount --bind %[1]s %[1]s && mount -o remount,bind,ro %[1]s", directory))
	if mayMount(t, readOnly) {
		places = append(places, placeCase{name: "read-only file system", change: readOnly, file: 0o644, dir: 0o755, says: "read-only file system", onlyWrites: true})
	}
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) { c.mustBeOutOfReach(t, path, output, p) })
	}
}

// mayMount reports whether this system lets its users mount in a namespace of
// their own.
func mayMount(t *testing.T, change func(*exec.Cmd)) bool {
	cmd := exec.Command("true")
	change(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("no namespaces here, so no test of what is mounted: %v %s", err, out)
	}
	return err == nil
}

func (c *faultCase) mustBeOutOfReach(t *testing.T, path, output string, p placeCase) {
	directory := filepath.Dir(path)
	if err := os.Chmod(path, p.file); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(directory, p.dir); err != nil {
		t.Fatal(err)
	}
	for _, o := range c.openers(output) {
		if o.name == "status --watch" {
			continue // goes on where status is answered
		}
		got := c.ask(o, path, p.change)
		for _, made := range []string{"snapshot", "migrated"} {
			_ = os.Remove(filepath.Join(output, made))
		}
		if p.onlyWrites && !o.writes && o.name != "verify --resume" {
			if strings.Contains(got.stderr, p.says) || got.code == exitDamaged || got.code == exitNoLedger {
				t.Errorf("%s only reads: exit code %d, %s", o.name, got.code, got.stderr)
			}
			continue
		}
		o.answers = false
		if fault := got.fault(o, exitError, path, p.says); fault != "" {
			t.Errorf("%s: %s\n%s%s", o.name, fault, got.stdout, got.stderr)
		}
	}
	if err := os.Chmod(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(mustRead(t, path), c.good) {
		t.Error("the ledger has changed")
	}
	if files, err := os.ReadDir(directory); err != nil || len(files) != 1 {
		t.Errorf("the directory holds %v (%v), want the ledger alone", files, err)
	}
	if ends := c.targetEnds(); !maps.Equal(ends, c.ends) {
		t.Errorf("the target's logs end at %v, want %v", ends, c.ends)
	}
}

// TestLedgerGone: of a ledger that is gone each command says so with exit code
// 10. A copier would have to begin anew, on a target that holds what the ledger
// knew: it refuses to, and names what to do in the order in which it helps.
func TestLedgerGone(t *testing.T) {
	c := newFaultCase(t)
	directory := t.TempDir()
	path := filepath.Join(directory, "f.ledger")
	for _, o := range c.openers(t.TempDir()) {
		got := c.ask(o, path, nil)
		want, words := exitNoLedger, []string{path, "does not exist"}
		switch o.name {
		case "replicate", "replicate --once":
			want, words = exitUsage, []string{"snapshot", "attach", "--append"}
		case "replicate --dry-run":
			want, words = exitRefused, nil
		}
		o.answers = o.name == "replicate --dry-run"
		if fault := got.fault(o, want, words...); fault != "" {
			t.Errorf("%s: %s\n%s%s", o.name, fault, got.stdout, got.stderr)
		}
		if !inOrder(got.stderr, words) {
			t.Errorf("%s: standard error does not name %q in this order\n%s", o.name, words, got.stderr)
		}
	}
	if files, err := os.ReadDir(directory); err != nil || len(files) > 0 {
		t.Errorf("the directory holds %v (%v), want nothing", files, err)
	}
	if ends := c.targetEnds(); !maps.Equal(ends, c.ends) {
		t.Errorf("the target's logs end at %v, want %v", ends, c.ends)
	}
}

// inOrder reports whether a text has words in an order.
func inOrder(text string, words []string) bool {
	for _, word := range words {
		_, rest, found := strings.Cut(text, word)
		if !found {
			return false
		}
		text = rest
	}
	return true
}
