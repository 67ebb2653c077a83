package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// commandOf returns the name and the first words of the command line of a
// process, "" if it cannot be seen: what follows may be long, or secret.
func commandOf(pid int) string {
	if pid <= 0 {
		return ""
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(line) == 0 {
		return ""
	}
	argv := strings.Split(string(bytes.TrimSuffix(line, []byte{0})), "\x00")
	words := []string{filepath.Base(argv[0])}
	for _, word := range argv[1:] {
		if looksLikeFlag(word) || len(words) > 2 || len(word) > maxEcho {
			break
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
