package connect

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"apograph/internal/spelling"
)

// A Type is one of Kafka's types of a property (ConfigDef.Type).
type Type string

// The types that client properties have.
const (
	String   Type = "string"
	Int      Type = "int"    // 32 bits
	Long     Type = "long"   // 64 bits
	Short    Type = "short"  // 16 bits
	Double   Type = "double" // a floating-point number
	Bool     Type = "boolean"
	List     Type = "list" // separated by commas, blanks around them ignored
	Class    Type = "class"
	Password Type = "password"
)

// Clients are the Java clients that know a property.
type Clients uint8

// The Java clients.
const (
	Producer Clients = 1 << iota
	Consumer
	Admin

	everyone = Producer | Consumer | Admin
)

// A Treatment says what becomes of a client property here.
type Treatment uint8

const (
	// Mapped: it does what it does in a Java client.
	Mapped Treatment = iota + 1
	// Ignored: it is accepted, and changes nothing, for the reason that is given.
	Ignored
	// Refused: it cannot be obeyed, and to leave it out would be wrong.
	Refused
	// Elsewhere: the client does not need it; other parts of the product read it.
	Elsewhere
)

// A Key is a client property of Kafka.
type Key struct {
	Name      string
	Type      Type
	Default   string // of Kafka 4.3.1; empty if there is none
	Clients   Clients
	Treatment Treatment
	Reason    string // why it is ignored or refused
}

// Keys returns all client properties, sorted by name.
func Keys() iter.Seq[Key] { return slices.Values(keys) }

// Lookup returns a client property by its name, which is case-sensitive.
func Lookup(name string) (Key, bool) {
	i, ok := slices.BinarySearchFunc(keys, name, func(k Key, name string) int { return strings.Compare(k.Name, name) })
	if !ok {
		return Key{}, false
	}
	return keys[i], true
}

// Nearest returns the client property whose name is most like the given one;
// empty if none is like it.
func Nearest(name string) string {
	best, distance := "", max(2, len(name)/4)+1
	name = strings.ToLower(name)
	for _, k := range keys {
		if spelling.AtLeast(name, k.Name) >= distance {
			continue
		}
		if d := spelling.Distance([]byte(name), []byte(k.Name)); d < distance {
			best, distance = k.Name, d
		}
	}
	return best
}

// Check returns what is wrong with a value of the key's type, as ConfigDef.parseType
// sees it: blanks around it do not count. The error holds the value, except of
// passwords, of which every value is of the type.
func (k Key) Check(value string) error {
	value = strings.TrimSpace(value)
	var err error
	switch k.Type {
	case Int:
		_, err = strconv.ParseInt(value, 10, 32)
	case Long:
		_, err = strconv.ParseInt(value, 10, 64)
	case Short:
		_, err = strconv.ParseInt(value, 10, 16)
	case Double:
		_, err = strconv.ParseFloat(value, 64)
	case Bool:
		if !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
			err = strconv.ErrSyntax
		}
	case String, List, Class, Password:
	}
	if err != nil {
		return fmt.Errorf("%q is not of type %s", value, k.Type)
	}
	return nil
}
