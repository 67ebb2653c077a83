package replicate

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/ledger"
)

// TestCauseOfALoss tells retention from what somebody deleted.
func TestCauseOfALoss(t *testing.T) {
	const now, day = int64(1_700_000_000_000), int64(86_400_000)
	weekly := deletion{retentionMillis: 7 * day}
	tests := []struct {
		name   string
		d      deletion
		inside bool
		newest int64
		want   ledger.Cause
	}{
		{"settings unknown", settings(nil).deletion(), false, now, ledger.CauseRetention},
		{"settings unknown, inside a batch", settings(nil).deletion(), true, 0, ledger.CauseDeleteRecords},
		{"nothing of its own set: the broker's week and no size are not known", settings{}.deletion(), false, now, ledger.CauseRetention},
		{"inside a batch", weekly, true, now - 8*day, ledger.CauseDeleteRecords},
		{"a copied record is older", weekly, false, now - 8*day, ledger.CauseRetention},
		{"a copied record is just as old", weekly, false, now - 7*day, ledger.CauseRetention},
		{"a copied record is younger", weekly, false, now - 7*day + 1, ledger.CauseDeleteRecords},
		{"a copied record is from the future", weekly, false, now + day, ledger.CauseDeleteRecords},
		{"no copied record is known", weekly, false, 0, ledger.CauseRetention},
		{"younger, but by size too", deletion{retentionMillis: 7 * day, bySize: true}, false, now, ledger.CauseRetention},
		{"younger, by size alone", deletion{retentionMillis: -1, bySize: true}, false, now, ledger.CauseRetention},
		{"neither by time nor by size", deletion{never: true, retentionMillis: -1}, false, now - 99*day, ledger.CauseDeleteRecords},
		{"kept for ever long", deletion{retentionMillis: 1<<63 - 1}, false, now, ledger.CauseDeleteRecords},
	}
	for _, tt := range tests {
		if got := tt.d.cause(tt.inside, tt.newest, now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestDeletionOfATopic reads from the settings how a topic deletes.
func TestDeletionOfATopic(t *testing.T) {
	of := func(pairs ...string) settings {
		s := settings{}
		for i := 0; i < len(pairs); i += 2 {
			s[pairs[i]] = configOf(pairs[i], pairs[i+1])
		}
		return s
	}
	tests := []struct {
		s    settings
		want deletion
	}{
		{of("cleanup.policy", "delete", "retention.ms", "5", "retention.bytes", "-1"), deletion{false, false, 5}},
		{of("cleanup.policy", "compact,delete", "retention.ms", "5", "retention.bytes", "7"), deletion{false, true, 5}},
		{of("cleanup.policy", "delete", "retention.ms", "-1", "retention.bytes", "-1"), deletion{true, false, -1}},
		{of("cleanup.policy", "compact", "retention.ms", "5", "retention.bytes", "-1"), deletion{true, false, 5}},
		{of("cleanup.policy", "", "retention.ms", "5", "retention.bytes", "-1"), deletion{true, false, 5}},
		{nil, deletion{false, true, -1}},
	}
	for _, tt := range tests {
		if got := tt.s.deletion(); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.s, got, tt.want)
		}
	}
}

func configOf(key, value string) kadm.Config { return kadm.Config{Key: key, Value: &value} }
