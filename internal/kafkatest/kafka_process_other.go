//go:build kafka && !linux

package kafkatest

import "syscall"

// processAttributes puts a process into a group of its own. It survives a test
// binary that is killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
