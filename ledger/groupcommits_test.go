package ledger

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func goodGroups() map[string][]GroupCommit {
	return map[string][]GroupCommit{
		"billing": {
			{Topic: "a.orders", Partition: 0, Offset: 21, Source: 26, AtMillis: startMillis},
			{Topic: "a.orders", Partition: 1, Offset: 364, Source: 401, AtMillis: startMillis + 5, Undecided: true, Before: 300},
			{Topic: "a.pay", Partition: 0, Offset: 0, Source: 4, AtMillis: startMillis, Undecided: true, Before: NoOffset},
		},
		"grüppe": {{Topic: "a.orders", Partition: 1, Offset: 1 << 40, Source: 1<<40 + 7, AtMillis: startMillis}},
	}
}

func mustKeep(t testing.TB, l *Ledger, commits map[string][]GroupCommit) {
	t.Helper()
	if err := l.KeepGroupCommits(commits); err != nil {
		t.Fatal(err)
	}
}

// mustHaveGroups compares all that a ledger keeps of groups.
func mustHaveGroups(t testing.TB, l *Ledger, want map[string][]GroupCommit) {
	t.Helper()
	if got := slices.Sorted(maps.Keys(want)); !slices.Equal(got, l.CommittedGroups()) {
		t.Errorf("groups %q, want %q", l.CommittedGroups(), got)
	}
	for group, commits := range want {
		if got := l.GroupCommits(group); !slices.Equal(got, commits) {
			t.Errorf("group %s: %+v, want %+v", group, got, commits)
		}
	}
}

// groupSabotages returns ways to break what is kept of groups.
func groupSabotages() []sabotage {
	key := []byte("billing")
	group := func(name, law string, edit func([]GroupCommit) []GroupCommit) sabotage {
		return edited(name, law, bucketGroups, func(e *editor) {
			commits, err := decodeGroup(key, e.payload(bucketGroups, key))
			if err != nil {
				e.t.Fatal(err)
			}
			e.put(bucketGroups, key, groupValue(key, edit(commits)))
		})
	}
	one := func(name string, edit func(*GroupCommit)) sabotage {
		return group(name, lawGroups, func(commits []GroupCommit) []GroupCommit { edit(&commits[2]); return commits })
	}
	return []sabotage{
		group("group-of-nothing", lawGroups, func([]GroupCommit) []GroupCommit { return nil }),
		group("group-unsorted", lawGroups, func(commits []GroupCommit) []GroupCommit {
			commits[0].Partition = 1
			return commits
		}),
		one("group-topic", func(c *GroupCommit) { c.Topic = strings.Repeat("x", maxTopic+1) }),
		one("group-time", func(c *GroupCommit) { c.AtMillis = -1 }),
		edited("group-lost", lawKeys, bucketGroups, func(e *editor) { e.remove(bucketGroups, key) }),
		edited("group-key", lawKeys, bucketGroups, func(e *editor) {
			e.seal(bucketGroups, []byte(strings.Repeat("g", maxGroup+1)), e.payload(bucketGroups, key))
			e.remove(bucketGroups, key)
		}),
		edited("group-flag", lawEncoding, bucketGroups, func(e *editor) {
			b := e.payload(bucketGroups, key)
			b[0] |= 1
			e.seal(bucketGroups, key, b)
		}),
		edited("group-longer", lawEncoding, bucketGroups, func(e *editor) {
			e.seal(bucketGroups, key, append(e.payload(bucketGroups, key), 0))
		}),
		edited("group-topic-of-nothing", lawEncoding, bucketGroups, func(e *editor) { e.seal(bucketGroups, key, []byte("\x00\x01\x01t\x00")) }),
		edited("groups-lost", lawKeys, bucketMeta, func(e *editor) { e.remove(bucketMeta, []byte(metaGroups)) }),
		edited("format-4-without-groups", lawBuckets, bucketGroups, func(e *editor) {
			if err := e.tx.DeleteBucket([]byte(bucketGroups)); err != nil {
				e.t.Fatal(err)
			}
		}),
	}
}

