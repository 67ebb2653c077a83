//go:build kafka

package kafkatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// A process is a child that runs until it is told to end.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it has ended and been waited for
}

// startProcess starts a command whose output goes to a file.
func startProcess(output *os.File, name string, args ...string) (*process, error) {
	p := &process{command: exec.Command(name, args...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = output, output
	p.command.SysProcAttr = processAttributes()
	started := make(chan error, 1)
	go func() {
		// The kernel sends Pdeathsig when the starting thread ends, so that thread
		// must live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait() // how it ended is not of interest: it was told to
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) signal(s syscall.Signal) error { return p.command.Process.Signal(s) }

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stop signals the process and waits until it has ended.
func (p *process) stop(ctx context.Context, s syscall.Signal) error {
	if !p.running() {
		return nil
	}
	if err := p.signal(s); err != nil && p.running() {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
