package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeUnits returns the units of sizes, by their names in lower case: a letter
// alone is binary, as in restic, rclone and dd; with B it is decimal.
func sizeUnits() map[string]float64 {
	units := map[string]float64{"": 1, "b": 1}
	binary, decimal := 1.0, 1.0
	for _, letter := range []string{"k", "m", "g", "t", "p"} {
		binary, decimal = binary*1024, decimal*1000
		units[letter], units[letter+"i"], units[letter+"ib"] = binary, binary, binary
		units[letter+"b"] = decimal
	}
	return units
}

// parseSize returns the number of bytes that a text such as 50MiB, 1.5GB, 64k or
// 1000 stands for: at least 1, and rounded down.
func parseSize(text string) (int64, error) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	unit, ok := sizeUnits()[strings.ToLower(strings.TrimSpace(text[end:]))]
	n, err := strconv.ParseFloat(text[:end], 64)
	if !ok || err != nil || strings.ContainsAny(text[:end], "eExX_+-pP") {
		return 0, fmt.Errorf("%s is no size such as 50MiB, 1GB, 64k or 1000", quoteArg(text))
	}
	if n*unit < 1 || n*unit >= math.MaxInt64 {
		return 0, fmt.Errorf("size %s is not between 1 byte and 8 EiB", quoteArg(text))
	}
	return int64(n * unit), nil
}
