package mm2_test

import (
	"testing"
	"time"

	"apograph/internal/mm2"
)

func TestParseInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{"1": time.Millisecond, "30000": 30 * time.Second, "30s": 30 * time.Second, "1m30s": 90 * time.Second, " 5 ": 5 * time.Millisecond} {
		if got, err := mm2.ParseInterval(text); err != nil || got != want {
			t.Errorf("ParseInterval(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0s", "-5s", "1.5", "s", "9223372036854775807", "1 h", "10000000000h"} {
		if got, err := mm2.ParseInterval(text); err == nil {
			t.Errorf("ParseInterval(%q) = %v, want an error", text, got)
		}
	}
}
