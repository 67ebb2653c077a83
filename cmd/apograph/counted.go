package main

import "fmt"

// counted returns a number with what is counted, which takes an s behind any
// number but one: "1 offset", "2 offsets".
func counted(n int64, one string) string { return plural(n, one, one+"s") }

// plural is [counted] for words that do not take an s.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
