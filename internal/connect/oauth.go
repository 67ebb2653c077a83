package connect

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
)

// Names of the settings of OAUTHBEARER (KIP-768, KIP-1139).
const (
	endpointKey     = "sasl.oauthbearer.token.endpoint.url"
	clientIDKey     = "sasl.oauthbearer.client.credentials.client.id"
	clientSecretKey = "sasl.oauthbearer.client.credentials.client.secret"
	scopeKey        = "sasl.oauthbearer.scope"
	retrieverKey    = "sasl.oauthbearer.jwt.retriever.class"
)

// oauth makes OAUTHBEARER with tokens from a token endpoint, by the grant of
// client credentials, or from a file.
func (p *properties) oauth(m loginModule) sasl.Mechanism {
	const retrievers = "org.apache.kafka.common.security.oauthbearer."
	p.only(retrieverKey, retrievers+"DefaultJwtRetriever", retrievers+"ClientCredentialsJwtRetriever", retrievers+"FileJwtRetriever")
	p.unknownOptions(m, "clientId", "clientSecret", "scope")
	if !p.set(endpointKey) {
		p.problem(endpointKey, "not set: it is to name the token endpoint, http:, https: or file: (tokens without a signature, which Java makes where it is not set, are not supported)")
		return nil
	}
	endpoint, err := url.Parse(p.text(endpointKey))
	if err != nil {
		p.problem(endpointKey, "is not a URL")
		return nil
	}
	tokens := &tokenSource{now: time.Now, random: rand.Float64, window: p.refreshWindow()}
	switch strings.ToLower(endpoint.Scheme) {
	case "file":
		tokens.fetch = fileTokens(endpoint.Path)
	case "http", "https":
		client := p.tokenClient(m, endpoint)
		if client == nil {
			return nil
		}
		tokens.fetch = client.fetch
	default:
		p.problem(endpointKey, "is none of http:, https:, file:")
		return nil
	}
	extensions := map[string]secret{}
	for name, value := range m.options {
		if name, ok := strings.CutPrefix(name, "extension_"); ok {
			extensions[name] = value
		}
	}
	return oauthMechanism(tokens, extensions, p.values[endpointKey].Where)
}

func oauthMechanism(tokens *tokenSource, extensions map[string]secret, where string) sasl.Mechanism {
	return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
		ctx, cancel := context.WithTimeout(ctx, loginTimeout)
		defer cancel()
		t, err := tokens.token(ctx)
		if err != nil {
			return oauth.Auth{}, &LoginError{Mechanism: "OAUTHBEARER", Setting: endpointKey, Where: where, Err: err}
		}
		auth := oauth.Auth{Token: t.reveal()}
		for name, value := range extensions {
			if auth.Extensions == nil {
				auth.Extensions = map[string]string{}
			}
			auth.Extensions[name] = value.reveal()
		}
		return auth, nil
	})
}

// fileTokens reads a token from a file, anew each time: it may be replaced.
func fileTokens(path string) func(context.Context) (token, error) {
	return func(context.Context) (token, error) {
		data, err := readFile(path)
		if err != nil {
			return token{}, fmt.Errorf("file %s: %w", path, err)
		}
		text := strings.TrimSpace(string(data))
		if text == "" {
			return token{}, fmt.Errorf("file %s is empty", path)
		}
		return token{text: hide(text)}, nil // never kept, so when it ends does not matter
	}
}

