package mm2

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"apograph/internal/javaprops"
)

// trim is String.trim of Java: it takes off blanks and control characters.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

// Bool returns the value as ConfigDef takes a boolean: true or false, in any
// case, blanks around it left out. The error is a [*ValueError].
func (s Setting) Bool() (bool, error) {
	switch value := trim(s.Value); {
	case strings.EqualFold(value, "true"):
		return true, nil
	case strings.EqualFold(value, "false"):
		return false, nil
	}
	return false, s.wrong(0, "neither true nor false")
}

// Int returns the value as a number of that many bits: 16, 32 or 64. The error
// is a [*ValueError].
func (s Setting) Int(bits int) (int64, error) {
	n, err := strconv.ParseInt(trim(s.Value), 10, bits)
	if err != nil {
		return 0, s.wrong(0, "no whole number of %d bits", bits)
	}
	return n, nil
}

// Duration returns the value as a number of units. The error is a
// [*ValueError].
func (s Setting) Duration(unit time.Duration) (time.Duration, error) {
	n, err := s.Int(64)
	if err != nil {
		return 0, err
	}
	if n > math.MaxInt64/int64(unit) || n < math.MinInt64/int64(unit) {
		return 0, s.wrong(0, "longer than 292 years")
	}
	return time.Duration(n) * unit, nil
}

// Interval returns the value as [ParseInterval] takes it. The error is a
// [*ValueError].
func (s Setting) Interval() (time.Duration, error) {
	d, err := ParseInterval(s.Value)
	if err != nil {
		return 0, s.wrong(0, "%v", err)
	}
	return d, nil
}

// ParseInterval reads a time as Kafka's settings have it, in milliseconds, or with
// a unit, such as 30s. It is above zero. The error does not repeat the text.
func ParseInterval(text string) (time.Duration, error) {
	text = trim(text)
	d, err := time.ParseDuration(text)
	if ms, notANumber := strconv.ParseInt(text, 10, 64); notANumber == nil {
		d, err = time.Duration(ms)*time.Millisecond, nil
		if ms > math.MaxInt64/int64(time.Millisecond) {
			d = 0
		}
	}
	if err != nil || d <= 0 {
		return 0, errors.New("no interval: it is a number of milliseconds above zero, or has a unit, such as 30s")
	}
	return d, nil
}

// An Element is one of a list, with its place.
type Element struct {
	Text  string
	Index int // byte of the list's value
	At    javaprops.Position
}

// Elements returns the elements of a list as ConfigDef splits it: at commas,
// blanks around them left out, empty ones and duplicates kept. A list of nothing
// but blanks is empty.
func (s Setting) Elements() []Element {
	if trim(s.Value) == "" {
		return nil
	}
	var all []Element
	at := 0
	for part := range strings.SplitSeq(s.Value, ",") {
		text := trim(part)
		index := at + strings.Index(part, text)
		all = append(all, Element{text, index, s.ValueAt(index)})
		at += len(part) + 1
	}
	return all
}

// List returns the elements that count: those of [Setting.Elements] without
// empty ones and without what stands before already.
func (s Setting) List() []string {
	var list []string
	seen := map[string]bool{"": true}
	for _, e := range s.Elements() {
		if !seen[e.Text] {
			seen[e.Text] = true
			list = append(list, e.Text)
		}
	}
	return list
}

// check returns what ConfigDef finds wrong with a value for a key of that kind;
// nil if it is right.
func (k Key) check(s Setting) error {
	var err error
	switch k.Type {
	case BoolKey:
		_, err = s.Bool()
	case IntKey:
		err = k.checkNumber(s, 32)
	case ShortKey:
		err = k.checkNumber(s, 16)
	case LongKey:
		err = k.checkNumber(s, 64)
	case IntervalKey:
		_, err = s.Interval()
	case ListKey:
		for _, e := range s.Elements() {
			if !k.allows(e.Text) {
				return s.wrong(e.Index, "none of %s", strings.Join(k.Allowed, ", "))
			}
		}
	default:
		if !k.allows(trim(s.Value)) {
			return s.wrong(0, "none of %s", strings.Join(k.Allowed, ", "))
		}
	}
	return err
}

func (k Key) checkNumber(s Setting, bits int) error {
	n, err := s.Int(bits)
	if err == nil && k.AtLeast && n < k.Min {
		return s.wrong(0, "below %d", k.Min)
	}
	return err
}

func (k Key) allows(value string) bool {
	if len(k.Allowed) == 0 {
		return true
	}
	for _, a := range k.Allowed {
		if a == value || k.AnyCase && strings.EqualFold(a, value) {
			return true
		}
	}
	return false
}
