package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// configFlags returns the flags of a configuration in a file. over is -X, which
// wins over the file.
func configFlags(over cli.Flag) []cli.Flag {
	return []cli.Flag{
		stringFlag("config", "take clusters, flows and settings from an mm2.properties `FILE` as MirrorMaker 2 has it"),
		listFlag("flow", "of the flows of the file only `A->B`, may be repeated (default all that are enabled)"),
		over,
	}
}

// A configuration is what a file says, with what the command line says better.
type configuration struct {
	file  *mm2.Config
	path  string
	flows []mm2.FlowConfig // that the command is about, in order of the file; at least one
}

// configuration returns the configuration that the command line names; nil if it
// is to do without.
func (inv *invocation) configuration() (*configuration, error) {
	path := inv.String("config")
	if path == "" {
		return nil, inv.refuseWithoutConfig()
	}
	if other, ok := inv.adHoc(); ok {
		typed := inv.line.has(other)
		switch {
		case inv.line.has("config") && !typed:
			// What is typed wins over the environment.
		case !inv.line.has("config") && typed:
			return nil, nil
		default:
			return nil, usagef("--config and --%s: the file says which clusters there are", other).
				withHint("-X ALIAS.bootstrap.servers=HOST:PORT wins over what the file says")
		}
	}
	c := &configuration{path: path}
	if err := c.read(inv); err != nil {
		return nil, err
	}
	return c, c.choose(inv.StringSlice("flow"))
}

// refuseWithoutConfig refuses flags that have a meaning only with a configuration.
func (inv *invocation) refuseWithoutConfig() error {
	switch {
	case inv.line.has("flow"):
		return usagef("--flow needs --config").withHint("flows stand in a configuration file")
	case inv.line.has("X") && inv.row.flag("source-bootstrap-server") == nil:
		return usagef("-X needs --config").withHint("it sets a key of a configuration file")
	}
	return nil
}

// adHoc returns a flag that describes a cluster by itself; one that is typed
// before one of the environment.
func (inv *invocation) adHoc() (flag string, ok bool) {
	for _, side := range []string{"source", "target"} {
		for _, what := range []string{"bootstrap-server", "command-config", "alias"} {
			name := side + "-" + what
			switch {
			case inv.line.has(name):
				return name, true
			case inv.row.flag(name) != nil && inv.String(name) != "":
				flag, ok = name, true
			}
		}
	}
	return flag, ok
}

// read reads the file. Nothing of the flows that it describes is looked at
// before it is right as a whole.
func (c *configuration) read(inv *invocation) error {
	data, err := readConfiguration(c.path)
	if err != nil {
		return err
	}
	file, err := javaprops.Parse(c.path, data)
	if err != nil {
		return &configError{path: c.path, err: err}
	}
	over, err := inv.overrides()
	if err != nil {
		return err
	}
	for _, layer := range over {
		file = file.With(layer, func(key string) bool { return isShadow(key, layer) })
	}
	if c.file, err = mm2.ParseConfig(file, mm2.ConfigOptions{}); err != nil {
		if err = c.withoutClients(err); err != nil {
			return &configError{path: c.path, err: err}
		}
	}
	for _, p := range c.file.Problems() {
		if p.At.File == overX && isTypingError(p.Kind) {
			return &configError{path: c.path, err: &mm2.ConfigError{Problems: []mm2.Problem{p}}}
		}
	}
	return nil
}

// withoutClients returns what an error says beside that variables of clients have no
// value: not every command needs every client, nor whoever runs it its password. One
// that is needed refuses them, see [invocation.flowCluster].
func (c *configuration) withoutClients(err error) error {
	var bad *mm2.ConfigError
	if !errors.As(err, &bad) {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(bad.Problems), func(p mm2.Problem) bool { return p.Kind == mm2.ProviderFailed && c.file.OfClients(p.Key) })
	if len(rest) == 0 {
		return nil
	}
	return &mm2.ConfigError{Problems: rest}
}

// isTypingError reports whether a problem is that a key has no effect, or its value
// none. On a command line that is a typing error, which must not mean the default.
func isTypingError(kind mm2.ProblemKind) bool {
	switch kind {
	case mm2.UnknownKey, mm2.UnknownAlias, mm2.WrongLevel, mm2.FlowBlank, mm2.FlowSelf, mm2.BadValue:
		return true
	}
	return false
}

