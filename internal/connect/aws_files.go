package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// awsFiles reads the files that the AWS tools share: credentials and config.
type awsFiles struct {
	profile string // empty: AWS_PROFILE, or default
	http    *http.Client
}

// get looks for the profile in the credentials file, then in the config file,
// whose settings the former's overlay.
func (f *awsFiles) get(ctx context.Context) (awsCredentials, error) {
	name := f.profile
	if name == "" {
		name = os.Getenv("AWS_PROFILE")
	}
	named := name != ""
	if !named {
		name = "default"
	}
	settings, err := awsProfile(name)
	if err != nil {
		return awsCredentials{}, err
	}
	if len(settings) == 0 && named {
		return awsCredentials{}, fmt.Errorf("there is no profile %q in the shared files", name)
	}
	return f.from(ctx, settings, named)
}

// from uses what a profile says.
func (f *awsFiles) from(ctx context.Context, settings map[string]string, named bool) (awsCredentials, error) {
	switch {
	case settings["web_identity_token_file"] != "":
		return awsWebIdentity(ctx, f.http, settings["web_identity_token_file"], settings["role_arn"], settings["role_session_name"])
	case settings["role_arn"] != "":
		return awsCredentials{}, errors.New("the profile assumes a role (role_arn), for which a signed request to STS would be needed; a credential_process can do it")
	case settings["aws_access_key_id"] != "" && settings["aws_secret_access_key"] != "":
		return awsCredentials{
			id: hide(settings["aws_access_key_id"]), secret: hide(settings["aws_secret_access_key"]), session: hide(settings["aws_session_token"]),
		}, nil
	case settings["credential_process"] != "":
		return awsProcess(ctx, settings["credential_process"])
	case settings["sso_session"] != "" || settings["sso_start_url"] != "":
		return awsCredentials{}, errors.New("the profile signs in by SSO, which is not supported; a credential_process of aws configure export-credentials --format process can do it")
	case named:
		return awsCredentials{}, errors.New("the profile holds no credentials")
	}
	return awsCredentials{}, errNoAWS
}

// awsProfile returns the settings of a profile; none if neither file has it.
func awsProfile(name string) (map[string]string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	settings := map[string]string{}
	for _, file := range []struct{ variable, name, section string }{
		{"AWS_CONFIG_FILE", "config", configSection(name)},
		{"AWS_SHARED_CREDENTIALS_FILE", "credentials", name},
	} {
		path := os.Getenv(file.variable)
		if path == "" {
			path = filepath.Join(home, ".aws", file.name)
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		readINI(string(data), file.section, settings)
	}
	return settings, nil
}

// configSection returns a profile's name in the config file.
func configSection(profile string) string {
	if profile == "default" {
		return profile
	}
	return "profile " + profile
}

// readINI puts a section's settings into a map.
func readINI(text, section string, settings map[string]string) {
	in := false
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		switch {
		case bare == "" || bare[0] == '#' || bare[0] == ';':
		case bare[0] == '[':
			name, _, _ := strings.Cut(bare[1:], "]")
			in = strings.Join(strings.Fields(name), " ") == section
		case in && line[0] != ' ' && line[0] != '\t': // indented ones belong to a setting of their own kind
			if name, value, ok := strings.Cut(bare, "="); ok {
				settings[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
			}
		}
	}
}

// awsProcess runs a command that prints credentials. What it prints besides is
// not shown: it may be secret.
func awsProcess(ctx context.Context, line string) (awsCredentials, error) {
	shell, flag := "/bin/sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd.exe", "/C"
	}
	command := exec.CommandContext(ctx, shell, flag, line)
	command.WaitDelay = time.Second // for what it leaves behind
	var out bytes.Buffer
	command.Stdout = &out
	if err := command.Run(); err != nil {
		return awsCredentials{}, fmt.Errorf("credential_process: %w", err)
	}
	c, err := parseAWS(out.Bytes())
	if err != nil {
		return awsCredentials{}, fmt.Errorf("credential_process: %w", err)
	}
	return c, nil
}
