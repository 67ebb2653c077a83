package mm2

import (
	"fmt"

	"apograph/internal/javaprops"
)

// providers returns the config providers of the file, and reports what cannot be
// used of them.
func (c *Config) providers(options ConfigOptions) *javaprops.Providers {
	made, problems := javaprops.NewProviders(c.file.Map(), options.LookupEnv)
	for _, p := range problems {
		e, _ := c.file.Get(p.Key)
		kind := ProviderFailed
		if p.Custom {
			kind = ProviderRefused
		}
		c.report(Problem{Kind: kind, Level: LevelError, At: e.ValueAt, Key: p.Key, Message: p.Error()})
	}
	return made
}

// variables replaces the variables of a setting. One that a known provider cannot
// resolve is refused: MirrorMaker 2 would go on with its text, as a password, say.
func (c *Config) variables(s *Setting, providers *javaprops.Providers, keep bool) {
	found := javaprops.Variables(s.Value)
	if len(found) == 0 {
		return
	}
	s.Secret = true
	if keep {
		return
	}
	var value string
	value, found = providers.Expand(s.Value)
	for _, v := range found {
		at := s.ValueAt(v.Start)
		switch {
		case !v.Known:
			s.Unresolved = true
			shown := v.String()
			if javaprops.Secret(s.Key) {
				shown = "what looks like a variable" // and may be part of a password
			}
			c.report(Problem{Kind: ProviderUnknown, Level: LevelWarning, At: at, Key: s.Key, MM2: "does the same",
				Message:    shown + " stays as it is: config.providers names no such provider, or it has no class",
				Suggestion: "config.providers=NAME and config.providers.NAME.class=..."})
		case v.Err != nil:
			s.Unresolved = true
			c.report(Problem{Kind: ProviderFailed, Level: LevelError, At: at, Key: s.Key, Message: fmt.Sprintf("%v: %v", v, v.Err),
				MM2: "uses the text of the variable where the key is not there"})
		default:
			s.Provided = true
		}
	}
	s.Value = value
}
