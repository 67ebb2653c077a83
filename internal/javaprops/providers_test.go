package javaprops_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apograph/internal/javaprops"
)

const providerClasses = "org.apache.kafka.common.config.provider."

func TestVariables(t *testing.T) {
	tests := map[string]string{
		"plain $ {a} ${a}":        "",
		"${env:X}":                "env||X",
		"${file:/p/q:key}":        "file|/p/q|key",
		"a${e:X}b${e:Y}c":         "e||X e||Y",
		"${file:a:b:c}":           "file|a|b:c",
		"${a${env:X}":             "a${env||X",
		"${env:}":                 "env||",
		"${:x}":                   "||x",
		"${env:X":                 "",
		"${dir:/run/secrets:u.p}": "dir|/run/secrets|u.p",
	}
	for value, want := range tests {
		var got []string
		for _, v := range javaprops.Variables(value) {
			got = append(got, v.Provider+"|"+v.Path+"|"+v.Key)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("Variables(%q) = %q, want %q", value, got, want)
		}
	}
}

// secrets makes a file of properties and a directory of files, and returns the
// settings that name all three providers.
func secrets(t *testing.T) (dir string, settings map[string]string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"a.properties": "user = me\npw = \u00e4\\\\x\n", "in/token": "abc\n", "in/sub/x": "x"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, map[string]string{
		"config.providers":            "file, env,dir,unset",
		"config.providers.file.class": providerClasses + "FileConfigProvider",
		"config.providers.env.class":  providerClasses + "EnvVarConfigProvider",
		"config.providers.dir.class":  providerClasses + "DirectoryConfigProvider",
	}
}

func environment(name string) (string, bool) {
	value, ok := map[string]string{"USER": "u", "HOME": "h", "NESTED": "${env:USER}"}[name]
	return value, ok
}

func TestExpand(t *testing.T) {
	dir, settings := secrets(t)
	settings["config.providers.env.param.allowlist.pattern"] = "U.*|NEST.*|OME"
	settings["config.providers.dir.param.allowed.paths"] = dir + "/in"
	p, problems := javaprops.NewProviders(settings, environment)
	if problems != nil {
		t.Fatal(problems)
	}
	tests := []struct {
		name, value, want string
		wrong             int // variables with an error
	}{
		{"of the environment", "x${env:USER}y${env:USER}", "xuyu", 0},
		{"one pass", "${env:NESTED}", "${env:USER}", 0},
		{"of a file, in UTF-8", "${file:" + dir + "/a.properties:pw}", "\u00e4\\x", 0},
		{"of a directory, with its line end", "${dir:" + dir + "/in:token}", "abc\n", 0},
		{"unknown provider", "${vault:a:b}${env:USER}", "${vault:a:b}u", 0},
		{"provider without a class", "${unset:a}", "${unset:a}", 0},
		{"no such variable", "${env:UNKNOWN}.", "${env:UNKNOWN}.", 1},
		{"variable that is not allowed", "${env:HOME}", "${env:HOME}", 1},
		{"environment with a path", "${env:p:USER}", "${env:p:USER}", 1},
		{"no such key", "${file:" + dir + "/a.properties:none}", "${file:" + dir + "/a.properties:none}", 1},
		{"no such file", "${file:" + dir + "/b:none}", "${file:" + dir + "/b:none}", 1},
		{"a directory is no file", "${dir:" + dir + "/in:sub}", "${dir:" + dir + "/in:sub}", 1},
		{"outside of the allowed paths", "${dir:" + dir + "/in/..:a.properties}", "${dir:" + dir + "/in/..:a.properties}", 1},
		{"out of the directory", "${dir:" + dir + "/in/sub:../token}", "${dir:" + dir + "/in/sub:../token}", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, variables := p.Expand(tt.value)
			wrong := 0
			for _, v := range variables {
				if v.Err != nil {
					wrong++
				}
			}
			if got != tt.want || wrong != tt.wrong {
				t.Errorf("Expand(%q) = %q with %d errors, want %q, %d; %v", tt.value, got, wrong, tt.want, tt.wrong, variables)
			}
		})
	}
}

func TestProvidersThatCannotBeUsed(t *testing.T) {
	tests := []struct {
		name, key, value string
		custom           bool
	}{
		{"code of one's own", "config.providers.file.class", "my.Vault", true},
		{"the class without its package", "config.providers.file.class", "FileConfigProvider", true},
		{"a path that is relative", "config.providers.file.param.allowed.paths", "in", false},
		{"a path that is not there", "config.providers.dir.param.allowed.paths", "/no/such/path", false},
		{"no expression", "config.providers.env.param.allowlist.pattern", "(", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, settings := secrets(t)
			settings[tt.key] = tt.value
			_, problems := javaprops.NewProviders(settings, environment)
			if len(problems) != 1 || problems[0].Key != tt.key || problems[0].Custom != tt.custom {
				t.Errorf("problems %v, want one of %s", fmt.Sprint(problems), tt.key)
			}
		})
	}
}