// TestGroupCommits: what was kept last stands, for each partition by itself,
// from when KeepGroupCommits returns, over restarts, crashes and copies.
func TestGroupCommits(t *testing.T) {
	l := mustCreate(t)
	mustKeep(t, l, goodGroups())
	mustHaveGroups(t, l, goodGroups())
	want := goodGroups()
	want["billing"][1] = GroupCommit{Topic: "a.orders", Partition: 1, Offset: 364, Source: 401, AtMillis: 7}
	want["new"] = []GroupCommit{{Topic: "t", Partition: math.MaxInt32, Offset: math.MaxInt64, Source: math.MaxInt64, AtMillis: 1}}
	later := want["billing"][1] // for the same offset of the source, which the group has had since 7
	later.AtMillis = startMillis
	mustKeep(t, l, map[string][]GroupCommit{"billing": want["billing"][1:2], "new": want["new"]})
	mustKeep(t, l, map[string][]GroupCommit{"billing": {later}})
	for range 2 {
		mustHaveGroups(t, crashed(t, l), want)
		mustHaveGroups(t, l, want)
		got := l.GroupCommits("billing")
		got[0].Offset = 7 // the caller's
		l = reopen(t, l)
	}
	gone := GroupCommit{Topic: "a.orders", Partition: 1, Offset: NoOffset}
	mustKeep(t, l, map[string][]GroupCommit{"grüppe": {gone}, "billing": {gone, {Topic: "other", Offset: NoOffset}}, "nobody": {gone}})
	delete(want, "grüppe")
	want["billing"] = slices.Delete(want["billing"], 1, 2)
	mustHaveGroups(t, l, want)
	mustHaveGroups(t, crashed(t, l), want)
}

// TestGroupCommitHas: until it is known what became of a commit the group may be
// at either of two places.
func TestGroupCommitHas(t *testing.T) {
	for _, tt := range []struct {
		commit GroupCommit
		at     []int64
	}{
		{GroupCommit{Offset: 5}, []int64{5}},
		{GroupCommit{Offset: 0}, []int64{0}},
		{GroupCommit{Offset: 5, Undecided: true, Before: 3}, []int64{3, 5}},
		{GroupCommit{Offset: 5, Undecided: true, Before: NoOffset}, []int64{-1, 5}},
	} {
		for offset := int64(-1); offset < 8; offset++ {
			if got := tt.commit.Has(offset); got != slices.Contains(tt.at, offset) {
				t.Errorf("%+v has %d: %t", tt.commit, offset, got)
			}
		}
	}
}

// TestGroupCommitsCommit: what is so already is not written, all else comes with
// what is queued.
func TestGroupCommitsCommit(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustKeep(t, l, goodGroups())
	commits := l.last.number
	mustAppend(t, l, id, copiedEntry(l.End(id), 3))
	mustKeep(t, l, goodGroups())
	mustKeep(t, l, nil)
	if l.last.number != commits || l.Committed(id) == l.End(id) {
		t.Errorf("%d commits of what is so already", l.last.number-commits)
	}
	mustKeep(t, l, map[string][]GroupCommit{"g": {{Topic: "t"}}})
	if l.last.number != commits+1 || l.Committed(id) != l.End(id) {
		t.Errorf("%d commits, and the books end at %+v", l.last.number-commits, l.Committed(id))
	}
	l.db.MaxSize = 1
	big := make(map[string][]GroupCommit)
	for i := range 20_000 {
		big[fmt.Sprintf("%d%s", i, strings.Repeat("g", 200))] = []GroupCommit{{Topic: "t"}}
	}
	if err := l.KeepGroupCommits(big); err == nil {
		t.Fatal("a commit succeeds on a full disk")
	}
	want := goodGroups()
	want["g"] = []GroupCommit{{Topic: "t"}}
	mustHaveGroups(t, l, want)
	mustHaveGroups(t, crashed(t, l), want)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.KeepGroupCommits(big); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed ledger: %v", err)
	}
	read, err := Open(l.path, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	mustHaveGroups(t, read, want)
	if err := read.KeepGroupCommits(big); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a ledger that is read: %v", err)
	}
}

