package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"apograph/internal/kafkatest"
	"apograph/internal/mirror"
	"apograph/ledger"
	"apograph/replicate"
)

// FuzzParseSize compares with exact arithmetic.
func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"50MiB", "1.5GB", "64k", "1000", "0.5 k", "9000P", "1e3", "0x10", "1..2", " 5", "5 ", "7.999999999999999999PiB", ".5k", "٣"} {
		f.Add(text)
	}
	number := regexp.MustCompile(`^[0-9]*\.?[0-9]*$`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseSize(text)
		if err != nil {
			return
		}
		end := strings.LastIndexAny(text, "0123456789.") + 1
		unit, ok := sizeUnits()[strings.ToLower(strings.TrimSpace(text[end:]))]
		exact, isNumber := new(big.Rat).SetString(text[:end])
		if !ok || !isNumber || !number.MatchString(text[:end]) {
			t.Fatalf("parseSize(%q) = %d", text, got)
		}
		exact.Mul(exact, new(big.Rat).SetFloat64(unit))
		want := new(big.Int).Quo(exact.Num(), exact.Denom())
		off := new(big.Int).Sub(want, big.NewInt(got))
		if allowed := max(got>>50, 1); got < 1 || off.Abs(off).Cmp(big.NewInt(allowed)) > 0 { // a float64 has 53 bits
			t.Fatalf("parseSize(%q) = %d, want %v", text, got, want)
		}
	})
}

// FuzzSocket sends any request to a running copier. It answers in JSON, with an
// error that the client understands where it cannot; the books stay as they are,
// but for orders.
func FuzzSocket(f *testing.F) {
	for _, r := range [][3]string{
		{"GET", "/hello", ""}, {"GET", "/v1/ledger", ""}, {"GET", "/v1/status", ""}, {"GET", "/v2/status", ""}, {"DELETE", "/hello", "x"},
		{"POST", "/v1/translate", `{"queries":[{"Topic":"t","Partition":0,"Offset":1}],"reverse":false}`},
		{"POST", "/v1/translate", `{"queries":[{"Topic":"t","Partition":0,"Offset":-1}]}`},
		{"POST", "/v1/order", `{"order":{"SourceTopic":"t","Partition":0,"Paused":true,"By":"x"}}`},
		{"POST", "/v1/order", `{"order":{"SourceTopic":"t","Partition":0,"Skip":{"Start":0,"End":9223372036854775807},"Reason":"x"}}`},
		{"POST", "/v1/order", `{`}, {"POST", "/v1/order", `[]`}, {"GET", "/%2e%2e/hello", ""},
	} {
		f.Add(r[0], r[1], r[2])
	}
	s := fuzzedServer(f)
	handler := s.handler()
	f.Fuzz(func(t *testing.T, method, path, body string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://apograph"+path, strings.NewReader(body))
		if err != nil || request.URL.Path == pathSnapshot {
			return // a snapshot is no JSON; its answer is held to its checksum elsewhere
		}
		before := s.flow.ledger.Pairs()
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		checkAnswer(t, recorder)
		if after := s.flow.ledger.Pairs(); len(after) != len(before) || s.flow.ledger.End(after[0].ID) != (ledger.Position{}) {
			t.Fatalf("%s %s %q has changed the books: %+v", method, path, body, after)
		}
	})
}

func checkAnswer(t *testing.T, recorder *httptest.ResponseRecorder) {
	t.Helper()
	if recorder.Code >= 300 && recorder.Code < 400 {
		return // the way to the same path, written cleanly
	}
	var answer any
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		t.Fatalf("status %d, %q: %v", recorder.Code, recorder.Body, err)
	}
	if recorder.Code == http.StatusOK {
		return
	}
	var told answerError
	if err := json.Unmarshal(recorder.Body.Bytes(), &told); err != nil || told.Message == "" || told.Code == 0 {
		t.Fatalf("status %d, %q: %v", recorder.Code, recorder.Body, err)
	}
}

// fuzzedServer returns a server that does not listen, on an empty book.
func fuzzedServer(f *testing.F) *server {
	f.Helper()
	path := filepath.Join(f.TempDir(), "f.ledger")
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b", SourceClusterID: "x", TargetClusterID: "y"}, ledger.Options{})
	if err == nil {
		_, err = l.OpenPairs([]ledger.Pair{{SourceTopic: "t", TargetTopic: "t"}})
	}
	file, statErr := os.Stat(path)
	if err = errors.Join(err, statErr); err != nil {
		f.Fatal(err)
	}
	kafkatest.CheckLedgerAtEnd(f, path)
	f.Cleanup(func() {
		if err := l.Close(); err != nil {
			f.Error(err)
		}
	})
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
	limits := serverLimits{requestBytes: 1 << 20, snapshots: 1, connections: 1, answer: time.Minute, request: time.Minute}
	return &server{
		flow: flow, limits: limits, logger: slog.New(slog.DiscardHandler), file: file,
		self:      peerInfo{Protocol: protocolVersion, Version: programVersion(), PID: os.Getpid(), LedgerID: l.Identity().LedgerID},
		snapshots: make(chan struct{}, 1), slots: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}
