package main

import "testing"

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64 // 0: refused
	}{
		{"1", 1}, {"1B", 1}, {"50MiB", 50 << 20}, {"50 MiB", 50 << 20}, {"1GB", 1_000_000_000}, {"1kB", 1000}, {"1KB", 1000},
		{"1.5GiB", 3 << 29}, {"2TiB", 2 << 40}, {"3PB", 3_000_000_000_000_000}, {" 7KiB ", 7 << 10}, {"0.5KiB", 512},
		{"", 0}, {"0", 0}, {"0.1B", 0}, {"-1MiB", 0}, {"50M", 0}, {"50mib", 0}, {"MiB", 0}, {"1e3", 0}, {"0x10", 0}, {"1iB", 0},
		{"1BB", 0}, {"9999PiB", 0}, {"NaN", 0}, {"Inf", 0}, {"1MiB/s", 0}, {"1_000", 0}, {"+1", 0}, {"1 2", 0},
	} {
		n, ok := parseSize(tt.text)
		if n != tt.want || ok != (tt.want > 0) {
			t.Errorf("parseSize(%q) = %d, %t, want %d", tt.text, n, ok, tt.want)
		}
	}
}
