package delay_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"apograph/bench/delay"
)

// TestProxy sends more than fits one chunk to an echo behind the proxy: all of it
// comes back, in order, no sooner than a round trip later, and much sooner than if
// each chunk waited for the one before.
func TestProxy(t *testing.T) {
	const oneWay = 100 * time.Millisecond
	p, err := delay.Start(echo(t), oneWay)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := make([]byte, 16<<20)
	for i := range sent {
		sent[i] = byte(i * i >> 8)
	}
	began := time.Now()
	var writer sync.WaitGroup
	writer.Go(func() {
		if _, err := conn.Write(sent); err != nil {
			t.Error(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Error(err)
		}
	})
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*oneWay {
		t.Errorf("the first byte came back after %v", took)
	}
	rest, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	writer.Wait()
	if got := append(first, rest...); !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back of %d, or others", len(got), len(sent))
	}
	if took := time.Since(began); took > 32*2*oneWay { // 64 chunks or more
		t.Errorf("all came back after %v only: chunks wait for one another", took)
	}
}

// TestCloseEndsConnections closes a proxy under an open connection.
func TestCloseEndsConnections(t *testing.T) {
	p, err := delay.Start(echo(t), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}

// echo returns the address of a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}
