package lint

import (
	"fmt"
	"strconv"
	"strings"

	"apograph/internal/mm2"
)

// problems takes over what the configuration found by itself, each under its
// code. What is said of many keys in the same way is told once.
func (c *checker) problems() {
	folded := map[string][]mm2.Problem{}
	for _, p := range c.config.Problems() {
		if p.At.Line > c.file.Lines || p.Kind == mm2.NoClusters {
			continue // about clusters that are not there
		}
		if alias, ok := c.unknownAlias(p); ok {
			p.Kind, p.Message, p.Suggestion = mm2.UnknownAlias, fmt.Sprintf("clusters does not name %q", alias), ""
		}
		code := c.codeOf(p)
		switch {
		case c.file.BOM && p.At == c.file.Entries[0].At:
			code = "" // AP0109
		case (p.Kind == mm2.UnknownKey || p.Kind == mm2.UnknownAlias) && c.told(p.Key, "AP0404", "AP0409"):
			code = "" // it is no key, but half of a flow's
		case p.Level == mm2.LevelWarning && c.levels[code] == Error:
			code = "AP0305"
		}
		switch code {
		case "":
		case "AP0206", "AP0207", "AP0208":
			folded[code] = append(folded[code], p)
		default:
			c.add(code, p.At, p.Key, said(p), p.Suggestion)
		}
	}
	for _, code := range []string{"AP0206", "AP0207", "AP0208"} {
		if all := folded[code]; len(all) > 0 {
			c.fold(code, all)
		}
	}
}

// unknownAlias returns what stands in front of a key of clients where an alias
// should, if nobody knows the whole.
func (c *checker) unknownAlias(p mm2.Problem) (string, bool) {
	alias, rest, _ := strings.Cut(p.Key, ".")
	_, name := clientRole(rest)
	return alias, p.Kind == mm2.UnknownKey && takeApart(p.Key, c.aliases).level == topLevel && c.keys.ofClient(name)
}

// said returns the message of a problem, with what MirrorMaker 2 does if that is
// another thing.
func said(p mm2.Problem) string {
	if p.MM2 == "" {
		return p.Message
	}
	return p.Message + "; MirrorMaker 2: " + p.MM2
}

// fold tells problems of one kind in one finding, at the first of them.
func (c *checker) fold(code string, all []mm2.Problem) {
	var names []string
	told := map[string]bool{}
	for _, p := range all {
		if name := takeApart(p.Key, c.aliases).key; !told[name] {
			told[name] = true
			names = append(names, name)
		}
	}
	message := said(all[0])
	if len(names) > 1 {
		message = map[string]string{
			"AP0206": "apograph has no use for", "AP0207": "apograph copies every record once without",
			"AP0208": "apograph does better by itself what these are for:",
		}[code] + " " + strings.Join(names, ", ")
	}
	c.add(code, all[0].At, all[0].Key, message, "")
}

// codeOf returns the code of a problem; "" if there is a finding of our own about
// the same.
func (c *checker) codeOf(p mm2.Problem) string {
	switch p.Kind {
	case mm2.UnknownKey:
		if p.Suggestion != "" {
			return "AP0201"
		}
		return "AP0202"
	case mm2.UnknownAlias:
		if strings.Contains(p.Key, "->") {
			return "AP0403"
		}
		return "AP0410"
	case mm2.WrongLevel:
		if takeApart(p.Key, c.aliases).level == flowLevel {
			return "AP0205"
		}
		return "AP0204"
	case mm2.BetterKey:
		if strings.Contains(p.Key, "exactly.once") || strings.Contains(p.Key, "transaction.boundary") {
			return "AP0207"
		}
		return "AP0208"
	case mm2.RefusedKey:
		return refusedCode(takeApart(p.Key, c.aliases).key)
	case mm2.BadValue:
		return c.valueCode(p)
	}
	return kindCodes[p.Kind]
}

// kindCodes are the codes of the kinds of problems that have one each. Kinds
// about which there are findings of our own have none.
var kindCodes = map[mm2.ProblemKind]string{
	mm2.BadAlias: "AP0414", mm2.SharedLedger: "AP0415", mm2.EmptyElement: "AP0303", mm2.DoubleElement: "AP0302", mm2.NoFlow: "AP0405", mm2.NoBootstrap: "AP0406",
	mm2.OwnUnknownKey: "AP0209", mm2.OldKey: "AP0203", mm2.OldKeyShadowed: "AP0203", mm2.RemovedKey: "AP0203",
	mm2.FlowBlank: "AP0404", mm2.FlowSelf: "AP0409", mm2.FlowNotEnabled: "AP0402", mm2.FlowEnabledBlank: "AP0103", mm2.EnabledForAll: "AP0413",
	mm2.IgnoredKey:      "AP0206",
	mm2.ProviderRefused: "AP0304", mm2.ProviderUnknown: "AP0306", mm2.ProviderFailed: "AP0304",
	mm2.UnusedOfClient: "AP0610", mm2.SecurityOfClient: "AP0609",
	mm2.Conflict: "AP0328", mm2.IntervalTrap: "", // AP0321
}

// refusedCode returns the code of a key that is refused.
func refusedCode(key string) string {
	switch {
	case strings.HasPrefix(key, "transforms"), strings.HasPrefix(key, "predicates"):
		return "AP0220"
	case strings.Contains(key, ".converter"):
		return "AP0221"
	case strings.Contains(key, "interceptor"):
		return "AP0222"
	default:
		return "AP0223"
	}
}

// valueCode returns the code of a value that its key does not take.
func (c *checker) valueCode(p mm2.Problem) string {
	switch s := takeApart(p.Key, c.aliases); {
	case s.key == mm2.PolicySeparatorKey:
		return "" // AP0326, AP0330
	case s.key == mm2.PolicyClassKey:
		return "AP0223"
	case s.key == "use.defaults.from":
		return "AP0307"
	case c.isWhole(p.Key) && strings.HasSuffix(s.key, ".interval.seconds"):
		return "" // AP0320
	case isPatternKey(s.key):
		return "" // AP0310 to AP0312
	case s.level == flowLevel && s.key == "enabled":
		return "AP0407"
	case s.key == mm2.PolicyKey, s.key == mm2.PolicyMapKey:
		return "" // AP0505
	}
	return "AP0301"
}

// isWhole reports whether the value of a whole key is a number.
func (c *checker) isWhole(key string) bool {
	e, _ := c.file.Get(key)
	_, err := strconv.ParseInt(strings.TrimSpace(e.Value), 10, 64)
	return err == nil
}
