package mm2_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"apograph/internal/mm2"
)

// A wireRecord has the fields of all three kinds of records.
type wireRecord struct {
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	Upstream   int64  `json:"upstream"`
	Downstream int64  `json:"downstream"`
	Group      string `json:"group"`
	Metadata   string `json:"metadata"`
	Source     string `json:"source"`
	Target     string `json:"target"`
	Timestamp  int64  `json:"timestamp"`
	Error      string `json:"error"`
}

func (r wireRecord) encode(t *testing.T, kind string) (key, value []byte, err error) {
	t.Helper()
	switch kind {
	case "offset_sync":
		key, value, err = mm2.OffsetSync{Topic: r.Topic, Partition: r.Partition, Upstream: r.Upstream, Downstream: r.Downstream}.Encode()
	case "checkpoint":
		key, value, err = mm2.Checkpoint{Group: r.Group, Topic: r.Topic, Partition: r.Partition, Upstream: r.Upstream, Downstream: r.Downstream, Metadata: r.Metadata}.Encode()
	case "heartbeat":
		key, value, err = mm2.Heartbeat{Source: r.Source, Target: r.Target, Timestamp: r.Timestamp}.Encode()
	default:
		t.Fatalf("record of kind %q", kind)
	}
	return key, value, err
}

func parseWire(t *testing.T, kind string, key, value []byte) (r wireRecord, err error) {
	t.Helper()
	switch kind {
	case "offset_sync":
		var s mm2.OffsetSync
		s, err = mm2.ParseOffsetSync(key, value)
		r = wireRecord{Topic: s.Topic, Partition: s.Partition, Upstream: s.Upstream, Downstream: s.Downstream}
	case "checkpoint":
		var c mm2.Checkpoint
		c, err = mm2.ParseCheckpoint(key, value)
		r = wireRecord{Group: c.Group, Topic: c.Topic, Partition: c.Partition, Upstream: c.Upstream, Downstream: c.Downstream, Metadata: c.Metadata}
	case "heartbeat":
		var h mm2.Heartbeat
		h, err = mm2.ParseHeartbeat(key, value)
		r = wireRecord{Source: h.Source, Target: h.Target, Timestamp: h.Timestamp}
	default:
		t.Fatalf("record of kind %q", kind)
	}
	return r, err
}

func TestVectorsOfWire(t *testing.T) {
	type item struct {
		ID     string     `json:"id"`
		Record string     `json:"record"`
		Fields wireRecord `json:"fields"`
		Key    string     `json:"key_hex"`
		Value  string     `json:"value_hex"`
	}
	for _, file := range []string{"wire/offset-sync.json", "wire/checkpoint.json", "wire/heartbeat.json"} {
		for _, v := range vectorItems[item](t, file) {
			key, value, err := v.Fields.encode(t, v.Record)
			if err != nil || hex.EncodeToString(key) != v.Key || hex.EncodeToString(value) != v.Value {
				t.Errorf("%s: encoded %x %x, %v, want %s %s", v.ID, key, value, err, v.Key, v.Value)
			}
			if got, err := parseWire(t, v.Record, key, value); err != nil || got != v.Fields {
				t.Errorf("%s: read %+v, %v, want %+v", v.ID, got, err, v.Fields)
			}
		}
	}
}

func TestVectorsOfOddRecords(t *testing.T) {
	type given struct {
		Record string  `json:"record"`
		Key    *string `json:"key_hex"`
		Value  *string `json:"value_hex"`
	}
	bytesOf := func(text *string) []byte {
		if text == nil {
			return nil
		}
		b, err := hex.DecodeString(*text)
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{}, b...) // empty is not null
	}
	for _, v := range vectors[given, wireRecord](t, "wire/odd.json") {
		got, err := parseWire(t, v.Given.Record, bytesOf(v.Given.Key), bytesOf(v.Given.Value))
		switch {
		case errors.Is(err, mm2.ErrSchema):
			got.Error = "schema"
		case errors.Is(err, mm2.ErrNull):
			got.Error = "null"
		case err != nil:
			t.Errorf("%s: %v", v.ID, err)
		}
		if got != v.Expect {
			t.Errorf("%s: %+v, want %+v", v.ID, got, v.Expect)
		}
	}
}

