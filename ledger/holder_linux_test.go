package ledger

import (
	"strings"
	"testing"
)

// TestHolderIn reads locks as the kernel prints them.
func TestHolderIn(t *testing.T) {
	locks := strings.Join([]string{
		"1: POSIX  ADVISORY  WRITE 11 08:02:131 0 EOF",
		"2: FLOCK  ADVISORY  WRITE 12 08:02:132 0 EOF",
		"2: -> FLOCK  ADVISORY  WRITE 13 08:02:131 0 EOF",
		"3: FLOCK  ADVISORY  READ -1 08:02:131 0 EOF",
		"4: FLOCK  ADVISORY  READ 14 103:05:131 0 EOF",
		"5: FLOCK  ADVISORY  READ 15 08:02:131 0 EOF",
		"6: FLOCK",
	}, "\n")
	rows := []struct {
		dev, ino uint64
		want     int
	}{
		{0x802, 131, 15}, {0x802, 132, 12}, {0x10305, 131, 14}, {0x802, 133, 0},
	}
	for _, r := range rows {
		if got := holderIn(strings.NewReader(locks), r.dev, r.ino); got != r.want {
			t.Errorf("holder of %x, inode %d is %d, want %d", r.dev, r.ino, got, r.want)
		}
	}
}
