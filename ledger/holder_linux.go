package ledger

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// lockHolder returns the id of a process that holds a lock on the file, or 0
// if there is none to be seen, for example from inside another pid namespace.
func lockHolder(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	return holderIn(bytes.NewReader(locks), uint64(stat.Dev), stat.Ino)
}

// holderIn looks for a flock of an inode in the format of proc_locks(5):
//
//	1: FLOCK  ADVISORY  WRITE 708 00:13:16890 0 EOF
//
// with the device as major:minor in hexadecimal and the inode in decimal
// digits. Lines of processes that only wait have an arrow after the number.
func holderIn(locks io.Reader, dev, ino uint64) int {
	want := fmt.Sprintf("%02x:%02x:%d", deviceMajor(dev), deviceMinor(dev), ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != want {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}

// deviceMajor and deviceMinor take a device number apart as makedev(3) puts it
// together.
func deviceMajor(dev uint64) uint64 { return dev>>8&0xfff | dev>>32&^0xfff }

func deviceMinor(dev uint64) uint64 { return dev&0xff | dev>>12&^0xff }
