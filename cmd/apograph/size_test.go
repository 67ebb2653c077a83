package main

import "testing"

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1000": 1000, "0001": 1, "1B": 1,
		"1k": 1024, "1K": 1024, "1Ki": 1024, "1KiB": 1024, "1kib": 1024, "1kB": 1000, "1KB": 1000,
		"50MiB": 52_428_800, "50M": 52_428_800, "50MB": 50_000_000, "50 MiB": 52_428_800,
		"1.5G": 1_610_612_736, "1.5GB": 1_500_000_000, "2TiB": 2_199_023_255_552, "1P": 1_125_899_906_842_624,
		"0.5k": 512, "1.9999": 1,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "k", "MiB", "0", "0.4", "-1", "+1", "1e3", "0x10", "1_000", "1 2", "1,5M", "50MBit", "1Z", "1iB", "1kk",
		"9000P", "99999999999999999999", ".", "NaN", "Inf", "1..2", "٣",
	} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", text, got)
		}
	}
}
