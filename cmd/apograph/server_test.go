//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"apograph/internal/kafkatest"
	"apograph/internal/mirror"
	"apograph/ledger"
	"apograph/replicate"
	"apograph/translate"
)

// servedPairs is how many partitions the ledger of a serverCase has: so many
// that neither a status nor a snapshot fits into the buffers of a socket.
const servedPairs = 2500

// A serverCase is a server on a ledger that the test writes.
type serverCase struct {
	t      *testing.T
	server *server
	ledger *ledger.Ledger
	ids    []ledger.PairID
	booked int64
}

func newServerCase(t *testing.T, limits serverLimits) *serverCase {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	path := filepath.Join(t.TempDir(), "f.ledger")
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b", SourceClusterID: "x", TargetClusterID: "y"}, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &serverCase{t: t, ledger: l}
	var pairs []ledger.Pair
	for i := range servedPairs {
		pairs = append(pairs, ledger.Pair{SourceTopic: fmt.Sprintf("topic-%04d", i), TargetTopic: fmt.Sprintf("topic-%04d", i)})
	}
	if c.ids, err = l.OpenPairs(pairs); err != nil {
		t.Fatal(err)
	}
	flow := liveFlow{
		ledger: l,
		drift:  func() []replicate.SettingDrift { return nil },
		groups: func() mirror.GroupsStatus { return mirror.GroupsStatus{Lag: -1} },
		duties: func() []mirror.DutyStatus { return nil },
		status: func() (all []replicate.PartitionStatus) {
			for _, pair := range l.Pairs() {
				all = append(all, replicate.StatusInBook(l, pair))
			}
			return all
		},
		order: func(o ledger.Order) error { return replicate.OrderOffline(l, o) },
	}
	ctx, stop := context.WithCancelCause(t.Context())
	c.server, err = serve(ctx, flow, limits, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop(errors.New("the flow has ended"))
		c.server.close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path + socketSuffix); err == nil {
			t.Error("the socket is still there")
		}
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
			t.Errorf("left among the temporary files: %v %v", left, err)
		}
		mustCheck(t, path)
	})
	c.commit(200)
	return c
}

// commit books so many entries of about a kilobyte, with a commit for each.
func (c *serverCase) commit(n int) {
	c.t.Helper()
	for range n {
		err := c.ledger.Append(c.ids[0], ledger.Entry{
			Tile: ledger.Filtered, Source: ledger.Range{Start: c.booked, End: c.booked + 1}, Target: ledger.Range{},
			Cause: ledger.CausePerson, Reason: strings.Repeat("x", 1000), LeaderEpoch: -1,
		})
		if err == nil {
			err = c.ledger.Commit()
		}
		if err != nil {
			c.t.Fatal(err)
		}
		c.booked++
	}
}

// mustDial opens a connection to the server.
func (c *serverCase) mustDial() net.Conn {
	c.t.Helper()
	conn, err := net.Dial("unix", c.ledger.Path()+socketSuffix)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	return conn
}

// mustStall asks for something, takes one byte of the answer, and leaves it at
// that.
func (c *serverCase) mustStall(path string) net.Conn {
	c.t.Helper()
	conn := c.mustDial()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: ledger\r\n\r\n", path); err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		c.t.Fatal(err)
	}
	return conn
}

