//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// ownedBy reports whether a file belongs to a user.
func ownedBy(info fs.FileInfo, uid int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}

// sameOwner reports whether two files belong to the same user.
func sameOwner(a, b fs.FileInfo) bool {
	stat, ok := b.Sys().(*syscall.Stat_t)
	return ok && ownedBy(a, int(stat.Uid))
}

// restrictSocket takes the rights of others from a socket that is not bound
// yet. Linux makes the file with the rights of the socket (unix_bind), so that
// there is no moment in which others may connect; elsewhere this does nothing.
func restrictSocket(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