// TestGroupCommitsThatCannotBe: what is out of bounds is refused with all that
// came with it, and what is just inside is kept.
func TestGroupCommitsThatCannotBe(t *testing.T) {
	l := mustCreate(t)
	fine := GroupCommit{Topic: strings.Repeat("x", maxTopic), Partition: math.MaxInt32, AtMillis: maxMillis}
	long := strings.Repeat("g", maxGroup)
	mustKeep(t, l, map[string][]GroupCommit{long: {fine}})
	for name, spoil := range map[string]func(group *string, c *GroupCommit){
		"no id":                  func(group *string, _ *GroupCommit) { *group = "" },
		"a long id":              func(group *string, _ *GroupCommit) { *group += "g" },
		"an id as bytes":         func(group *string, _ *GroupCommit) { *group = "\xff" },
		"no topic":               func(_ *string, c *GroupCommit) { c.Topic = "" },
		"a long topic":           func(_ *string, c *GroupCommit) { c.Topic += "x" },
		"a negative partition":   func(_ *string, c *GroupCommit) { c.Partition = -1 },
		"a negative offset":      func(_ *string, c *GroupCommit) { c.Offset = -2 },
		"a negative source":      func(_ *string, c *GroupCommit) { c.Source = -1 },
		"a negative time":        func(_ *string, c *GroupCommit) { c.AtMillis = -1 },
		"before, and decided":    func(_ *string, c *GroupCommit) { c.Before = 1 },
		"a negative one before":  func(_ *string, c *GroupCommit) { c.Undecided, c.Before = true, -2 },
		"an endless one before":  func(_ *string, c *GroupCommit) { c.Undecided, c.Before = true, math.MaxInt64 },
		"a time beyond the last": func(_ *string, c *GroupCommit) { c.AtMillis++ },
	} {
		group, c := long, fine
		spoil(&group, &c)
		var law *LawError
		err := l.KeepGroupCommits(map[string][]GroupCommit{group: {c}, "other": {fine}})
		if !errors.As(err, &law) || law.Law != lawGroups {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustHaveGroups(t, l, map[string][]GroupCommit{long: {fine}})
}

// TestCodecOfGroups: the bytes, as FORMAT.md says.
func TestCodecOfGroups(t *testing.T) {
	commits := []GroupCommit{
		{Topic: "a", Partition: 2, Offset: 300, Source: 5, AtMillis: 64},
		{Topic: "a", Partition: 3, Offset: 1, Source: 2, AtMillis: 1, Undecided: true, Before: NoOffset},
		{Topic: "b", Partition: 0, Undecided: true, Before: 4},
	}
	payload := "\x00\x02" + "\x01a\x02" + "\x00\x02\xac\x02\x05\x80\x01" + "\x01\x03\x01\x02\x02\x00" + "\x01b\x01" + "\x01\x00\x00\x00\x00\x05"
	key := []byte("g")
	if got := mustUnseal(t, bucketGroups, key, groupValue(key, commits)); string(got) != payload {
		t.Errorf("group is %q, want %q", got, payload)
	}
	if got, err := decodeGroup(key, []byte(payload)); err != nil || !slices.Equal(got, commits) {
		t.Errorf("group is %+v, %v", got, err)
	}
	if got := mustUnseal(t, bucketMeta, []byte(metaGroups), groupsCountValue(300)); string(got) != "\x00\xac\x02" {
		t.Errorf("groups are %q", got)
	}
}

// TestMemoryOfGroups: 4,000 groups with ten partitions take at most 40 bytes a
// partition.
func TestMemoryOfGroups(t *testing.T) {
	l := mustCreate(t)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	commits := make(map[string][]GroupCommit)
	for i := range 4000 {
		for p := range int32(10) {
			group := fmt.Sprintf("group-%d", i)
			commits[group] = append(commits[group], GroupCommit{Topic: "orders", Partition: p, Offset: int64(i) << 20, Source: int64(i) << 21, AtMillis: startMillis})
		}
	}
	mustKeep(t, l, commits)
	l = reopen(t, l)
	mustHaveGroups(t, l, commits)
	with := heap()
	l.groups = nil
	per := float64(with-heap()) / 40_000
	t.Logf("%.1f bytes of memory a partition", per)
	if per < 10 || per > 40 {
		t.Errorf("%.1f bytes a partition", per)
	}
	runtime.KeepAlive(commits)
}
