package main

import (
	"strings"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// overX is the name of the layer of a configuration that -X makes.
const overX = "-X"

// overrides returns what the command line says instead of a configuration's file,
// the weakest first: flags that a key of the file stands for, and -X.
func (inv *invocation) overrides() ([]*javaprops.File, error) {
	var layers []*javaprops.File
	if inv.row.flag("policy") == nil { // elsewhere --topics only narrows what a flow has
		return inv.overX()
	}
	for _, x := range []struct{ flag, key, value string }{
		{"topics", "topics", strings.Join(inv.StringSlice("topics"), ",")},
		{"topics-exclude", "topics.exclude", strings.Join(inv.StringSlice("topics-exclude"), ",")},
		{"policy", mm2.PolicyKey, inv.String("policy")},
		{"start", startSetting, inv.String("start")},
	} {
		if x.value != "" {
			layers = append(layers, javaprops.New("--"+x.flag, map[string]string{x.key: x.value}))
		}
	}
	over, err := inv.overX()
	return append(layers, over...), err
}

func (inv *invocation) overX() ([]*javaprops.File, error) {
	values, err := inv.keyValues()
	if err != nil || len(values) == 0 {
		return nil, err
	}
	return []*javaprops.File{javaprops.New(overX, values)}, nil
}

// startSetting is the key of --start.
const startSetting = "apograph.start"

// isShadow reports whether a key of a file says for one flow, one cluster or one
// client what a layer says for more of them: it would win where the layer is to.
func isShadow(key string, layer *javaprops.File) bool {
	for _, e := range layer.Entries {
		switch {
		case strings.HasSuffix(key, "."+e.Key):
			return true
		case e.Key == startSetting && (strings.HasPrefix(key, startSetting+".") || strings.Contains(key, "."+startSetting+".")):
			return true
		case isShadowOfRole(key, e.Key):
			return true
		}
	}
	return false
}

// isShadowOfRole reports whether key is ALIAS.ROLE.NAME where layered is
// ALIAS.NAME.
func isShadowOfRole(key, layered string) bool {
	for _, role := range []string{".producer.", ".consumer.", ".admin."} {
		before, name, ok := strings.Cut(key, role)
		if ok && before+"."+name == layered {
			return true
		}
	}
	return false
}