// fileError returns the usage error for a file that cannot be read.
func fileError(flag string, err error) error {
	var missing *fs.PathError
	if errors.As(err, &missing) {
		return usagef("%s: %s: %v", flag, missing.Path, missing.Err)
	}
	return usagef("%s: %v", flag, err)
}

// A configError says that a configuration is refused. Nothing was attempted.
type configError struct {
	path string
	err  error // an [*mm2.ConfigError], or an [*mm2.ValueError]
}

// Error says where and what, a line each; of what stands in no file also by which
// key.
func (e *configError) Error() string {
	var bad *mm2.ConfigError
	if !errors.As(e.err, &bad) {
		return e.err.Error()
	}
	var lines []string
	for _, p := range bad.Problems {
		if p.At.File == "" {
			p.At.File = e.path
		}
		if p.At.IsZero() && p.Key != "" && !strings.Contains(p.Message, p.Key) {
			p.Message = p.Key + ": " + p.Message
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

func (e *configError) Unwrap() error { return e.err }

// Hint returns the advice that goes with the error.
func (e *configError) Hint() string {
	return fmt.Sprintf("`apograph lint %s` says what else is wrong with it, and why", e.path)
}

// choose takes the flows that --flow names, or all that are enabled.
func (c *configuration) choose(names []string) error {
	enabled := c.file.Flows()
	if len(names) == 0 {
		c.flows = enabled
		return nil
	}
	asked := map[string]bool{}
	for _, name := range names {
		name = strings.ReplaceAll(name, " ", "")
		source, target, _ := strings.Cut(name, "->")
		f, ok := c.file.Flow(source, target)
		switch {
		case !ok:
			return usagef("--flow %s: %s has no such flow", quoteArg(name), c.path).withHint("its flows are %s", flowNamesText(enabled))
		case !f.Enabled():
			return usagef("--flow %s: the flow is not enabled", quoteArg(name)).withHint("%s.enabled=true in %s, or with -X, enables it", f, c.path)
		}
		asked[f.String()] = true
	}
	for _, f := range enabled {
		if asked[f.String()] {
			c.flows = append(c.flows, f)
		}
	}
	return nil
}

func flowNamesText(flows []mm2.FlowConfig) string {
	var names []string
	for _, f := range flows {
		names = append(names, "'"+f.String()+"'")
	}
	return strings.Join(names, ", ")
}

// one returns the only flow, for commands that are about one.
func (c *configuration) one(inv *invocation) (mm2.FlowConfig, error) {
	if len(c.flows) > 1 {
		return mm2.FlowConfig{}, usagef("%s is about one flow, and %s has %d", inv.row.path, c.path, len(c.flows)).
			withHint("choose one with --flow: %s", flowNamesText(c.flows))
	}
	return c.flows[0], nil
}

// ledgers returns the path of each flow's ledger: in apograph.ledger.dir, unless
// --ledger names another, for one flow alone.
func (c *configuration) ledgers(inv *invocation) ([]string, error) {
	if path := inv.String("ledger"); path != "" {
		if len(c.flows) > 1 {
			return nil, usagef("--ledger names one ledger, and there are %d flows", len(c.flows)).
				withHint("choose a flow with --flow, or name a directory: apograph.ledger.dir in %s, or with -X; the flows are %s", c.path, flowNamesText(c.flows))
		}
		return []string{path}, checkOwner(inv.Context.Context, path, c.flows[0])
	}
	var paths []string
	for _, f := range c.flows {
		path := filepath.Join(c.file.LedgerDir(), f.LedgerName())
		if err := checkOwner(inv.Context.Context, path, f); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// checkOwner refuses a ledger of another flow. One that cannot be asked is left to
// the command, which says why.
func checkOwner(ctx context.Context, path string, f mm2.FlowConfig) error {
	info, err := readLedgerInfo(ctx, path)
	if err != nil || info.Flow.Source.Alias == f.Source && info.Flow.Target.Alias == f.Target {
		return nil
	}
	return usagef("ledger %s is of the flow %s, not of %s", path, info.Flow, f)
}
