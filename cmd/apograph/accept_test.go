//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// An acceptAnswer has exactly the fields of the contract.
type acceptAnswer struct {
	Kind, Schema  string
	Flow, Ledger  map[string]any
	HolderPID     *int `json:"holder_pid"`
	Topic         string
	TopicID       *string `json:"topic_id"`
	Partition     int32
	Generation    int32
	SourceOffsets struct{ Start, End int64 } `json:"source_offsets"`
	Reason, By    string
	At            string
	Accepted      []acceptedTile
	Unaccepted    int64
}

type acceptedTile struct {
	Kind       string
	Start, End int64
	Cause      string
	LastKnown  *string `json:"last_known"`
}

func mustAccept(t *testing.T, path string, args ...string) acceptAnswer {
	t.Helper()
	code, out, errs := askLedger(t, path, append([]string{"ledger", "accept", "-o", "json"}, args...)...)
	var answer acceptAnswer
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); code != 0 || err != nil {
		t.Fatalf("accept %q: exit code %d: %v\n%s%s", args, code, err, out, errs)
	}
	return answer
}

// TestAccept: what is lost is accepted piece by piece, by somebody and for a
// reason, and the flow counts as lost only what nobody has accepted.
func TestAccept(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	status := func(wantCode int, unaccepted, accepted int64) string {
		t.Helper()
		code, out, errs := askLedger(t, path, "status", "-o", "json")
		if s := decodeStatus(t, out, errs); code != wantCode || s.Unaccepted != unaccepted || s.Accepted != accepted {
			t.Errorf("status: exit code %d, %d unaccepted, %d accepted; want %d, %d and %d", code, s.Unaccepted, s.Accepted, wantCode, unaccepted, accepted)
		}
		_, out, _ = askLedger(t, path, "status", "-o", "wide")
		return out
	}
	status(3, 5, 0)
	got := mustAccept(t, path, "orders:0:21-23", "--reason", "expired, \x1b[31mticket 42")
	known := "2026-11-29T20:12:51.007Z"
	if diff := cmp.Diff([]acceptedTile{{"lost", 21, 23, "retention", &known}}, got.Accepted); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	if got.Kind != "AcceptReport" || got.Schema != "apograph/accept/v1" || got.HolderPID != nil || got.Ledger["ledger_id"] != "fixture-1" ||
		got.Topic != "orders" || got.TopicID == nil || got.Partition != 0 || got.Generation != 1 || got.SourceOffsets.Start != 21 || got.SourceOffsets.End != 23 ||
		!strings.Contains(got.By, "@") || got.At == "" || !strings.HasPrefix(got.Reason, "expired") || got.Unaccepted != 3 {
		t.Errorf("answer %+v", got)
	}
	status(3, 3, 2)
	mustAccept(t, path, "orders:0:20-24", "--reason", "all of it")
	if got := mustAccept(t, path, "orders:0:25-26", "--reason", "nobody knows"); got.Unaccepted != 0 || len(got.Accepted) != 1 || got.Accepted[0].Kind != "unexplained" {
		t.Errorf("answer %+v", got)
	}
	if text := status(0, 0, 5); !strings.Contains(text, "5 lost or unexplained and accepted") {
		t.Errorf("status: %s", text)
	}
	// What is accepted is shown as verify shows it, to the offset.
	_, out, errs := askLedger(t, path, "status", "-o", "json")
	list := decodeStatus(t, out, errs).Acceptances
	if len(list) != 2 || list[0].Topic != "orders" || list[0].Partition != 0 || list[0].Generation != 1 || list[0].Offsets.Start != 20 || list[0].Offsets.End != 24 ||
		list[0].By != got.By || list[0].At == "" || list[0].Reason != "all of it" || list[1].Offsets.Start != 25 || list[1].Offsets.End != 26 || list[1].Reason != "nobody knows" {
		t.Errorf("status says %+v is accepted", list)
	}
	for _, line := range []string{
		"\naccepted: orders:0 source offsets [20, 24), generation 1, by " + got.By + " at " + list[0].At + ": all of it\n",
		"\naccepted: orders:0 source offsets [25, 26), generation 1, by " + got.By + " at " + list[1].At + ": nobody knows\n",
	} {
		if text := status(0, 0, 5); !strings.Contains(text, line) {
			t.Errorf("status: %s\nlacks %s", text, line)
		}
	}
	l := kafkatest.OpenLedger(t, path, ledger.Options{})
	defer l.Close()
	if got := l.Acceptances(1); len(got) != 2 || got[0].Reason != "all of it" || got[0].Range != (ledger.Range{Start: 20, End: 24}) || !strings.Contains(got[0].By, "@") {
		t.Errorf("in the ledger: %+v", got)
	}
}

