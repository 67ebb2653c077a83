package ledger

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// madeOf returns the topics that the flow made, by name and id, as a caller gets
// them who knows which there are.
func madeOf(l *Ledger) (all []madeTopic) {
	l.mu.RLock()
	keys := slices.Collect(maps.Keys(l.flow.made))
	names := make(map[string]string)
	for _, key := range keys {
		m, _ := decodeMade([]byte(key), l.flow.made[key])
		names[key] = m.name
	}
	l.mu.RUnlock()
	for key, name := range names {
		_, id, _ := parseTopicKey([]byte(key))
		settings, ok := l.MadeTopic(name, id)
		if ok {
			all = append(all, made(name, id, settings))
		}
	}
	slices.SortFunc(all, func(a, b madeTopic) int { return strings.Compare(a.name+string(a.id[:]), b.name+string(b.id[:])) })
	return all
}

func made(name string, id TopicID, settings map[string]string) madeTopic {
	m := madeTopic{name: name, id: id}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		m.settings = append(m.settings, setting{key, settings[key]})
	}
	return m
}

// settingsOf returns the settings as SetMade takes them.
func settingsOf(m madeTopic) map[string]string {
	settings := make(map[string]string)
	for _, s := range m.settings {
		settings[s.key] = s.value
	}
	return settings
}

func mustMake(t testing.TB, l *Ledger, m madeTopic) {
	t.Helper()
	if err := l.SetMade(m.name, m.id, settingsOf(m)); err != nil {
		t.Fatal(err)
	}
}

// mustHaveMade compares what the ledger says of a topic; nil: it was not made.
func mustHaveMade(t *testing.T, l *Ledger, name string, id TopicID, want map[string]string) {
	t.Helper()
	got, ok := l.MadeTopic(name, id)
	if ok != (want != nil) || !maps.Equal(got, want) {
		t.Errorf("%s %v: %v, %t, want %v", name, id, got, ok, want)
	}
}