// tokenClient reads what a request to the token endpoint needs. Settings win over
// options of the login module, as in Kafka's ConfigOrJaas. It is nil if a problem
// was found.
func (p *properties) tokenClient(m loginModule, endpoint *url.URL) *tokenClient {
	c := &tokenClient{
		endpoint:   endpoint,
		id:         p.orOption(clientIDKey, m, "clientId"),
		secret:     p.orOption(clientSecretKey, m, "clientSecret"),
		scope:      strings.TrimSpace(p.orOption(scopeKey, m, "scope").reveal()),
		encode:     strings.EqualFold(p.text("sasl.oauthbearer.header.urlencode"), "true"),
		backoff:    p.millis("sasl.login.retry.backoff.ms", 100*time.Millisecond, time.Millisecond, time.Minute),
		backoffMax: p.millis("sasl.login.retry.backoff.max.ms", 10*time.Second, time.Millisecond, time.Minute),
	}
	for _, missing := range []struct {
		value       secret
		key, option string
	}{{c.id, clientIDKey, "clientId"}, {c.secret, clientSecretKey, "clientSecret"}} {
		if missing.value.reveal() == "" {
			p.problem(missing.key, "not set, and neither is the option "+missing.option+" of sasl.jaas.config")
			return nil
		}
	}
	t, ok := p.endpointTLS(m)
	if !ok {
		return nil
	}
	connect := p.millis("sasl.login.connect.timeout.ms", 5*time.Second, time.Millisecond, loginTimeout)
	read := p.millis("sasl.login.read.timeout.ms", 5*time.Second, time.Millisecond, loginTimeout)
	c.http = plainHTTP(connect, read, t)
	return c
}

func (p *properties) orOption(key string, m loginModule, option string) secret {
	if value, ok := p.given(key); ok {
		return value
	}
	return m.options[option]
}

// endpointTLS reads the options of the login module that begin with ssl.: they
// are for the token endpoint (JaasOptionsUtils.createSSLSocketFactory). It is nil
// without any.
func (p *properties) endpointTLS(m loginModule) (t *tlsSettings, ok bool) {
	const key = "sasl.jaas.config"
	sub := &properties{values: map[string]Setting{}}
	for name, value := range m.options {
		if strings.HasPrefix(name, "ssl.") {
			sub.values[name] = Setting{Key: name, Value: value.reveal(), Where: p.values[key].Where}
		}
	}
	if len(sub.values) == 0 {
		return nil, true
	}
	t = sub.tls()
	for _, problem := range sub.problems {
		p.problem(key, "option "+problem.Key+": "+problem.Text)
	}
	return t, len(sub.problems) == 0
}

// A refreshWindow says when a token is to be replaced (sasl.login.refresh.*).
type refreshWindow struct {
	factor, jitter    float64
	minPeriod, buffer time.Duration
}

func (p *properties) refreshWindow() refreshWindow {
	return refreshWindow{
		factor:    p.number("sasl.login.refresh.window.factor", 0.8, 0.5, 1),
		jitter:    p.number("sasl.login.refresh.window.jitter", 0.05, 0, 0.25),
		minPeriod: time.Duration(p.number("sasl.login.refresh.min.period.seconds", 60, 0, 900)) * time.Second,
		buffer:    time.Duration(p.number("sasl.login.refresh.buffer.seconds", 300, 0, 3600)) * time.Second,
	}
}

// number reads a number that Kafka bounds.
func (p *properties) number(key string, def, least, most float64) float64 {
	if !p.set(key) {
		return def
	}
	n, err := strconv.ParseFloat(p.text(key), 64)
	if err != nil {
		return def // judge has reported it
	}
	if !(n >= least && n <= most) {
		p.problem(key, fmt.Sprintf("is not between %v and %v", least, most))
		return def
	}
	return n
}

// after returns when a token that was fetched now is to be replaced, by the rule
// of Kafka's ExpiringCredentialRefreshingLogin.
func (w refreshWindow) after(now, start, end time.Time, random float64) time.Time {
	part := w.factor + w.jitter*random
	if now.Add(w.minPeriod + w.buffer).After(end) {
		return now.Add(time.Duration(float64(end.Sub(now)) * part))
	}
	at := start.Add(time.Duration(float64(end.Sub(start)) * part))
	if latest := end.Add(-w.buffer); at.After(latest) {
		at = latest
	}
	if earliest := now.Add(w.minPeriod); at.Before(earliest) {
		at = earliest
	}
	return at
}
