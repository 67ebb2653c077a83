package main

import (
	"math"
	"strconv"
	"strings"

	"apograph/verify"
)

// A verifyLimit says how much of a copy is read, and how fast.
type verifyLimit struct {
	sample                   verify.Slice
	maxBytes, bytesPerSecond int64 // 0: no limit
}

func verifyLimits(inv *invocation) (l verifyLimit, err error) {
	if text := inv.String("sample"); text != "" {
		if l.sample, err = verify.ParseSlice(text); err != nil {
			return l, usagef("--sample: %v", err)
		}
	}
	if l.maxBytes, err = sizeFlag(inv, "max-bytes"); err != nil {
		return l, err
	}
	l.bytesPerSecond, err = sizeFlag(inv, "rate-limit")
	return l, err
}

// failsOnFaultsAlone reports whether --fail-on lets parts pass that are not
// proven.
func failsOnFaultsAlone(inv *invocation) (bool, error) {
	faults, unproven := false, false
	words := splitList([]string{inv.String("fail-on")})
	for _, word := range words {
		switch word {
		case "faults":
			faults = true
		case "unproven":
			unproven = true
		default:
			err := usagef("--fail-on: unknown word %s", quoteArg(word))
			if best, ok := nearest(word, []string{"faults", "unproven"}); ok {
				return false, err.withHint("did you mean --fail-on %s?", best)
			}
			return false, err.withHint("--fail-on takes faults, or faults,unproven")
		}
	}
	if inv.String("fail-on") != "" && !faults {
		return false, usagef("--fail-on %s: faults never pass", quoteArg(inv.String("fail-on"))).
			withHint("--fail-on faults,unproven fails on both")
	}
	return faults && !unproven, nil
}

// sizeFlag returns the value of a flag that takes a number of bytes, 0 if it is
// not given.
func sizeFlag(inv *invocation, flag string) (int64, error) {
	text := inv.String(flag)
	if text == "" {
		return 0, nil
	}
	n, ok := parseSize(text)
	if !ok {
		return 0, usagef("--%s %s: no size above zero", flag, quoteArg(text)).
			withHint("sizes are such as 500MB, 50MiB, 1.5GiB; a number alone is bytes")
	}
	return n, nil
}

// parseSize parses a number of bytes such as "50MiB" or "1.5 GB": decimal units
// by 1000, binary ones by 1024. It is false for anything else and for less than
// one byte.
func parseSize(text string) (int64, bool) {
	text = strings.TrimSpace(text)
	digits := strings.TrimRight(text, "BKMGTPibkmgtp ")
	unit, ok := sizeUnit(strings.TrimSpace(text[len(digits):]))
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || strings.Trim(digits, "0123456789.") != "" || n*unit < 1 || n*unit > math.MaxInt64/2 {
		return 0, false
	}
	return int64(n * unit), true
}

// sizeUnit returns how many bytes a unit is. A single letter is refused: some
// tools take it as 1000 and others as 1024.
func sizeUnit(name string) (float64, bool) {
	if name == "" || name == "B" {
		return 1, true
	}
	power := strings.Index("KMGTP", strings.ToUpper(name[:1])) + 1
	switch name[1:] {
	case "B":
		return math.Pow(1000, float64(power)), power > 0
	case "iB":
		return math.Pow(1024, float64(power)), power > 0
	default:
		return 0, false
	}
}
