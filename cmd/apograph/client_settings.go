package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"apograph/internal/connect"
	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// clientSettings returns the client properties that the command line gives to one
// cluster, the weakest first: those of --SIDE-command-config, and of -X.
func clientSettings(inv *invocation, side string) ([]connect.Setting, error) {
	var settings []connect.Setting
	flag := side + "-command-config"
	if path := inv.String(flag); path != "" {
		var err error
		if settings, err = readClientFile("--"+flag, path); err != nil {
			return nil, err
		}
	}
	values, err := inv.keyValues()
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if name, ok := strings.CutPrefix(key, side+"."); ok {
			settings = append(settings, connect.Setting{Key: name, Value: values[key], Where: overX + " " + key})
		}
	}
	return settings, nil
}

// readClientFile reads the properties of a client, and has the config providers
// that they name replace variables, as Kafka's clients do (KIP-421).
func readClientFile(flag, path string) ([]connect.Setting, error) {
	file, err := javaprops.Read(path)
	if err != nil {
		return nil, fileError(flag, err)
	}
	providers, problems := javaprops.NewProviders(file.Map(), os.LookupEnv)
	var errs []error
	for _, p := range problems {
		e, _ := file.Get(p.Key)
		errs = append(errs, usagef("%v: %v", e.At, p))
	}
	var settings []connect.Setting
	for _, e := range file.Last() {
		value, found := providers.Expand(e.Value)
		for _, v := range found {
			if v.Known && v.Err != nil {
				errs = append(errs, usagef("%v: %s: %v: %v", e.At, e.Key, v, v.Err))
			}
		}
		settings = append(settings, connect.Setting{Key: e.Key, Value: value, Where: e.At.String()})
	}
	return settings, errors.Join(errs...)
}

// flowSettings returns client properties of a configuration, and which of their
// values must not be shown although their key does not say so.
func flowSettings(from map[string]mm2.Setting) (settings []connect.Setting, secrets []string) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		s := from[key]
		where := s.Origin.At.String()
		if s.Origin.Key != key {
			where = strings.TrimSpace(where + " " + s.Origin.Key)
		}
		settings = append(settings, connect.Setting{Key: key, Value: s.Value, Where: where})
		if s.Secret && !javaprops.Secret(key) {
			secrets = append(append(secrets, s.Value), s.List()...)
		}
	}
	return settings, secrets
}

// cluster makes a cluster of client properties, and says what there is to say
// about them, once.
func (inv *invocation) cluster(alias string, settings []connect.Setting, secrets ...string) (connect.Cluster, error) {
	c, notices, err := connect.FromProperties(alias, settings)
	if err != nil {
		return c, withoutSecrets(err, secrets)
	}
	for _, n := range notices {
		if n.Level == connect.Warning {
			inv.warnOnce(blank(fmt.Sprintf("cluster %s: %s: %s: %s", alias, n.Where, n.Key, n.Text), secrets))
		}
	}
	return c, nil
}

// withoutSecrets takes values out of the text of an error of client properties.
func withoutSecrets(err error, secrets []string) error {
	var bad *connect.ConfigError
	if len(secrets) == 0 || !errors.As(err, &bad) {
		return err
	}
	blanked := &connect.ConfigError{Alias: bad.Alias}
	for _, p := range bad.Problems {
		p.Text, p.Suggestion = blank(p.Text, secrets), blank(p.Suggestion, secrets)
		blanked.Problems = append(blanked.Problems, p)
	}
	return blanked
}

// blank takes values out of a text, quoted or not.
func blank(text string, secrets []string) string {
	for _, s := range secrets {
		if s = strings.TrimSpace(s); s != "" {
			quoted := strconv.Quote(s)
			text = strings.ReplaceAll(strings.ReplaceAll(text, s, hidden), quoted[1:len(quoted)-1], hidden)
		}
	}
	return text
}

// warnOnce tells what is odd, unless it has been told.
func (inv *invocation) warnOnce(line string) {
	if inv.warned[line] {
		return
	}
	inv.warned[line] = true
	inv.stderr.warn(line)
}
