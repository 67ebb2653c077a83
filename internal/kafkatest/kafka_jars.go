//go:build kafka

package kafkatest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// KafkaVersion is the version of the brokers, tools and Java clients.
const KafkaVersion = "4.3.1"

// OlderKafkaVersion is the version of MirrorMaker 2 and of Java clients that many
// still have; of it there are no brokers. See [JavaOf].
const OlderKafkaVersion = "3.9.2"

// cacheVariable names the environment variable that says where the jars are
// kept.
const cacheVariable = "APOGRAPH_KAFKA_CACHE"

//go:embed java
var javaFiles embed.FS

// kafkaJars returns the directory with Kafka's jars. They are fetched once, with
// Maven, into the directory that APOGRAPH_KAFKA_CACHE names (for the older version,
// beside it), or into one of apograph's in the user's cache directory. Its name
// holds the hash of what is fetched, so that two checkouts that want different jars
// do not take them from each other.
func kafkaJars(ctx context.Context, version string) (string, error) {
	name := "java/pom.xml"
	if version != KafkaVersion {
		name = "java/pom-" + version + ".xml"
	}
	pom, err := javaFiles.ReadFile(name)
	if err != nil {
		return "", err
	}
	cache := os.Getenv(cacheVariable)
	switch {
	case cache == "":
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache directory for Kafka's jars (set %s): %w", cacheVariable, err)
		}
		hash := sha256.Sum256(pom)
		cache = filepath.Join(base, "apograph", fmt.Sprintf("kafka-%s-%x", version, hash[:4]))
	case version != KafkaVersion:
		cache += "-" + version
	}
	if have, err := os.ReadFile(filepath.Join(cache, "pom.xml")); err == nil && bytes.Equal(have, pom) {
		return filepath.Join(cache, "libs"), nil
	}
	if err := fetchJars(ctx, cache, pom); err != nil {
		return "", fmt.Errorf("fetch Kafka %s into %s: %w", version, cache, err)
	}
	return filepath.Join(cache, "libs"), nil
}

// fetchJars fetches into a directory beside the cache and moves it there as a
// whole, so that a cache is complete or absent. Of several processes that fetch
// at once the first wins.
func fetchJars(ctx context.Context, cache string, pom []byte) error {
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("tests on real brokers need Maven (mvn), which is not installed")
	}
	if err := os.MkdirAll(filepath.Dir(cache), 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(cache), "fetch-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := os.WriteFile(filepath.Join(fresh, "pom.xml"), pom, 0o644); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, maven, "-q", "-B", "-f", filepath.Join(fresh, "pom.xml"),
		"dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(fresh, "libs"))
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn: %w\n%s", err, out)
	}
	return replaceDir(fresh, cache, pom)
}

func replaceDir(fresh, cache string, pom []byte) error {
	err := os.Rename(fresh, cache)
	if err == nil {
		return nil
	}
	if have, readErr := os.ReadFile(filepath.Join(cache, "pom.xml")); readErr == nil && bytes.Equal(have, pom) {
		return nil // another process was faster
	}
	if err := os.RemoveAll(cache); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(fresh, cache)
}

// javaClasses returns the directory with this package's own Java programs,
// compiled once into the cache. Its name holds the hash of the sources.
func javaClasses(ctx context.Context, jars string) (string, error) {
	sources, err := fs.Glob(javaFiles, "java/*.java")
	if err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(jars), "classes-fresh-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	hash := sha256.New()
	args := []string{"-cp", filepath.Join(jars, "*"), "-d", fresh}
	for _, name := range sources {
		source, err := javaFiles.ReadFile(name)
		if err != nil {
			return "", err
		}
		hash.Write(source)
		path := filepath.Join(fresh, filepath.Base(name))
		if err := os.WriteFile(path, source, 0o644); err != nil {
			return "", err
		}
		args = append(args, path)
	}
	classes := filepath.Join(filepath.Dir(jars), fmt.Sprintf("classes-%x", hash.Sum(nil)[:8]))
	if _, err := os.Stat(classes); err == nil {
		return classes, nil
	}
	if out, err := exec.CommandContext(ctx, "javac", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, classes); err != nil {
		if _, statErr := os.Stat(classes); statErr != nil {
			return "", err
		}
	}
	return classes, nil
}

// needJava reports what is missing of a Java development kit.
func needJava() error {
	for _, tool := range []string{"java", "javac"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("tests on real brokers need a Java development kit, 17 or newer (%s), which is not installed", tool)
		}
	}
	return nil
}
