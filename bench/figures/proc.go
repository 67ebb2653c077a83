package figures

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc: USER_HZ is 100 on every architecture that
// Linux runs Go on.
const tick = 10 * time.Millisecond

// CPU returns what a process has used so far, user and system time together, over
// all its threads that are and were.
func CPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return ParseStat(stat)
}

// ParseStat returns user and system time (fields 14 and 15) from the text of
// /proc/PID/stat. The second field, a name in parentheses, may itself hold spaces
// and parentheses.
func ParseStat(stat []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, fmt.Errorf("stat of a process without a name: %.80q", stat)
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("stat of a process with %d fields behind its name", len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("stat of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// PeakRSS returns the most memory in bytes that a process has had resident
// (VmHWM). The maximum that wait4 reports is not that: a child starts in its
// parent's memory, whose peak is counted as the child's own.
func PeakRSS(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return ParsePeakRSS(status)
}

// ParsePeakRSS returns VmHWM, in bytes, from the text of /proc/PID/status. A
// process that has ended and not been waited for has none.
func ParsePeakRSS(status []byte) (int64, error) {
	for line := range strings.Lines(string(status)) {
		rest, ok := strings.CutPrefix(line, "VmHWM:")
		if !ok {
			continue
		}
		kilobytes, unit, ok := strings.Cut(strings.TrimSpace(rest), " ")
		if !ok || unit != "kB" {
			return 0, fmt.Errorf("VmHWM is %q", strings.TrimSpace(rest))
		}
		n, err := strconv.ParseInt(kilobytes, 10, 64)
		return n << 10, err
	}
	return 0, fmt.Errorf("no VmHWM in the status")
}
