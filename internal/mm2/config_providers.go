package mm2

import "apograph/internal/javaprops"

func (c *Config) providers(ConfigOptions) *javaprops.Providers { return nil }

func (c *Config) variables(*Setting, *javaprops.Providers, bool) {}