// TestAcceptADoubt: a doubt can be accepted like a loss.
func TestAcceptADoubt(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	l := kafkatest.OpenLedger(t, path, ledger.Options{})
	err := l.SetDoubt(1, ledger.Doubt{Kind: ledger.StaleKeys, Range: ledger.Range{Start: 18, End: 20}, AtMillis: 1000})
	if err = errors.Join(err, l.Commit(), l.Close()); err != nil {
		t.Fatal(err)
	}
	_, out, errs := askLedger(t, path, "status", "-o", "json")
	if s := decodeStatus(t, out, errs); len(s.Doubts) != 1 || s.Doubts[0].Kind != "stale_keys_possible" || s.Doubts[0].Start != 18 || s.Doubts[0].End != 20 || s.Doubts[0].Topic != "orders" {
		t.Errorf("doubts %+v", s.Doubts)
	}
	if _, out, _ := askLedger(t, path, "status", "-o", "wide"); !strings.Contains(out, "in doubt: orders:0 source offsets [18, 20) (stale keys possible)") {
		t.Errorf("status: %s", out)
	}
	// A range may hold both, as long as nothing in it is sound.
	got := mustAccept(t, path, "orders:0:18-24", "--reason", "r")
	if len(got.Accepted) != 2 || got.Accepted[1].Kind != "stale_keys_possible" || got.Unaccepted != 1 {
		t.Errorf("accepted %+v", got)
	}
	_, out, errs = askLedger(t, path, "status", "-o", "json")
	if s := decodeStatus(t, out, errs); len(s.Doubts) != 0 || s.Accepted != 4 {
		t.Errorf("afterwards: %s", out)
	}
}

// TestAcceptWhatIsSound is refused, and changes nothing.
func TestAcceptWhatIsSound(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	before := mustRead(t, path)
	damaged := filepath.Join(t.TempDir(), "damaged.ledger")
	mustWrite(t, damaged, before[:5000])
	for _, tt := range []struct {
		code int
		args []string
		said string
	}{
		{2, []string{}, "nothing to accept"},
		{2, []string{"orders:0"}, "not TOPIC:PARTITION:START-END"},
		{2, []string{"orders:0:20"}, "no range"},
		{2, []string{"orders:0:24-20"}, "empty"},
		{2, []string{"orders:x:20-24"}, "neither"},
		{2, []string{"orders:0:20-25"}, "source offset 24"}, // filtered
		{2, []string{"orders:0:19-21"}, "source offset 19"}, // compacted
		{2, []string{"orders:0:0-5"}, "source offset 0"},    // before the start
		{2, []string{"orders:0:27-99"}, "source offset 27"}, // beyond the books
		{2, []string{"orders:7:20-24"}, "no book"},
		{2, []string{"unknown:0:20-24"}, "no book"},
		{2, []string{"orders:0:20-24", "--generation", "2"}, "no generation 2"},
		{2, []string{"orders:0:20-24", "--generation", "0"}, "from 1"},
		{2, []string{"orders:0:20-24", "--reason", ""}, "a reason is needed"},
		{2, []string{"orders:0:20-24", "--reason", "two\nlines"}, "one line"},
		{10, []string{"orders:0:20-24", "--ledger", path + ".none"}, "does not exist"},
		{12, []string{"orders:0:20-24", "--ledger", damaged}, "damaged"},
	} {
		args := append([]string{"ledger", "accept"}, tt.args...)
		for _, standard := range [][2]string{{"--ledger", path}, {"--reason", "r"}} {
			if !strings.Contains(strings.Join(tt.args, " "), standard[0]) {
				args = append(args, standard[0]+"="+standard[1])
			}
		}
		code, out, errs := mustRun(t, args...)
		if code != tt.code || out != "" || !strings.Contains(errs, tt.said) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q; want %d and %q", args, code, out, errs, tt.code, tt.said)
		}
	}
	if !bytes.Equal(before, mustRead(t, path)) {
		t.Error("the ledger has changed")
	}
}