// TestStalledReaders: clients that stop in the middle of an answer hold up no
// commit, however long they stay, and there are no more of them at a time than
// the server allows.
func TestStalledReaders(t *testing.T) {
	limits := defaultServerLimits()
	limits.connections, limits.answer, limits.stall = 4, time.Hour, time.Hour
	c := newServerCase(t, limits)
	c.mustStall(pathSnapshot)
	c.mustStall(pathStatus)
	c.mustStall(pathSnapshot)
	c.mustStall(pathStatus)
	late := c.mustDial() // one too many
	if _, err := fmt.Fprintf(late, "GET %s HTTP/1.1\r\nHost: ledger\r\n\r\n", pathHello); err != nil {
		t.Fatal(err)
	}
	before := c.ledger.Committed(c.ids[0]).Source
	c.commit(300)
	if got := c.ledger.Committed(c.ids[0]).Source; got != before+300 {
		t.Errorf("%d commits are in the books, want 300", got-before)
	}
	if n := len(c.server.slots); n != limits.connections {
		t.Errorf("%d connections, want the %d that are allowed", n, limits.connections)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("snapshots that are sent still have names: %v %v", left, err)
	}
	file, inUse, _ := c.ledger.Usage()
	if file > 3*inUse+(1<<20) {
		t.Errorf("the file has grown to %d bytes while %d are in use", file, inUse)
	}
}

// TestStalledReadersAreCutOff: whoever takes nothing for too long loses the
// connection, and its place goes to the next one.
func TestStalledReadersAreCutOff(t *testing.T) {
	limits := defaultServerLimits()
	limits.connections, limits.answer, limits.stall = 2, 200*time.Millisecond, 200*time.Millisecond
	c := newServerCase(t, limits)
	for _, path := range []string{pathSnapshot, pathStatus} {
		conn := c.mustStall(path)
		c.mustStall(path)
		// Only when one of them is cut off is there room for this.
		h := newHolder(c.ledger.Path(), c.ledger.Path()+socketSuffix)
		if err := h.get(t.Context(), pathLedger, new(ledgerInfo)); err != nil {
			t.Errorf("behind stalled readers of %s: %v", path, err)
		}
		h.close()
		if rest, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s goes on after %d bytes", path, len(rest))
		}
	}
	eventually(t, "the snapshots are given up", func() bool { return len(c.server.snapshots) == 0 })
}

// TestStalledRequests: so does whoever does not send its request.
func TestStalledRequests(t *testing.T) {
	limits := defaultServerLimits()
	limits.request = 200 * time.Millisecond
	c := newServerCase(t, limits)
	for _, sent := range []string{"", "GET /hello HT", "POST /v1/translate HTTP/1.1\r\nHost: ledger\r\nContent-Length: 100\r\n\r\n{"} {
		conn := c.mustDial()
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %q the server waits for ever", sent)
		}
	}
}

// TestSlowSnapshot: a limit for the request is none for the answer.
func TestSlowSnapshot(t *testing.T) {
	limits := defaultServerLimits()
	limits.request = 50 * time.Millisecond
	c := newServerCase(t, limits)
	for range limits.snapshots { // as others that take long
		c.server.snapshots <- struct{}{}
	}
	conn := c.mustDial()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: ledger\r\n\r\n", pathSnapshot); err != nil {
		t.Fatal(err)
	}
	for range 3 { // each is cut off when the limit has passed
		if _, err := io.ReadAll(c.mustDial()); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server waits for ever")
		}
	}
	<-c.server.snapshots
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, response.Body); err != nil || n != response.ContentLength || response.StatusCode != http.StatusOK {
		t.Errorf("status %d, %d of %d bytes: %v", response.StatusCode, n, response.ContentLength, err)
	}
	<-c.server.snapshots
}

// TestSnapshotWhileWriting: a snapshot that is taken while entries are written
// holds what was committed before, and is sound.
func TestSnapshotWhileWriting(t *testing.T) {
	c := newServerCase(t, defaultServerLimits())
	for i := range 5 {
		before := c.booked
		snapshots := make(chan error)
		path := filepath.Join(t.TempDir(), fmt.Sprint("snapshot", i))
		go func() {
			_, err := snapshotTo(context.Background(), c.ledger.Path(), path)
			snapshots <- err
		}()
		c.commit(50)
		if err := <-snapshots; err != nil {
			t.Fatal(err)
		}
		l := kafkatest.OpenLedger(t, path, ledger.Options{ReadOnly: true})
		if got := l.Committed(c.ids[0]).Source; got < before {
			t.Errorf("the snapshot reaches %d, %d were committed before", got, before)
		}
	}
}