// TestMadeTopics: the settings that were set last are kept, from when SetMade
// returns, of the very topic.
func TestMadeTopics(t *testing.T) {
	l := mustCreate(t)
	first := map[string]string{"retention.ms": "5", "cleanup.policy": "compact"}
	last := map[string]string{"retention.ms": "", "é": "ü"}
	nameless := map[string]string{"a": "b"}
	for _, err := range []error{
		l.SetMade("orders", TopicID{1}, first),
		l.SetMade("orders", TopicID{2}, first),
		l.SetMade("old", TopicID{}, nameless),
		l.SetMade("plain", TopicID{3}, nil),
		l.SetMade("orders", TopicID{2}, last),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	first["changed"], last["retention.ms"] = "by the caller", "7"
	for range 2 {
		for _, now := range []*Ledger{l, crashed(t, l)} {
			mustHaveMade(t, now, "orders", TopicID{1}, map[string]string{"retention.ms": "5", "cleanup.policy": "compact"})
			mustHaveMade(t, now, "orders", TopicID{2}, map[string]string{"retention.ms": "", "é": "ü"})
			mustHaveMade(t, now, "orders", TopicID{4}, nil) // created again
			mustHaveMade(t, now, "orders", TopicID{}, nil)
			mustHaveMade(t, now, "old", TopicID{}, nameless)
			mustHaveMade(t, now, "old", TopicID{5}, nil)
			mustHaveMade(t, now, "plain", TopicID{3}, map[string]string{})
			got, _ := now.MadeTopic("plain", TopicID{3})
			got["changed"] = "by the caller"
		}
		l = reopen(t, l)
	}
}

// TestMadeCommits: what is so already is not written, all else comes with what
// is queued.
func TestMadeCommits(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustMake(t, l, goodMade()[1])
	commits := l.last.number
	mustAppend(t, l, id, copiedEntry(l.End(id), 3))
	mustMake(t, l, goodMade()[1])
	if l.last.number != commits || l.Committed(id) == l.End(id) {
		t.Errorf("%d commits of what is so already", l.last.number-commits)
	}
	mustMake(t, l, goodMade()[0])
	if l.last.number != commits+1 || l.Committed(id) != l.End(id) {
		t.Errorf("%d commits, and the books end at %+v", l.last.number-commits, l.Committed(id))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.SetMade("x", TopicID{}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("SetMade of a closed ledger: %v", err)
	}
}

// TestMadeAfterAFailedCommit: neither memory nor file has what SetMade could not
// write.
func TestMadeAfterAFailedCommit(t *testing.T) {
	l := mustCreate(t)
	small, large := goodMade()[1], madeTopic{name: "large", id: TopicID{9}}
	mustMake(t, l, small)
	for i := range maxSettings {
		large.settings = append(large.settings, setting{fmt.Sprintf("k%03d", i), strings.Repeat("x", maxSettingValue)})
	}
	l.db.MaxSize = 1
	if err := l.SetMade(large.name, large.id, settingsOf(large)); err == nil {
		t.Fatal("a commit succeeds on a full disk")
	}
	for _, now := range []*Ledger{l, crashed(t, l)} {
		if got := madeOf(now); fmt.Sprint(got) != fmt.Sprint([]madeTopic{small}) {
			t.Errorf("made %d topics", len(got))
		}
	}
	l.db.MaxSize = 0
	mustMake(t, l, large)
	if got := madeOf(crashed(t, l)); fmt.Sprint(got) != fmt.Sprint([]madeTopic{small, large}) {
		t.Errorf("made %d topics", len(got))
	}
}

// TestMadeThatCannotBe: what is out of bounds is refused, and what is just
// inside is kept.
func TestMadeThatCannotBe(t *testing.T) {
	l := mustCreate(t)
	many := make(map[string]string)
	for i := range maxSettings {
		many[fmt.Sprint(i)] = ""
	}
	mustMake(t, l, made(strings.Repeat("x", maxTopic), TopicID{1}, many))
	many["more"] = ""
	for name, m := range map[string]madeTopic{
		"no name":           {},
		"no name but an id": {id: TopicID{9}},
		"a long name":       {name: strings.Repeat("x", maxTopic+1)},
		"a name as bytes":   {name: "\xff"},
		"many settings":     made("x", TopicID{}, many),
		"no key":            {name: "x", settings: []setting{{"", "v"}}},
		"a long key":        {name: "x", settings: []setting{{strings.Repeat("k", maxSettingKey+1), "v"}}},
		"a key as bytes":    {name: "x", settings: []setting{{"\xff", "v"}}},
		"a long value":      {name: "x", settings: []setting{{"k", strings.Repeat("v", maxSettingValue+1)}}},
		"a value as bytes":  {name: "x", settings: []setting{{"k", "\xff"}}},
	} {
		var law *LawError
		if err := l.SetMade(m.name, m.id, settingsOf(m)); !errors.As(err, &law) || law.Law != lawMade {
			t.Errorf("%s: %v", name, err)
		}
	}
	longest := madeTopic{name: strings.Repeat("y", maxTopic), settings: []setting{{strings.Repeat("k", maxSettingKey), strings.Repeat("v", maxSettingValue)}}}
	mustMake(t, l, longest)
	if got := madeOf(reopen(t, l)); len(got) != 2 || len(got[0].settings) != maxSettings || fmt.Sprint(got[1]) != fmt.Sprint(longest) {
		t.Errorf("%d topics", len(got))
	}
}

// manySettings is what a topic usually has.
func manySettings(i int) map[string]string {
	return map[string]string{
		"cleanup.policy": "delete", "compression.type": "producer", "max.message.bytes": fmt.Sprint(1<<20 + i),
		"message.timestamp.after.max.ms": "9223372036854775807", "message.timestamp.before.max.ms": "9223372036854775807",
		"message.timestamp.type": "CreateTime", "retention.ms": fmt.Sprint(i), "segment.bytes": "1073741824",
	}
}

// TestMemoryOfMadeTopics: 10,000 topics with eight settings take at most 600
// bytes each, and are all there.
func TestMemoryOfMadeTopics(t *testing.T) {
	l := mustCreate(t)
	topics := manyTopics(10_000)
	for i, s := range topics {
		l.flow.noteMade(topicKey(s.Name, s.ID), madeValue(topicKey(s.Name, s.ID), madePointer(s, manySettings(i)))[checksumSize:])
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for i, s := range topics {
		mustHaveMade(t, l, s.Name, s.ID, manySettings(i))
	}
	with := heap()
	l.flow.made = nil
	per := float64(with-heap()) / float64(len(topics))
	t.Logf("%.1f bytes of memory a topic", per)
	if per < 100 || per > 600 {
		t.Errorf("%.1f bytes a topic", per)
	}
	runtime.KeepAlive(topics)
}

func madePointer(s SeenTopic, settings map[string]string) *madeTopic {
	m := made(s.Name, s.ID, settings)
	return &m
}
