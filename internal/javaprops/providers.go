package javaprops

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// variable is what Kafka takes for a variable: ${provider:[path:]key}
// (ConfigTransformer.DEFAULT_PATTERN).
var variable = regexp.MustCompile(`\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}`)

// A Variable is one ${provider:[path:]key} of a value.
type Variable struct {
	Start, End          int // bytes of the value, as it stands in the file
	Provider, Path, Key string

	// Known: config.providers names the provider. Kafka leaves other variables as
	// they stand.
	Known bool
	// Err is why a known provider gave nothing. Kafka leaves the variable as it
	// stands if the key is not there.
	Err error
}

func (v Variable) String() string {
	if v.Path == "" {
		return fmt.Sprintf("${%s:%s}", v.Provider, v.Key)
	}
	return fmt.Sprintf("${%s:%s:%s}", v.Provider, v.Path, v.Key)
}

// Variables returns the variables of a value.
func Variables(value string) []Variable {
	var all []Variable
	for _, at := range variable.FindAllStringSubmatchIndex(value, -1) {
		group := func(n int) string {
			if at[2*n] < 0 {
				return ""
			}
			return value[at[2*n]:at[2*n+1]]
		}
		all = append(all, Variable{Start: at[0], End: at[1], Provider: group(1), Path: group(3), Key: group(4)})
	}
	return all
}

// A ProviderError reports a setting of a config provider that cannot be used.
type ProviderError struct {
	Key    string // in the file
	Reason string
	// Custom: the class is none of Kafka's own.
	Custom bool
}

func (e *ProviderError) Error() string { return e.Key + ": " + e.Reason }

// Providers are Kafka's config providers FileConfigProvider, EnvVarConfigProvider
// and DirectoryConfigProvider under the names that a configuration gives them. A
// file is read once. They are not safe for concurrent use.
type Providers struct {
	by    map[string]*provider
	files map[string]fileData
}

type fileData struct {
	values map[string]string
	err    error
}

// A provider looks up a key at a path.
type provider struct {
	find    func(path, key string) (string, error)
	allowed []string       // directories and files; none: all
	names   *regexp.Regexp // variables of the environment; nil: all
	env     func(string) (string, bool)
}

const providerPackage = "org.apache.kafka.common.config.provider."

// NewProviders returns the providers of a configuration's settings:
// config.providers, and config.providers.NAME.class and .param.*. What cannot be
// used is not among them, and reported.
func NewProviders(settings map[string]string, lookupEnv func(string) (string, bool)) (*Providers, []*ProviderError) {
	p := &Providers{by: map[string]*provider{}, files: map[string]fileData{}}
	var problems []*ProviderError
	for name := range strings.SplitSeq(settings["config.providers"], ",") {
		name = strings.TrimSpace(name)
		prefix := "config.providers." + name + "."
		class, ok := settings[prefix+"class"]
		if name == "" || !ok {
			continue // as Kafka, which then knows no such provider
		}
		made, err := p.provider(strings.TrimSpace(class), prefix, settings, lookupEnv)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		p.by[name] = made
	}
	return p, problems
}

func (p *Providers) provider(class, prefix string, settings map[string]string, lookupEnv func(string) (string, bool)) (*provider, *ProviderError) {
	made := &provider{env: lookupEnv}
	switch class {
	case providerPackage + "EnvVarConfigProvider":
		made.find = made.fromEnv
		return made, made.limitNames(prefix+"param.allowlist.pattern", settings)
	case providerPackage + "FileConfigProvider":
		made.find = func(path, key string) (string, error) { return p.fromFile(made, path, key) }
	case providerPackage + "DirectoryConfigProvider":
		made.find = made.fromDirectory
	default:
		return nil, &ProviderError{Key: prefix + "class", Custom: true, Reason: class + " is code of one's own, which cannot run here: known are " +
			"FileConfigProvider, EnvVarConfigProvider and DirectoryConfigProvider of " + strings.TrimSuffix(providerPackage, ".")}
	}
	return made, made.limitPaths(prefix+"param.allowed.paths", settings)
}