// TestRequestsThatAreRefused: what is too large, unknown or meant for another
// version is refused in words.
func TestRequestsThatAreRefused(t *testing.T) {
	limits := defaultServerLimits()
	limits.requestBytes = 10_000
	c := newServerCase(t, limits)
	h := newHolder(c.ledger.Path(), c.ledger.Path()+socketSuffix)
	defer h.close()
	many := translateRequest{Queries: make([]translate.Query, 1000)}
	for _, tt := range []struct {
		path     string
		question any
		code     exitCode
		says     string
	}{
		{pathTranslate, many, exitUsage, "too large"},
		{pathTranslate, "text", exitUsage, "cannot be read"},
		{pathTranslate, map[string]int{"unknown": 1}, exitUsage, "unknown"},
		{pathTranslate, translateRequest{Queries: []translate.Query{{Topic: "t", Offset: -1}}}, exitError, "negative"},
		{pathOrder, orderRequest{ledger.Order{SourceTopic: "none", Partition: 0, Paused: true}}, exitUsage, "none"},
		{"/v2/status", 1, exitError, "version 1 of the protocol"},
	} {
		var answer *answerError
		err := h.post(t.Context(), tt.path, tt.question, new(any))
		if !errors.As(err, &answer) || answer.Code != tt.code || !strings.Contains(answer.Message, tt.says) {
			t.Errorf("%s with %v: %v, want code %d and %q", tt.path, tt.question, err, tt.code, tt.says)
		}
	}
}

// mustPeer has a handler answer at the socket of a ledger, until the function
// that it returns is called.
func mustPeer(t *testing.T, path string, handler http.HandlerFunc) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", path+socketSuffix)
	if err != nil {
		t.Fatal(err)
	}
	peer := &http.Server{Handler: handler}
	go func() { _ = peer.Serve(listener) }()
	return func() {
		if err := peer.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPeerOfAnotherVersion: it is told, with who holds the ledger and what to
// do, and nothing is asked of it.
func TestPeerOfAnotherVersion(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	for protocol, hint := range map[int]string{0: "restart the copier", 2: "or a newer one"} {
		stop := mustPeer(t, path, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != pathHello {
				t.Errorf("asked for %s", r.URL.Path)
			}
			_ = json.NewEncoder(w).Encode(peerInfo{Protocol: protocol, Version: "v9.8.7", PID: 4711})
		})
		for _, question := range [][]string{{"status"}, {"ledger", "check"}, {"pause", "orders"}} {
			code, out, errs := askLedger(t, path, question...)
			if code != 11 || out != "" || !strings.Contains(errs, "process 4711, apograph v9.8.7") || !strings.Contains(errs, hint) {
				t.Errorf("%v: exit code %d, stdout %q, stderr %q", question, code, out, errs)
			}
		}
		stop()
	}
}

// TestListenerWithoutTheLedger: something that listens and does not hold the
// ledger is not believed: the file answers.
func TestListenerWithoutTheLedger(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	defer mustPeer(t, path, http.NotFound)()
	if code, out, errs := askLedger(t, path, "ledger", "inspect"); code != 0 || !strings.Contains(out, "fixture-1") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
}

