package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// noAWS takes away all places where this machine may have credentials.
func noAWS(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_EC2_METADATA_SERVICE_ENDPOINT"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	return dir
}

func awsMechanism(t *testing.T, options string) (key, session string, err error) {
	t.Helper()
	message, err := first(t, mechanism(t, "sasl.mechanism=AWS_MSK_IAM",
		"sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler",
		"sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required "+options+";"))
	if err != nil {
		return "", "", err
	}
	var fields map[string]string
	if err := json.Unmarshal([]byte(message), &fields); err != nil {
		t.Fatal(err)
	}
	key, rest, _ := strings.Cut(fields["x-amz-credential"], "/")
	if !strings.HasSuffix(rest, "/eu-central-1/kafka-cluster/aws4_request") {
		t.Errorf("credential %q", fields["x-amz-credential"])
	}
	return key, fields["x-amz-security-token"], nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func awsAnswer(key string, end time.Time, token string) string {
	return fmt.Sprintf(`{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":"canary","%s":"session-canary","Expiration":%q}`, key, token, end.UTC().Format(time.RFC3339))
}

// expectAWS checks which credentials are found.
func expectAWS(t *testing.T, options, key, session string) {
	t.Helper()
	gotKey, gotSession, err := awsMechanism(t, options)
	if err != nil || gotKey != key || gotSession != session {
		t.Errorf("key %q, session %q, %v", gotKey, gotSession, err)
	}
}

// TestAWSNoPlace names the places that were looked at.
func TestAWSNoPlace(t *testing.T) {
	noAWS(t)
	if _, _, err := awsMechanism(t, ""); err == nil || !strings.Contains(err.Error(), "environment, web identity, shared files, container endpoint, instance metadata") {
		t.Errorf("got %v", err)
	}
}

// TestAWSFilesAndEnvironment looks in the shared files, then in the environment, which comes first.
func TestAWSFilesAndEnvironment(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	dir := noAWS(t)
	write(t, filepath.Join(dir, "credentials"), "# x\n[default]\naws_access_key_id = AKDEFAULT\naws_secret_access_key=canary\n\n[other]\naws_access_key_id=AKOTHER\n"+
		"aws_secret_access_key=canary\naws_session_token=session-canary\n")
	write(t, filepath.Join(dir, "config"), "[default]\nregion=x\ns3 =\n  aws_access_key_id = nested\n[profile run]\ncredential_process = echo '"+awsAnswer("AKRUN", hour, "SessionToken")+
		"'\n[profile role]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile=default\n[profile sso]\nsso_session=s\n[profile bad]\ncredential_process=echo canary; exit 3\n")
	expectAWS(t, "", "AKDEFAULT", "")
	expectAWS(t, `awsProfileName="other"`, "AKOTHER", "session-canary")
	expectAWS(t, "awsProfileName=run", "AKRUN", "session-canary")
	for profile, part := range map[string]string{"role": "role_arn", "sso": "SSO", "bad": "exit status 3", "gone": `no profile "gone"`} {
		if _, _, err := awsMechanism(t, "awsProfileName="+profile); err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v", profile, err)
		}
	}
	t.Setenv("AWS_PROFILE", "other")
	expectAWS(t, "", "AKOTHER", "session-canary")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	expectAWS(t, "", "AKENV", "")
}

// TestAWSContainer asks the agent of ECS or EKS, and sends its token nowhere else.
func TestAWSContainer(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	noAWS(t)
	url, _ := tokenServer(t, func(_ int, r *http.Request) (int, string) {
		if r.Header.Get("Authorization") != "pod-canary" {
			return 403, "canary"
		}
		return 200, awsAnswer("AKPOD", hour, "Token")
	})
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)
	if _, _, err := awsMechanism(t, ""); err == nil || !strings.Contains(err.Error(), "status 403") || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "pod-canary\n")
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)
	expectAWS(t, "", "AKPOD", "session-canary")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://credentials.example/x")
	if _, _, err := awsMechanism(t, ""); err == nil || !strings.Contains(err.Error(), "neither https nor") {
		t.Errorf("a token was sent to anybody: %v", err)
	}
}

// TestAWSWebIdentity changes a token of the cluster at STS.
func TestAWSWebIdentity(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	dir := noAWS(t)
	url, _ := tokenServer(t, func(_ int, r *http.Request) (int, string) {
		if q := r.URL.Query(); q.Get("Action") != "AssumeRoleWithWebIdentity" || q.Get("RoleArn") != "arn:x" || q.Get("WebIdentityToken") != "web-canary" {
			return 400, "canary"
		}
		return 200, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>` +
			`<AccessKeyId>AKWEB</AccessKeyId><SecretAccessKey>canary</SecretAccessKey><SessionToken>session-canary</SessionToken><Expiration>` +
			hour.UTC().Format(time.RFC3339) + `</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`
	})
	t.Setenv("AWS_ENDPOINT_URL_STS", url)
	t.Setenv("AWS_ROLE_ARN", "arn:x")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", filepath.Join(dir, "web"))
	write(t, filepath.Join(dir, "web"), "web-canary")
	expectAWS(t, "", "AKWEB", "session-canary")
	t.Setenv("AWS_ROLE_ARN", "arn:y")
	if _, _, err := awsMechanism(t, ""); err == nil || !strings.Contains(err.Error(), "status 400") || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
	t.Setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
	if _, _, err := awsMechanism(t, ""); err == nil || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

// TestAWSInstance asks the metadata of the instance, version 2.
func TestAWSInstance(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	noAWS(t)
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") != "" {
			_, _ = fmt.Fprint(w, "imds-canary")
		}
	})
	mux.HandleFunc("GET /latest/meta-data/iam/security-credentials/", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "imds-canary":
			w.WriteHeader(401)
		case strings.HasSuffix(r.URL.Path, "/my-role"):
			_, _ = fmt.Fprint(w, awsAnswer("AKEC2", hour, "Token"))
		default:
			_, _ = fmt.Fprint(w, "my-role\n")
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s.URL)
	expectAWS(t, "", "AKEC2", "session-canary")
}

// TestAWSRefresh lets a clock run over the life of credentials.
func TestAWSRefresh(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	now, issued := start, 0
	var fail error
	s := &awsSource{now: func() time.Time { return now }, places: []awsPlace{{"x", func(context.Context) (awsCredentials, error) {
		if fail != nil {
			return awsCredentials{}, fail
		}
		issued++
		return awsCredentials{id: hide(fmt.Sprint(issued)), end: now.Add(time.Hour)}, nil
	}}}}
	for _, step := range []struct {
		minutes int
		fail    error
		want    string // empty: an error
	}{{0, nil, "1"}, {54, nil, "1"}, {56, nil, "2"}, {56 + 54, nil, "2"}, {56 + 58, os.ErrDeadlineExceeded, "2"}, {56 + 61, os.ErrDeadlineExceeded, ""}, {56 + 62, nil, "3"}} {
		now, fail = start.Add(time.Duration(step.minutes)*time.Minute), step.fail
		got, err := s.credentials(t.Context())
		if got.id.reveal() != step.want || (err == nil) != (step.want != "") {
			t.Errorf("after %d minutes: %q, %v", step.minutes, got.id.reveal(), err)
		}
	}
}