func (p *provider) limitNames(key string, settings map[string]string) *ProviderError {
	pattern, ok := settings[key]
	if !ok {
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return &ProviderError{Key: key, Reason: "no regular expression"}
	}
	re.Longest()
	p.names = re
	return nil
}

// limitPaths does as Kafka's AllowedPaths: the paths must be absolute and exist.
func (p *provider) limitPaths(key string, settings map[string]string) *ProviderError {
	if settings[key] == "" {
		return nil
	}
	for path := range strings.SplitSeq(settings[key], ",") {
		path = filepath.Clean(path)
		if !filepath.IsAbs(path) {
			return &ProviderError{Key: key, Reason: path + " is not absolute"}
		}
		if _, err := os.Stat(path); err != nil {
			return &ProviderError{Key: key, Reason: path + " does not exist"}
		}
		p.allowed = append(p.allowed, path)
	}
	return nil
}

// allow returns the path to read, if it lies in an allowed one.
func (p *provider) allow(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("it names no path")
	}
	if p.allowed == nil {
		return path, nil
	}
	path = filepath.Clean(path)
	inside := func(dir string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	}
	if !slices.ContainsFunc(p.allowed, inside) {
		return "", fmt.Errorf("%s is not among allowed.paths", path)
	}
	return path, nil
}

func (p *provider) fromEnv(path, key string) (string, error) {
	if path != "" {
		return "", fmt.Errorf("a variable of the environment has no path")
	}
	if p.names != nil {
		if at := p.names.FindStringIndex(key); at == nil || at[0] != 0 || at[1] != len(key) {
			return "", fmt.Errorf("allowlist.pattern does not match %s", key)
		}
	}
	value, ok := p.env(key)
	if !ok {
		return "", fmt.Errorf("the environment has no %s", key)
	}
	return value, nil
}

func (p *Providers) fromFile(by *provider, path, key string) (string, error) {
	path, err := by.allow(path)
	if err != nil {
		return "", err
	}
	file, ok := p.files[path]
	if !ok {
		file = readValues(path)
		p.files[path] = file
	}
	if file.err != nil {
		return "", file.err
	}
	value, ok := file.values[key]
	if !ok {
		return "", fmt.Errorf("%s has no %s", path, key)
	}
	return value, nil
}

func readValues(path string) fileData {
	data, err := readBounded(path)
	if err != nil {
		return fileData{err: err}
	}
	f, err := ParseUTF8(path, data)
	if err != nil {
		return fileData{err: err}
	}
	return fileData{values: f.Map()}
}

// fromDirectory returns what is in a regular file, whole: a line end at its end
// is part of the value.
func (p *provider) fromDirectory(path, key string) (string, error) {
	dir, err := p.allow(path)
	if err != nil {
		return "", err
	}
	if key == "" || key == "." || key == ".." || strings.ContainsRune(key, '/') {
		return "", fmt.Errorf("%q is no file's name", key)
	}
	path = filepath.Join(dir, key)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s has no file %s", dir, key)
	}
	data, err := readBounded(path)
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(string(data), "\ufffd"), nil
}

// Expand returns a value with its variables replaced, and which they are. As in
// Kafka there is one pass: what a provider returns is not looked at again, and a
// variable that could not be resolved stays as it is.
func (p *Providers) Expand(value string) (string, []Variable) {
	all := Variables(value)
	var out strings.Builder
	at := 0
	for i := range all {
		v := &all[i]
		by, ok := p.by[v.Provider]
		if v.Known = ok; !ok {
			continue
		}
		var found string
		if found, v.Err = by.find(v.Path, v.Key); v.Err != nil {
			continue
		}
		out.WriteString(value[at:v.Start])
		out.WriteString(found)
		at = v.End
	}
	out.WriteString(value[at:])
	return out.String(), all
}
