package main

import (
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
	n, err := parseSize(text)
	if err != nil {
		return 0, usagef("--%s: %v", flag, err)
	}
	return n, nil
}
