package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"apograph/ledger"
	"apograph/translate"
)

// protocolVersion is the version of what a running copier and its clients say
// to each other on the socket. It changes whenever one of them would
// misunderstand the other; [peerInfo] alone stays readable for ever.
const protocolVersion = 1

// Paths on the socket. All but pathHello hold the version, so that a peer of
// another version hits none of them.
const (
	pathHello     = "/hello"
	pathLedger    = "/v1/ledger"
	pathStatus    = "/v1/status"
	pathSnapshot  = "/v1/snapshot"
	pathTranslate = "/v1/translate"
	pathOrder     = "/v1/order"
	pathAccept    = "/v1/accept"
)

// headerSHA256 is the header of a snapshot that has its SHA-256, in hexadecimal
// digits.
const headerSHA256 = "Apograph-Sha256"

// A peerInfo says who answers on the socket.
type peerInfo struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of the program
	PID      int    `json:"pid"`
	LedgerID string `json:"ledger_id"`
}

// programVersion returns the version of this program.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info).Version
}

// A translateRequest asks for the translation of offsets.
type translateRequest struct {
	Queries []translate.Query `json:"queries"`
	Reverse bool              `json:"reverse"`
}

// A translateResponse has one answer a query, in order.
type translateResponse struct {
	Ledger  ledgerRef          `json:"ledger"`
	Answers []translate.Answer `json:"answers"`
}

// An orderRequest orders a pause or a resumption.
type orderRequest struct {
	Order ledger.Order `json:"order"`
}

// An orderResponse is the answer to an order.
type orderResponse struct {
	Report  orderReport `json:"report"`
	Details []string    `json:"details"` // of the partitions, in their order
}

// An acceptRequest accepts source offsets that are bad or in doubt. It is
// answered with an [acceptReport].
type acceptRequest struct {
	Topic      string       `json:"topic"` // of the source
	Partition  int32        `json:"partition"`
	Generation int32        `json:"generation"` // 0: the newest
	Offsets    ledger.Range `json:"offsets"`
	Reason     string       `json:"reason"`
	By         string       `json:"by"`
	AtMillis   int64        `json:"at_millis"`
}

// An answerError is an error that the process on the other end of the socket
// reported, with the exit code that it would have had there.
type answerError struct {
	Code    exitCode `json:"code"`
	Message string   `json:"message"`
	Advice  string   `json:"hint"`
}

func (e *answerError) Error() string { return e.Message }

// Hint returns the advice that goes with the error.
func (e *answerError) Hint() string { return e.Advice }

// errorOnWire returns what the socket says about err, and the HTTP status. One
// that only says that the process is about to end has a status of its own: the
// client asks again, or the file.
func errorOnWire(err error) (*answerError, int) {
	if errors.Is(err, ledger.ErrClosed) || errors.Is(err, context.Canceled) || isSignal(err) {
		return &answerError{exitLocked, "the copier is stopping", ""}, http.StatusServiceUnavailable
	}
	code := exitCodeFor(context.Background(), err)
	status := http.StatusInternalServerError
	if code == exitUsage {
		status = http.StatusBadRequest
	}
	return &answerError{code, err.Error(), hintFor(err, "")}, status
}

func isSignal(err error) bool {
	var signal *signalError
	return errors.As(err, &signal)
}

// A protocolError says that the process that holds a ledger and this one do not
// understand each other.
type protocolError struct {
	path string
	peer peerInfo
}

func (e *protocolError) Error() string {
	return fmt.Sprintf("ledger %s is in use by process %d, apograph %s, which speaks version %d of the protocol; this is apograph %s, and speaks version %d",
		e.path, e.peer.PID, e.peer.Version, e.peer.Protocol, programVersion(), protocolVersion)
}

// Hint returns the advice that goes with the error.
func (e *protocolError) Hint() string {
	if e.peer.Protocol > protocolVersion {
		return "use the version of apograph that copies, or a newer one"
	}
	return "restart the copier with this version of apograph, or use its version"
}

// Unwrap makes the error one of a ledger that is held.
func (e *protocolError) Unwrap() error { return &ledger.LockedError{Path: e.path, PID: e.peer.PID} }