// TestHolderThatEnds in the middle of an answer, or says that it is about to:
// the file answers, and nothing is left of the half of a snapshot. A snapshot
// that was damaged on its way is refused.
func TestHolderThatEnds(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	hello := func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == pathHello {
			_ = json.NewEncoder(w).Encode(peerInfo{Protocol: protocolVersion})
		}
		return r.URL.Path == pathHello
	}
	ways := map[string]struct {
		answer http.HandlerFunc
		code   int
	}{
		"it says so": {func(w http.ResponseWriter, r *http.Request) {
			if !hello(w, r) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}, 0},
		"cut": {func(w http.ResponseWriter, r *http.Request) {
			if !hello(w, r) {
				w.Header().Set("Content-Length", "100000")
				_, _ = io.WriteString(w, "half")
				panic(http.ErrAbortHandler)
			}
		}, 0},
		"damaged": {func(w http.ResponseWriter, r *http.Request) {
			if !hello(w, r) {
				w.Header().Set(headerSHA256, strings.Repeat("0", 64))
				_, _ = io.WriteString(w, "something else")
			}
		}, 1},
	}
	for name, way := range ways {
		stop := mustPeer(t, path, way.answer)
		directory := t.TempDir()
		code, _, errs := askLedger(t, path, "ledger", "snapshot", "-o", filepath.Join(directory, "snapshot"))
		left, err := os.ReadDir(directory)
		if code != way.code || err != nil || len(left) != 1-way.code {
			t.Errorf("%s: exit code %d, stderr %q, left %v %v", name, code, errs, left, err)
		}
		if code, out, errs := askLedger(t, path, "ledger", "export", "--book", "source"); code != way.code || (out == "") != (code != 0) {
			t.Errorf("%s: export: exit code %d, stderr %q", name, code, errs)
		}
		stop()
	}
}

// TestSocketIsBoundAnew when somebody has removed it, and what is no socket
// stays where it is.
func TestSocketIsBoundAnew(t *testing.T) {
	limits := defaultServerLimits()
	limits.keep = 10 * time.Millisecond
	c := newServerCase(t, limits)
	if err := os.Remove(c.ledger.Path() + socketSuffix); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the socket is back", func() bool {
		h, err := findHolder(t.Context(), c.ledger.Path())
		return err == nil && h != nil
	})

	place := socketPlace{path: filepath.Join(t.TempDir(), "file.sock")}
	mustWrite(t, place.path, []byte("mine"))
	if socket, err := bindSocket(place); err == nil {
		socket.listener.Close()
		t.Error("a socket in place of a file")
	}
	if text, err := os.ReadFile(place.path); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q: %v", text, err)
	}
}

// TestSocketOfTheNextHolder is not removed by the last one.
func TestSocketOfTheNextHolder(t *testing.T) {
	place := socketPlace{path: filepath.Join(t.TempDir(), "f.sock")}
	first, err := bindSocket(place)
	if err != nil {
		t.Fatal(err)
	}
	second, err := bindSocket(place)
	if err != nil {
		t.Fatal(err)
	}
	first.remove()
	if err := first.listener.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", place.path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	second.remove()
	if err := second.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(place.path); err == nil {
		t.Error("the socket is still there")
	}
}

// TestLedgerThatWasReplaced: a server does not answer for another file that has
// come to its path.
func TestLedgerThatWasReplaced(t *testing.T) {
	c := newServerCase(t, defaultServerLimits())
	path := c.ledger.Path()
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	mustMakeLedger(t, path)
	for _, question := range []string{pathLedger, pathStatus} {
		h := newHolder(path, path+socketSuffix)
		var answer *answerError
		if err := h.get(t.Context(), question, new(any)); !errors.As(err, &answer) {
			t.Errorf("%s: %v", question, err)
		}
		h.close()
	}
	if err := os.Rename(path+".moved", path); err != nil {
		t.Fatal(err)
	}
}

