package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"apograph/ledger"
)

// Limits of time for a process that holds a ledger.
const (
	helloPatience    = 3 * time.Second  // to say who it is, which needs no work
	refusePatience   = 2 * time.Second  // the same, where the lock will tell if it does not
	answerPatience   = 30 * time.Second // for an answer that is not a snapshot
	snapshotPatience = 10 * time.Minute // to make a snapshot, and for each piece of it
)

// errHolderGone says that the process that held a ledger has ended, or is about
// to: the file, or whoever holds it next, has the answer.
var errHolderGone = errors.New("the process that held the ledger is gone")

// A silentError says that a process holds a ledger and does not answer.
type silentError struct {
	path string
	pid  int // 0 unknown
	why  string
}

func (e *silentError) Error() string {
	return (&ledger.LockedError{Path: e.path, PID: e.pid}).Error() + ", which does not answer: " + e.why
}

// Unwrap makes the error one of a ledger that is held.
func (e *silentError) Unwrap() error { return &ledger.LockedError{Path: e.path, PID: e.pid} }

// A holder is the process that holds a ledger, as its socket knows it.
type holder struct {
	path   string // of the ledger
	client *http.Client
	self   peerInfo
}

// findHolder returns the process that answers for a ledger, nil if there is
// none. The error says that something listens that cannot be asked: it is a
// [*protocolError] if that is another version of this program. close must be
// called on a holder.
func findHolder(ctx context.Context, path string) (*holder, error) {
	places, err := socketPlaces(path)
	if err != nil {
		return nil, err
	}
	for _, place := range places {
		if !place.believable(path) {
			continue
		}
		h := newHolder(path, place.path)
		switch err := h.hello(ctx); {
		case err == nil:
			return h, nil
		case errors.Is(err, errHolderGone):
			h.close()
		default:
			h.close()
			return nil, err
		}
	}
	return nil, nil
}

func newHolder(path, socket string) *holder {
	var dialer net.Dialer
	return &holder{path: path, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
		ResponseHeaderTimeout: snapshotPatience,
		DisableCompression:    true,
	}}}
}

func (h *holder) close() { h.client.CloseIdleConnections() }

// hello asks who answers.
func (h *holder) hello(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	err := h.call(ctx, http.MethodGet, pathHello, nil, &h.self)
	switch {
	case err != nil:
		return err
	case h.self.Protocol != protocolVersion:
		return &protocolError{path: h.path, peer: h.self}
	}
	return nil
}

func (h *holder) get(ctx context.Context, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	return h.known(h.call(ctx, http.MethodGet, path, nil, answer))
}

func (h *holder) post(ctx context.Context, path string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return h.known(h.call(ctx, http.MethodPost, path, body, answer))
}

// known names the process in an error that says that it does not answer.
func (h *holder) known(err error) error {
	var answer *answerError
	if err == nil || errors.Is(err, errHolderGone) || errors.As(err, &answer) {
		return err
	}
	return &silentError{path: h.path, pid: h.self.PID, why: err.Error()}
}

// call sends a request and reads the JSON that comes back.
func (h *holder) call(ctx context.Context, method, path string, body []byte, answer any) error {
	response, err := h.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return callError(ctx, fmt.Errorf("its answer cannot be read: %w", err))
	}
	return nil
}

// request sends a request and returns a response that is no error. What the
// holder reports is an [*answerError].
func (h *holder) request(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://ledger"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return nil, callError(ctx, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusServiceUnavailable {
		return nil, errHolderGone
	}
	var reported answerError
	if err := json.NewDecoder(response.Body).Decode(&reported); err != nil || reported.Message == "" {
		return nil, callError(ctx, fmt.Errorf("it answers with status %s", response.Status))
	}
	return nil, &reported
}

// callError tells a process that is gone from one that does not answer.
func callError(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.DeadlineExceeded):
		return errors.New("it takes too long")
	case cause != nil:
		return cause
	}
	for _, gone := range []error{syscall.ECONNREFUSED, syscall.ENOENT, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, gone) {
			return errHolderGone
		}
	}
	return err
}
