package main

import (
	"os"

	"golang.org/x/term"
)

// terminalWidth reports whether a stream is a terminal, and how many columns it
// has: 0 if that is not known.
func terminalWidth(stream any) (columns int, ok bool) {
	file, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, true
	}
	return columns, true
}

// isDumb reports whether the terminal cannot rewrite a line.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// mayEscape reports whether escape sequences may be sent to a terminal: it
// understands them, and nobody objects (NO_COLOR, no-color.org).
func mayEscape() bool { return !isDumb() && os.Getenv("NO_COLOR") == "" }
