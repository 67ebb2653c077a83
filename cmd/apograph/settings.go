package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"apograph/internal/connect"
	"apograph/internal/javaprops"
)

// A setting is a key that -X may set. Keys are those of a configuration file.
type setting struct {
	key   string
	usage string // one line; the default in parentheses
}

// settingFlag returns -X for a command that knows these settings where there is
// no configuration file, see [invocation.settings]. It has no variable: each
// setting would need its own.
func settingFlag(known []setting) cli.Flag {
	usage := "set `KEY=VALUE`, may be repeated; with --config KEY is any of the file, such as topics or A->B.topics; else source.KEY and target.KEY are those of a Java client"
	for i, s := range known {
		if i == 0 {
			usage += ", and there are"
		} else {
			usage += ";"
		}
		usage += " " + s.key + ": " + s.usage
	}
	return &cli.StringSliceFlag{Name: "X", KeepSpace: true, Usage: usage}
}

// keyValues returns what -X sets, by key.
func (inv *invocation) keyValues() (map[string]string, error) {
	values := map[string]string{}
	for _, text := range inv.StringSlice("X") {
		key, value, ok := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return nil, usagef("-X %s is not KEY=VALUE", quoteArg(text))
		}
		if old, twice := values[key]; twice && old != value {
			if isSecretKey(key) {
				return nil, usagef("-X sets %s twice", key)
			}
			return nil, usagef("-X sets %s twice: %s and %s", key, quoteArg(old), quoteArg(value))
		}
		values[key] = value
	}
	return values, nil
}

// isSecretKey reports whether the value of a key must not be shown, nor that of
// one that is misspelt.
func isSecretKey(key string) bool {
	name := key[strings.LastIndexByte(key, '>')+1:]
	if _, after, ok := strings.Cut(name, "."); ok && javaprops.Secret(connect.Nearest(after)) {
		return true
	}
	return javaprops.Secret(key) || javaprops.Secret(connect.Nearest(key))
}

// settings returns what -X sets of the command itself, by key, where there is no
// configuration file. A key that is not known is wrong use: a typing error must
// not mean the default.
func (inv *invocation) settings(known []setting) (map[string]string, error) {
	values, err := inv.keyValues()
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, s := range known {
		keys = append(keys, s.key)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if strings.HasPrefix(key, "source.") || strings.HasPrefix(key, "target.") {
			delete(values, key) // of a client
			continue
		}
		if contains(known, key) {
			continue
		}
		err := usagef("-X: unknown key %s", quoteArg(key))
		if best, ok := nearest(key, keys); ok {
			return nil, err.withHint("did you mean %s?", best)
		}
		return nil, err.withHint("known keys: %s", strings.Join(append(keys, "source.KEY", "target.KEY"), ", "))
	}
	return values, nil
}

func contains(known []setting, key string) bool {
	for _, s := range known {
		if s.key == key {
			return true
		}
	}
	return false
}
