//go:build kafka

package kafkatest

import "syscall"

// processAttributes has the kernel kill a process when the thread that started
// it ends, and so when the test binary dies in whatever way; and puts it into a
// group of its own, so that an interrupt from a terminal does not reach it before
// the test's cleanup.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
