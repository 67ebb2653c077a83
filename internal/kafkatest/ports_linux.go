package kafkatest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A reservation keeps a TCP port of the loopback interface for a broker that
// may be down. The socket is bound but never listens, so a connection to a
// stopped broker is refused, as it is in life, while no other process and no
// outgoing connection (a client that dials the stopped broker in a loop can
// connect to itself) is given the port. The broker can listen on it all the same:
// both sockets have SO_REUSEADDR, as those of Go and Java have by default, and
// Linux lets such sockets share a port of which at most one listens.
type reservation struct {
	port int
	fd   int
}

// reserve takes a free port.
func reserve() (reservation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return reservation{}, fmt.Errorf("reserve a port: %w", err)
	}
	port, err := bindLoopback(fd)
	if err != nil {
		_ = unix.Close(fd)
		return reservation{}, fmt.Errorf("reserve a port: %w", err)
	}
	return reservation{port: port, fd: fd}, nil
}

func bindLoopback(fd int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	address, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to %T", name)
	}
	return address.Port, nil
}

func (r reservation) release() { _ = unix.Close(r.fd) }
