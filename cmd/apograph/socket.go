package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// socketSuffix is appended to the path of a ledger for that of its socket.
const socketSuffix = ".sock"

// maxSocketPath returns how many bytes the path of a unix socket may have:
// sun_path of sockaddr_un less a zero at its end.
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103 // macOS and the BSDs
}

// A socketPlace is where the socket of a ledger may be.
type socketPlace struct {
	path     string
	fallback bool // in a directory for the sockets of one user
}

// socketPlaces returns where the socket of a ledger may be, the best place
// first. Links are followed, so that every name of a ledger leads to the same
// places. A place that the system has no room for is left out.
func socketPlaces(ledgerPath string) ([]socketPlace, error) {
	absolute, err := filepath.Abs(ledgerPath)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(absolute); err == nil {
		absolute = real
	}
	places := []socketPlace{{path: absolute + socketSuffix}}
	name := fmt.Sprintf("%x%s", sha256.Sum256([]byte(absolute)), socketSuffix)[64-32:]
	for _, directory := range socketDirectories() {
		places = append(places, socketPlace{filepath.Join(directory, name), true})
	}
	fitting := places[:0]
	for _, place := range places {
		if len(place.path) <= maxSocketPath() {
			fitting = append(fitting, place)
		}
	}
	return fitting, nil
}

// socketDirectories returns the directories for sockets that have no place
// beside their ledgers: that of the session, which not every process of a user
// knows, and one among the temporary files.
func socketDirectories() []string {
	var directories []string
	if session := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(session) {
		directories = append(directories, filepath.Join(session, "apograph"))
	}
	return append(directories, filepath.Join(os.TempDir(), fmt.Sprintf("apograph-%d", os.Getuid())))
}

// checkSocketDirectory refuses a directory for sockets into which others could
// put one.
func checkSocketDirectory(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", path)
	case !ownedBy(info, os.Geteuid()):
		return fmt.Errorf("directory %s belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("directory %s is open to other users", path)
	}
	return nil
}

// prepare makes the place ready for a socket of the holder of the ledger: the
// directory is there, and what a dead holder left is gone. Nothing but a socket
// is ever removed.
func (p socketPlace) prepare() error {
	if p.fallback {
		directory := filepath.Dir(p.path)
		if err := os.Mkdir(directory, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := checkSocketDirectory(directory); err != nil {
			return err
		}
	}
	info, err := os.Lstat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is in the way and is no socket", p.path)
	}
	return os.Remove(p.path)
}

// believable reports whether there is a socket that can be believed: it belongs
// to this user, to root, or to whom the ledger belongs.
func (p socketPlace) believable(ledgerPath string) bool {
	info, err := os.Lstat(p.path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	if p.fallback {
		return checkSocketDirectory(filepath.Dir(p.path)) == nil
	}
	file, err := os.Stat(ledgerPath)
	return err == nil && (ownedBy(info, os.Geteuid()) || ownedBy(info, 0) || sameOwner(info, file))
}
