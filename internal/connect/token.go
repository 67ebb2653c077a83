package connect

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A token is what OAUTHBEARER shows to a broker.
type token struct {
	text       secret
	start, end time.Time // when it is valid; end is zero if that is not known
}

// A tokenSource keeps a token until it is to be replaced. It may be asked by many
// connections at once, and then fetches one token for all.
type tokenSource struct {
	fetch  func(context.Context) (token, error)
	now    func() time.Time
	random func() float64 // in [0, 1)
	window refreshWindow

	mu      sync.Mutex
	last    token
	refresh time.Time // when last is to be replaced
}

// token returns a token that is valid now. One that is due to be replaced is
// still used if no new one can be had.
func (s *tokenSource) token(ctx context.Context) (secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.last.text != nil && now.Before(s.refresh) && now.Before(s.last.end) {
		return s.last.text, nil
	}
	fresh, err := s.fetch(ctx)
	if err != nil {
		if s.last.text != nil && now.Before(s.last.end) {
			return s.last.text, nil
		}
		return nil, err
	}
	if fresh.end.IsZero() {
		s.last = token{}
		return fresh.text, nil
	}
	if !s.now().Before(fresh.end) {
		return nil, fmt.Errorf("the token that was issued has ended at %s (do the clocks differ?)", fresh.end.UTC().Format(time.RFC3339))
	}
	s.last, s.refresh = fresh, s.window.after(now, fresh.start, fresh.end, s.random())
	return fresh.text, nil
}

// A tokenClient gets tokens from a token endpoint by the grant of client
// credentials (RFC 6749, 4.4).
type tokenClient struct {
	endpoint            *url.URL
	id, secret          secret
	scope               string
	encode              bool // the id and the secret, as RFC 6749 asks and few servers do
	backoff, backoffMax time.Duration
	http                *http.Client
}

// fetch asks until there is an answer, it is a refusal, or backoffMax has passed,
// as Kafka's Retry does.
func (c *tokenClient) fetch(ctx context.Context) (token, error) {
	wait := c.backoff
	for deadline := time.Now().Add(c.backoffMax); ; wait = min(2*wait, c.backoffMax) {
		t, retry, err := c.post(ctx)
		if err == nil {
			return t, nil
		}
		err = fmt.Errorf("token endpoint %s: %w", shortURL(c.endpoint), c.clean(err))
		if !retry || time.Now().Add(wait).After(deadline) || ctx.Err() != nil {
			return token{}, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return token{}, err
		}
	}
}

// shortURL names an endpoint without what may be secret in a URL.
func shortURL(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// clean returns an error that does not hold the secret, nor a URL: servers and
// libraries repeat what they were sent.
func (c *tokenClient) clean(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	text := err.Error()
	for _, s := range []string{c.secret.reveal(), url.QueryEscape(c.secret.reveal()), c.authorization()} {
		if s != "" && strings.Contains(text, s) {
			var refused *refusedError
			if errors.As(err, &refused) {
				return &refusedError{status: refused.status, text: "with an answer that repeats the secret, and is not shown"}
			}
			return errors.New("what went wrong repeats the secret, and is not shown")
		}
	}
	return err
}

func (c *tokenClient) authorization() string {
	id, secret := c.id.reveal(), c.secret.reveal()
	if c.encode {
		id, secret = url.QueryEscape(id), url.QueryEscape(secret)
	}
	return base64.StdEncoding.EncodeToString([]byte(id + ":" + secret))
}

func (c *tokenClient) post(ctx context.Context) (t token, retry bool, err error) {
	form := "grant_type=client_credentials"
	if c.scope != "" {
		form += "&scope=" + url.QueryEscape(c.scope)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint.String(), strings.NewReader(form))
	if err != nil {
		return token{}, false, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Cache-Control", "no-cache")
	request.Header.Set("Authorization", "Basic "+c.authorization())
	response, err := c.http.Do(request)
	if err != nil {
		return token{}, true, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	switch {
	case err != nil:
		return token{}, true, err
	case response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated:
		return token{}, response.StatusCode >= 500 && response.StatusCode != http.StatusNotImplemented || response.StatusCode == http.StatusTooManyRequests,
			&refusedError{status: response.StatusCode, text: oauthError(body)}
	}
	t, err = parseToken(body, time.Now())
	return t, false, err
}

// A refusedError is an answer of a service that gives credentials.
type refusedError struct {
	status int
	text   string // what it says; may be empty
}

func (e *refusedError) Error() string {
	text := fmt.Sprintf("status %d", e.status)
	if e.text != "" {
		text += ", " + e.text
	}
	return text
}

// oauthError returns the code and the description of an error (RFC 6749, 5.2).
func oauthError(body []byte) string {
	var answer struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Code == "" {
		return ""
	}
	text := answer.Code
	if answer.Description != "" {
		text += ": " + answer.Description
	}
	return fmt.Sprintf("%.300q", text)
}

// parseToken reads an answer. How long the token is valid is in it, if it is a JWT
// (RFC 7519), or else beside it.
func parseToken(body []byte, now time.Time) (token, error) {
	var answer struct {
		Token     string      `json:"access_token"`
		ExpiresIn json.Number `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || strings.TrimSpace(answer.Token) == "" {
		return token{}, errors.New("the answer holds no access_token")
	}
	t := token{text: hide(strings.TrimSpace(answer.Token)), start: now}
	if start, end, ok := jwtTimes(t.text.reveal()); ok {
		t.end = end
		if !start.IsZero() {
			t.start = start
		}
	} else if seconds, err := answer.ExpiresIn.Float64(); err == nil && seconds > 0 {
		t.end = now.Add(time.Duration(min(seconds, 1e8) * float64(time.Second)))
	}
	return t, nil
}

// jwtTimes returns the claims iat, zero if it is missing, and exp.
func jwtTimes(text string) (start, end time.Time, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return start, end, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return start, end, false
	}
	var claims struct {
		Issued *float64 `json:"iat"`
		Ends   *float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Ends == nil {
		return start, end, false
	}
	if claims.Issued != nil {
		start = time.Unix(int64(*claims.Issued), 0)
	}
	return start, time.Unix(int64(*claims.Ends), 0), true
}

// plainHTTP returns a client that follows no redirection, with which credentials
// would go elsewhere, and keeps no connection.
func plainHTTP(connect, read time.Duration, t *tlsSettings) *http.Client {
	dial := &net.Dialer{Timeout: connect}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial.DialContext, TLSHandshakeTimeout: connect,
		ResponseHeaderTimeout: read, DisableKeepAlives: true,
	}
	if t != nil {
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialTLS(ctx, dial, t, network, address)
		}
	}
	return &http.Client{
		Transport: transport, Timeout: connect + read,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dialTLS reads the stores anew for each connection.
func dialTLS(ctx context.Context, dial *net.Dialer, t *tlsSettings, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var asked bool
	config, err := t.config(host, &asked)
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: dial, Config: config}).DialContext(ctx, network, address)
}