// TestFreshLedger is a copy of its own, live while a process holds the ledger,
// and leaves nothing behind.
func TestFreshLedger(t *testing.T) {
	c := newServerCase(t, defaultServerLimits())
	l, live, err := freshLedger(t.Context(), c.ledger.Path())
	if err != nil || !live {
		t.Fatalf("live %t, %v", live, err)
	}
	c.commit(10)
	if got := l.Committed(c.ids[0]).Source; got != c.booked-10 {
		t.Errorf("the copy reaches %d, want %d", got, c.booked-10)
	}
	if err := l.Check(t.Context(), func(v ledger.Violation) { t.Error(v) }); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "g.ledger"))
	l, live, err = freshLedger(t.Context(), path)
	if err != nil || live {
		t.Fatalf("live %t, %v", live, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	var missing *missingLedgerError
	if _, _, err := freshLedger(t.Context(), path+"x"); !errors.As(err, &missing) {
		t.Errorf("a ledger that is not there: %v", err)
	}
}

// TestManyOffsets: more offsets than a copier is asked for at once are
// translated by a copy of its books, to the same answers.
func TestManyOffsets(t *testing.T) {
	limits := defaultServerLimits()
	limits.requestBytes = 20_000
	c := newServerCase(t, limits)
	ask := func(offsets int) *translate.Sheet {
		var sheet translate.Sheet
		for i := range offsets {
			sheet.Add(translate.PlanRow{Query: translate.Query{Topic: "topic-0000", Offset: int64(i % 300)}})
		}
		from, err := translateSheet(t.Context(), c.ledger.Path(), &sheet, false)
		if err != nil || from.Path != c.ledger.Path() || from.LedgerID != c.ledger.Identity().LedgerID {
			t.Fatalf("%+v %v", from, err)
		}
		return &sheet
	}
	many, few := ask(maxAskedOffsets+1), ask(300)
	for i := range many.Len() {
		if got, want := many.Answer(i).Result, few.Answer(i%300).Result; got != want {
			t.Fatalf("answer %d: %+v, want %+v", i, got, want)
		}
	}
}

// TestProtocol holds the words of the protocol: whoever changes them changes the
// version too, unless both peers still understand each other.
func TestProtocol(t *testing.T) {
	answer := translate.Answer{Pair: ledger.Pair{ID: 1, SourceTopic: "s", TargetTopic: "t", Partition: 2, Closed: &ledger.Closing{Reason: "r", AtMillis: 3}}}
	answer.Status, answer.SourceOffset, answer.TargetEnd = translate.Exact, 4, 5
	for want, value := range map[string]any{
		`{"protocol":1,"version":"v","pid":2,"ledger_id":"l"}`:                peerInfo{1, "v", 2, "l"},
		`{"code":2,"message":"m","hint":"h"}`:                                 &answerError{exitUsage, "m", "h"},
		`{"queries":[{"Topic":"t","Partition":1,"Offset":2}],"reverse":true}`: translateRequest{[]translate.Query{{Topic: "t", Partition: 1, Offset: 2}}, true},
		`{"order":{"SourceTopic":"t","Partition":-1,"Paused":true,"Skip":{"Start":1,"End":2},"AcceptRecreated":false,"AcceptTruncated":false,"Recopy":false,"TolerateForeign":false,"Reason":"r","By":"b","AtMillis":3}}`:                                                                                                                                                                                                                                orderRequest{ledger.Order{SourceTopic: "t", Partition: -1, Paused: true, Skip: ledger.Range{Start: 1, End: 2}, Reason: "r", By: "b", AtMillis: 3}},
		`{"Pair":{"ID":1,"SourceTopic":"s","SourceTopicID":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"TargetTopic":"t","TargetTopicID":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"Partition":2,"Generation":0,"ScopeStart":0,"TargetBase":0,"Producer":{"ID":0,"Epoch":0,"Sequence":0,"Appended":0},"OpenedMillis":0,"Closed":{"Reason":"r","AtMillis":3,"Cut":null}},"Status":1,"SourceOffset":4,"TargetOffset":0,"Distance":0,"CopiedTo":0,"Detail":"","TargetEnd":5}`: answer,
	} {
		got, err := json.Marshal(value)
		if err != nil || string(got) != want {
			t.Errorf("%T is %s (%v), want %s", value, got, err, want)
		}
	}
	if protocolVersion != 1 {
		t.Error("the texts above are those of version 1")
	}
}
