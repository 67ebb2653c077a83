//go:build kafka

package kafkatest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
)

// A Java runs classes of one version of Kafka's jars, this package's own Java
// programs among them, which are compiled against that version. It is safe for
// concurrent use.
type Java struct{ classPath string }

// JavaOf returns what runs classes of [KafkaVersion] or [OlderKafkaVersion]. The
// jars are fetched once. It is an error if Java or Maven is missing.
func JavaOf(ctx context.Context, version string) (*Java, error) {
	if err := needJava(); err != nil {
		return nil, err
	}
	jars, err := kafkaJars(ctx, version)
	if err != nil {
		return nil, err
	}
	classes, err := javaClasses(ctx, jars)
	if err != nil {
		return nil, err
	}
	return &Java{filepath.Join(jars, "*") + string(filepath.ListSeparator) + classes}, nil
}

// javaArgs returns the arguments of the java command for a class of Kafka's.
// The first compiler tier alone makes short runs quicker.
func (j *Java) javaArgs(heapMB int, args ...string) []string {
	return j.ownJavaArgs([]string{fmt.Sprintf("-Xmx%dm", heapMB), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, args...)
}

// ownJavaArgs returns the arguments of the java command for a class of Kafka's,
// in a JVM with options of one's own choice.
func (j *Java) ownJavaArgs(jvm []string, args ...string) []string {
	return slices.Concat(jvm, []string{
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", j.classPath,
	}, args)
}

// JavaCommand returns the arguments of the java command that runs a class of
// Kafka's in a process of the caller's, whose JVM has the options given:
// MirrorMaker and Connect are among the classes.
func (j *Java) JavaCommand(jvm []string, mainClass string, args ...string) []string {
	return j.ownJavaArgs(jvm, append([]string{mainClass}, args...)...)
}

// Tool runs one of Kafka's tools, or any class in its jars, and returns what it
// has written to standard output. An exit status other than 0 is an error that
// holds what it has written to standard error. Arguments are the tool's own, with
// --bootstrap-server where it needs it.
func (j *Java) Tool(ctx context.Context, mainClass string, args []string, stdin io.Reader) ([]byte, error) {
	return j.java(ctx, stdin, append([]string{mainClass}, args...)...)
}

// java runs a class to its end.
func (j *Java) java(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "java", j.javaArgs(256, args...)...)
	var out, failed bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = stdin, &out, &failed
	if err := command.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("java %s: %w\n%s", args[0], err, tailBytes(failed.Bytes()))
	}
	return out.Bytes(), nil
}

func tailBytes(b []byte) []byte { return b[max(0, len(b)-4000):] }