// TestAcceptInAnEarlierGeneration: what a closed generation lost is found by its
// number, which the refusal names.
func TestAcceptInAnEarlierGeneration(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	l := kafkatest.OpenLedger(t, path, ledger.Options{})
	err := reopenPair(l, 1)
	if err = errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := askLedger(t, path, "status", "-o", "json"); code != 3 || !strings.Contains(out, `"unaccepted":5,`) {
		t.Errorf("status forgets a closed generation: exit code %d, %s", code, out)
	}
	code, _, errs := askLedger(t, path, "ledger", "accept", "orders:0:20-24", "--reason", "r")
	if code != 2 || !strings.Contains(errs, "--generation 1") {
		t.Errorf("without a number: exit code %d, %s", code, errs)
	}
	if got := mustAccept(t, path, "orders:0:20-24", "--reason", "r", "--generation", "1"); got.Generation != 1 || got.Unaccepted != 1 {
		t.Errorf("answer %+v", got)
	}
}

// TestAcceptWhileItRuns: a running copier writes the acceptance, and its state
// is sound from then on, also after a restart.
func TestAcceptWhileItRuns(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	c.must(0, "pause", "orders")
	c.append(c.pair.Source, "orders", 5, 5)
	if err := c.pair.Source.DeleteRecords("orders", 0, 7); err != nil {
		t.Fatal(err)
	}
	c.must(0, "resume", "orders")
	c.caughtUp("orders:0", 10)
	c.must(3, "status")
	if code, out, errs := c.ask("ledger", "accept", "orders:0:4-7", "--reason", "r"); code != 2 || out != "" || !strings.Contains(errs, "source offset 4") {
		t.Errorf("a copied offset: exit code %d, %s%s", code, out, errs)
	}
	got := mustAccept(t, c.ledger, "orders:0:5-7", "--reason", "deleted by hand")
	if got.HolderPID == nil || *got.HolderPID != c.copier.Process.Pid || len(got.Accepted) != 1 || got.Accepted[0].Kind != "lost" || got.Ledger["path"] != c.ledger {
		t.Errorf("answer %+v", got)
	}
	if out := c.must(0, "ledger", "accept", "orders:0:5-7", "--reason", "deleted by ann"); !strings.Contains(out, "accepted by") || !strings.Contains(out, "deleted by ann") || !strings.Contains(out, "[5, 7)") {
		t.Errorf("text: %s", out)
	}
	c.must(0, "status")
	c.stop(syscall.SIGTERM)
	c.must(0, "status")
	if out := c.must(0, "verify", "--mode", "books"); !strings.Contains(out, "accepted: lost: ") || !strings.Contains(out, "; accepted by ") || !strings.Contains(out, ": deleted by ann") {
		t.Errorf("the text does not say who has accepted it\n%s", out)
	}
	if out := c.must(0, "verify", "--mode", "books", "-o", "json"); !strings.Contains(out, `"verdict":"complete_with_accepted_losses"`) || !strings.Contains(out, "deleted by ann") {
		t.Errorf("verify: %s", out)
	}
	for _, reason := range []string{"deleted by hand", "deleted by ann"} {
		l := kafkatest.OpenLedger(t, c.ledger, ledger.Options{ReadOnly: true})
		all := fmt.Sprint(l.Acceptances(1), l.Acceptances(2))
		if err := l.Close(); err != nil || strings.Contains(all, reason) != (reason == "deleted by ann") {
			t.Errorf("acceptances %s (%v)", all, err)
		}
	}
	if _, err := os.Lstat(c.ledger + ".sock"); err == nil {
		t.Error("the socket is still there")
	}
}

