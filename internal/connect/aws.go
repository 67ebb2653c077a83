package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
)

// Options of the login module of aws-msk-iam-auth that are obeyed, and those that
// need a signed request to STS.
var (
	awsOptions     = []string{"awsProfileName"}
	awsRoleOptions = []string{"awsRoleArn", "awsRoleSessionName", "awsRoleExternalId", "awsRoleAccessKeyId", "awsRoleSecretAccessKey", "awsRoleSessionToken", "awsStsRegion"}
)

// aws makes AWS_MSK_IAM with credentials from where the AWS tools look for them.
func (p *properties) aws(m loginModule) sasl.Mechanism {
	if m.option("awsRoleArn") != "" {
		p.problem("sasl.jaas.config", "option awsRoleArn is not supported; name a profile (awsProfileName) with a credential_process that assumes the role")
		return nil
	}
	p.unknownOptions(m, append(awsRoleOptions, awsOptions...)...)
	profile := m.option("awsProfileName")
	source := newAWSSource(profile)
	where := p.values["sasl.mechanism"].Where
	return aws.ManagedStreamingIAM(func(ctx context.Context) (aws.Auth, error) {
		ctx, cancel := context.WithTimeout(ctx, loginTimeout)
		defer cancel()
		c, err := source.credentials(ctx)
		if err != nil {
			return aws.Auth{}, &LoginError{Mechanism: "AWS_MSK_IAM", Setting: "sasl.mechanism", Where: where, Err: err}
		}
		return aws.Auth{AccessKey: c.id.reveal(), SecretKey: c.secret.reveal(), SessionToken: c.session.reveal(), UserAgent: "apograph"}, nil
	})
}

// awsCredentials are what requests to AWS are signed with.
type awsCredentials struct {
	id, secret, session secret
	end                 time.Time // zero: they do not end
}

// errNoAWS says that a place holds no credentials, and the next is to be tried.
var errNoAWS = errors.New("none")

// An awsSource gets credentials from the first place that has some, in the order
// of the AWS SDKs, and keeps them until they are about to end.
type awsSource struct {
	places []awsPlace
	now    func() time.Time

	mu   sync.Mutex
	last awsCredentials
}

// An awsPlace is where credentials may be.
type awsPlace struct {
	name string
	get  func(ctx context.Context) (awsCredentials, error) // errNoAWS if it has none
}

// newAWSSource looks in all places, or only in the profile that is named.
func newAWSSource(profile string) *awsSource {
	web := plainHTTP(2*time.Second, 5*time.Second, nil)
	local := plainHTTP(time.Second, 5*time.Second, nil)
	if transport, ok := local.Transport.(*http.Transport); ok {
		transport.Proxy = nil // what it asks is on this machine
	}
	files := &awsFiles{profile: profile, http: web}
	s := &awsSource{now: time.Now}
	if profile != "" {
		s.places = []awsPlace{{"profile " + profile, files.get}}
		return s
	}
	s.places = []awsPlace{
		{"environment", awsEnvironment},
		{"web identity", func(ctx context.Context) (awsCredentials, error) {
			return awsWebIdentity(ctx, web, os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), os.Getenv("AWS_ROLE_ARN"), os.Getenv("AWS_ROLE_SESSION_NAME"))
		}},
		{"shared files", files.get},
		{"container endpoint", func(ctx context.Context) (awsCredentials, error) { return awsContainer(ctx, local) }},
		{"instance metadata", func(ctx context.Context) (awsCredentials, error) { return awsInstance(ctx, local) }},
	}
	return s
}

// awsMargin is how long before their end credentials are replaced.
const awsMargin = 5 * time.Minute

// credentials returns some that are valid now. Ones that are about to end are
// still used if no new ones can be had.
func (s *awsSource) credentials(ctx context.Context) (awsCredentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.last.end.IsZero() && now.Before(s.last.end.Add(-awsMargin)) {
		return s.last, nil
	}
	fresh, err := s.find(ctx)
	switch {
	case err == nil && !fresh.end.IsZero() && !now.Before(fresh.end):
		return awsCredentials{}, fmt.Errorf("the credentials have ended at %s", fresh.end.UTC().Format(time.RFC3339))
	case err == nil:
		s.last = fresh
		return fresh, nil
	case now.Before(s.last.end):
		return s.last, nil
	}
	return awsCredentials{}, err
}

func (s *awsSource) find(ctx context.Context) (awsCredentials, error) {
	names := ""
	for _, place := range s.places {
		c, err := place.get(ctx)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, errNoAWS) {
			return awsCredentials{}, fmt.Errorf("%s: %w", place.name, err)
		}
		if names != "" {
			names += ", "
		}
		names += place.name
	}
	return awsCredentials{}, fmt.Errorf("found in none of: %s", names)
}

func awsEnvironment(context.Context) (awsCredentials, error) {
	id, key := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if id == "" || key == "" {
		return awsCredentials{}, errNoAWS
	}
	return awsCredentials{id: hide(id), secret: hide(key), session: hide(os.Getenv("AWS_SESSION_TOKEN"))}, nil
}
