//go:build !linux

package kafkatest

import (
	"fmt"
	"net"
)

// A reservation is only a number here: a socket that is bound and never listens
// cannot share its port with one that does. A stopped broker's port may be taken
// by another process.
type reservation struct{ port int }

// reserve returns a port that is free now.
func reserve() (reservation, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return reservation{}, fmt.Errorf("reserve a port: %w", err)
	}
	defer l.Close()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return reservation{}, fmt.Errorf("reserve a port: bound to %T", l.Addr())
	}
	return reservation{port: address.Port}, nil
}

func (reservation) release() {}