// TestReplicateAfterAcceptance: a loss is exit code 3 until it is accepted, over
// runs and in each generation of the books; a doubt is 4.
func TestReplicateAfterAcceptance(t *testing.T) {
	c := newCopyCase(t)
	c.summary(0)
	c.append(c.pair.Source, "orders", 5, 5)
	if err := c.pair.Source.DeleteRecords("orders", 0, 7); err != nil {
		t.Fatal(err)
	}
	if got := c.summary(3); got.Lost != 2 || got.Accepted != 0 || got.Complete || got.Doubts == nil {
		t.Errorf("a loss: %+v", got)
	}
	if got := c.summary(3); got.Lost != 0 || got.Unaccepted != 2 || got.Complete {
		t.Errorf("a loss of an earlier run: %+v", got)
	}
	earlier := c.command("--once")
	earlier.Args[3] = "wide" // of -o
	if text, _ := earlier.Output(); !strings.Contains(string(text), "lost or unexplained earlier") {
		t.Errorf("a loss of an earlier run: %s", text)
	}
	mustAccept(t, c.ledger, "orders:0:5-7", "--reason", "r")
	if got := c.summary(0); got.Accepted != 2 || !got.Complete {
		t.Errorf("accepted: %+v", got)
	}
	l := kafkatest.OpenLedger(t, c.ledger, ledger.Options{})
	err := l.SetDoubt(1, ledger.Doubt{Kind: ledger.StaleKeys, Range: ledger.Range{Start: 2, End: 4}, AtMillis: 1000})
	if err = errors.Join(err, l.Commit(), l.Close()); err != nil {
		t.Fatal(err)
	}
	got := c.summary(4)
	if len(got.Doubts) != 1 || got.Doubts[0].Start != 2 || got.Doubts[0].End != 4 || got.Doubts[0].Kind != "stale_keys_possible" || !got.Complete {
		t.Errorf("a doubt: %+v", got)
	}
	cmd := c.command("--once")
	cmd.Args[3] = "wide" // of -o
	text, _ := cmd.Output()
	if want := got.Doubts[0].Topic + ":0 source offsets [2, 4) (stale keys possible)"; !strings.Contains(string(text), want) || !strings.Contains(string(text), "and accepted") {
		t.Errorf("a doubt: %s", text)
	}
	mustAccept(t, c.ledger, got.Doubts[0].Topic+":0:2-4", "--reason", "r")
	c.summary(0)
}

// TestLossOfAClosedGeneration: a new generation makes nothing good that an
// earlier one has lost.
func TestLossOfAClosedGeneration(t *testing.T) {
	c := newCopyCase(t)
	c.summary(0)
	c.append(c.pair.Source, "orders", 5, 5)
	if err := c.pair.Source.DeleteRecords("orders", 0, 7); err != nil {
		t.Fatal(err)
	}
	c.summary(3)
	client := c.pair.Source.NewClient(t)
	if _, err := kadm.NewClient(client).DeleteTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if err := c.pair.Source.CreateTopic(t.Context(), "orders", 1, nil); err != nil {
		t.Fatal(err)
	}
	c.append(c.pair.Source, "orders", 0, 3)
	c.summary(1)
	if code, out, errs := askLedger(t, c.ledger, "resume", "orders", "--accept-recreated"); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	if got := c.summary(3); got.Copied != 3 || got.Complete {
		t.Errorf("the new generation: %+v", got)
	}
	c.summary(3)
	mustAccept(t, c.ledger, "orders:0:5-7", "--reason", "r", "--generation", "1")
	if got := c.summary(0); !got.Complete {
		t.Errorf("accepted: %+v", got)
	}
	mustCheck(t, c.ledger)
}