// TestRecordVersion: a version that does not exist yet is read, and can be seen.
func TestRecordVersion(t *testing.T) {
	for value, want := range map[string]int16{"": 0, "\x00": 0, "\x00\x00": 0, "\x00\x05rest": 5, "\xff\xff": -1} {
		if got := mm2.RecordVersion([]byte(value)); got != want {
			t.Errorf("version of %q is %d, want %d", value, got, want)
		}
	}
}

// TestTextsThatDoNotFit: a length has two bytes, and their highest bit is a sign.
func TestTextsThatDoNotFit(t *testing.T) {
	fits, long := strings.Repeat("x", math.MaxInt16), strings.Repeat("x", math.MaxInt16+1)
	encoders := map[string]func(text string) ([]byte, []byte, error){
		"topic of a sync":       func(s string) ([]byte, []byte, error) { return mm2.OffsetSync{Topic: s}.Encode() },
		"group":                 func(s string) ([]byte, []byte, error) { return mm2.Checkpoint{Group: s}.Encode() },
		"topic of a checkpoint": func(s string) ([]byte, []byte, error) { return mm2.Checkpoint{Topic: s}.Encode() },
		"metadata":              func(s string) ([]byte, []byte, error) { return mm2.Checkpoint{Metadata: s}.Encode() },
		"source":                func(s string) ([]byte, []byte, error) { return mm2.Heartbeat{Source: s}.Encode() },
		"target":                func(s string) ([]byte, []byte, error) { return mm2.Heartbeat{Target: s}.Encode() },
	}
	for name, encode := range encoders {
		if _, _, err := encode(fits); err != nil {
			t.Errorf("%s of %d bytes: %v", name, len(fits), err)
		}
		key, value, err := encode(long)
		if !errors.Is(err, mm2.ErrTooLong) || key != nil || value != nil {
			t.Errorf("%s of %d bytes: %x %x %v", name, len(long), key, value, err)
		}
	}
}

// TestLengthsAreSigned: 0x8000 is no length, even if so many bytes are there.
func TestLengthsAreSigned(t *testing.T) {
	value := append(make([]byte, 18), 0x80, 0)
	value = append(value, make([]byte, 0x8000)...)
	if c, err := mm2.ParseCheckpoint([]byte("\x00\x01g\x00\x01t\x00\x00\x00\x00"), value); !errors.Is(err, mm2.ErrSchema) {
		t.Errorf("%d bytes of metadata, %v", len(c.Metadata), err)
	}
}

// FuzzWire: no bytes make a parser panic; what it returns is written to the bytes
// that it was read from, less what it is told to overlook.
func FuzzWire(f *testing.F) {
	f.Add([]byte("\x00\x01t\x00\x00\x00\x02"), []byte("\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04"))
	f.Add([]byte("\x00\x01g\x00\x01t\x00\x00\x00\x02"), []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04\x00\x01mrest"))
	f.Add([]byte("\x00\x01A\x00\x01B"), []byte("\x00\x07\x00\x00\x01\x8b\xcf\xe5\x68\x00"))
	f.Add([]byte("\xff\xff"), []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		for _, kind := range []string{"offset_sync", "checkpoint", "heartbeat"} {
			r, err := parseWire(t, kind, key, value)
			if err != nil {
				if r != (wireRecord{}) || !errors.Is(err, mm2.ErrSchema) && !errors.Is(err, mm2.ErrNull) {
					t.Errorf("%s: %+v, %v", kind, r, err)
				}
				continue
			}
			k, v, err := r.encode(t, kind)
			if errors.Is(err, mm2.ErrTooLong) && len(key)+len(value) > math.MaxInt16/3 {
				continue // U+FFFD has three bytes, for one that is wrong
			}
			if again, parseErr := parseWire(t, kind, k, v); err != nil || parseErr != nil || again != r {
				t.Errorf("%s: %+v, then %+v, %v, %v", kind, r, again, err, parseErr)
			}
			if kind != "offset_sync" && bytes.HasPrefix(value, []byte{0, 0}) || kind == "offset_sync" {
				wantPrefix(t, kind, r, key, k)
				wantPrefix(t, kind, r, value, v)
			}
		}
	})
}

// wantPrefix checks that bytes begin with what their content encodes to, unless
// a text in them was no UTF-8.
func wantPrefix(t *testing.T, kind string, r wireRecord, read, written []byte) {
	t.Helper()
	all, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(all), `\ufffd`) && !bytes.ContainsRune(all, '�') && !bytes.HasPrefix(read, written) {
		t.Errorf("%s: read %x, written %x", kind, read, written)
	}
}
