package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"apograph/ledger"
	"apograph/replicate"
	"apograph/translate"
)

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathHello, s.answer(func(context.Context, []byte) (any, error) { return s.self, nil }))
	mux.HandleFunc("GET "+pathLedger, s.answer(func(context.Context, []byte) (any, error) { return s.ledgerInfo() }))
	mux.HandleFunc("GET "+pathStatus, s.answer(func(context.Context, []byte) (any, error) { return s.status() }))
	mux.HandleFunc("POST "+pathTranslate, s.answer(s.translate))
	mux.HandleFunc("POST "+pathOrder, s.answer(s.order))
	mux.HandleFunc("POST "+pathAccept, s.answer(s.accept))
	mux.HandleFunc("GET "+pathSnapshot, s.snapshot)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, fmt.Errorf("apograph %s speaks version %d of the protocol, which has no %s %s",
			s.self.Version, protocolVersion, r.Method, r.URL.Path))
	})
	return mux
}

// An asking returns the answer to a request with a body.
type asking func(ctx context.Context, body []byte) (any, error)

// answer returns the handler that sends what ask returns as JSON. All of it is
// in memory before the first byte is sent, and whoever does not take it in time
// is cut off.
func (s *server) answer(ask asking) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limits.requestBytes))
		if err != nil {
			s.fail(w, usagef("the request cannot be read: %v", err))
			return
		}
		if err := s.checkPlace(); err != nil {
			s.fail(w, err)
			return
		}
		answer, err := ask(r.Context(), body)
		if err != nil {
			s.fail(w, err)
			return
		}
		s.send(w, http.StatusOK, answer)
	}
}

// checkPlace returns an error if the path leads to another file by now, which
// answers would not be about.
func (s *server) checkPlace() error {
	path := s.flow.ledger.Path()
	if info, err := os.Stat(path); err != nil || !os.SameFile(info, s.file) {
		return &ledger.CorruptError{Path: path, Key: "path", Law: "file_in_place", Detail: "the file was moved away or replaced while it is in use"}
	}
	return nil
}

func (s *server) send(w http.ResponseWriter, status int, answer any) {
	document, err := json.Marshal(answer)
	if err != nil {
		document, status = []byte("{}"), http.StatusInternalServerError
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.answer))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(document)))
	w.WriteHeader(status)
	_, _ = w.Write(document)
}

func (s *server) fail(w http.ResponseWriter, err error) {
	answer, status := errorOnWire(err)
	s.send(w, status, answer)
}

func (s *server) ledgerInfo() (ledgerInfo, error) {
	info, err := ledgerInfoOf(s.flow.ledger.Path(), s.flow.ledger)
	info.HolderPID = &s.self.PID
	return info, err
}

func (s *server) status() (any, error) {
	info, err := s.ledgerInfo()
	if err != nil {
		return nil, err
	}
	status := newFlowStatus(stateRunning, info, s.flow.ledger, s.flow.status())
	status.Report.Settings = settingRows(s.flow.drift())
	status.Report.setGroups(s.flow.groups())
	status.Report.Duties = dutyRows(s.flow.duties())
	return status, nil
}

func (s *server) translate(ctx context.Context, body []byte) (any, error) {
	var request translateRequest
	if err := decodeRequest(body, &request); err != nil {
		return nil, err
	}
	answers, err := translateAll(ctx, s.flow.ledger, request.Queries, request.Reverse)
	if err != nil {
		return nil, err
	}
	return translateResponse{ledgerRefOf(s.flow.ledger.Path(), s.flow.ledger), answers}, nil
}

// translateAll translates offsets by the books of a ledger.
func translateAll(ctx context.Context, l *ledger.Ledger, queries []translate.Query, reverse bool) ([]translate.Answer, error) {
	if index := translate.NewIndex(l); reverse {
		return index.Reverse(ctx, queries)
	} else {
		return index.Forward(ctx, queries)
	}
}

func decodeRequest(body []byte, request any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(request); err != nil {
		return usagef("the request cannot be read: %v", err)
	}
	return nil
}

func (s *server) order(ctx context.Context, body []byte) (any, error) {
	var request orderRequest
	if err := decodeRequest(body, &request); err != nil {
		return nil, err
	}
	if err := s.flow.order(request.Order); err != nil {
		return nil, err
	}
	settled := s.settle(ctx, request.Order.Paused, func(p replicate.PartitionStatus) bool {
		return isAbout(request.Order, p.Topic, p.Partition)
	})
	info, err := s.ledgerInfo()
	if err != nil {
		return nil, err
	}
	report, details := newOrderReport(request.Order, info, s.flow.ledger, settled)
	return orderResponse{report, details}, nil
}

func (s *server) accept(_ context.Context, body []byte) (any, error) {
	var request acceptRequest
	if err := decodeRequest(body, &request); err != nil {
		return nil, err
	}
	return acceptIn(s.flow.ledger, request, s.ledgerInfo)
}

// settle returns the state of partitions once each is paused, or once none is,
// or when that takes too long: one that is in the middle of something finishes
// it first.
func (s *server) settle(ctx context.Context, paused bool, about func(replicate.PartitionStatus) bool) []replicate.PartitionStatus {
	ctx, cancel := context.WithTimeout(ctx, s.limits.settle)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		all := slices.DeleteFunc(s.flow.status(), func(p replicate.PartitionStatus) bool { return !about(p) })
		if !slices.ContainsFunc(all, func(p replicate.PartitionStatus) bool { return (p.State == replicate.StatePaused) != paused }) {
			return all
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return all
		}
	}
}

// snapshot sends a copy of the ledger. It is made in a file that has no name any
// more when the first byte is sent, so that nothing is left behind however this
// ends.
func (s *server) snapshot(w http.ResponseWriter, r *http.Request) {
	if err := s.checkPlace(); err != nil {
		s.fail(w, err)
		return
	}
	select {
	case s.snapshots <- struct{}{}:
		defer func() { <-s.snapshots }()
	case <-r.Context().Done():
		s.fail(w, context.Cause(r.Context()))
		return
	}
	file, sum, err := s.copyLedger(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	w.Header().Set(headerSHA256, fmt.Sprintf("%x", sum))
	s.stream(w, file)
}

// copyLedger makes a snapshot and returns it open, without a name.
func (s *server) copyLedger(ctx context.Context) (file *os.File, sum [32]byte, err error) {
	directory, err := os.MkdirTemp("", "apograph-snapshot-")
	if err != nil {
		return nil, sum, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	path := filepath.Join(directory, "snapshot")
	if sum, err = s.flow.ledger.Snapshot(ctx, path); err != nil {
		return nil, sum, errors.Join(context.Cause(ctx), err)
	}
	file, err = os.Open(path)
	return file, sum, err
}

// streamPiece is how much of a snapshot a client must take before the next
// limit of time begins.
const streamPiece = 256 << 10

// stream sends a file as fast as the client takes it, and gives up one that
// takes nothing.
func (s *server) stream(w http.ResponseWriter, file io.Reader) {
	control := http.NewResponseController(w)
	piece := make([]byte, streamPiece)
	for {
		n, err := file.Read(piece)
		_ = control.SetWriteDeadline(time.Now().Add(s.limits.stall))
		if _, failed := io.Copy(w, bytes.NewReader(piece[:n])); failed != nil || err != nil {
			return
		}
	}
}
