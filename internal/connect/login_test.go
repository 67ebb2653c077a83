package connect

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/sasl"
)

// TestLogins: two clusters that take the same mechanism from different users see
// only their own.
func TestLogins(t *testing.T) {
	for mechanism, module := range map[string]string{
		"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-256": "scram.ScramLoginModule", "SCRAM-SHA-512": "scram.ScramLoginModule",
	} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			addresses := map[string]string{}
			for _, user := range []string{"ua", "ub"} {
				addresses[user] = broker(t, secured(t, "server", tls.NoClientCert), kfake.EnableSASL(), kfake.Superuser(mechanism, user, user+`"\canary`))
			}
			login := func(address, user string) []string {
				return append(trusting(address), "security.protocol=sasl_ssl", "sasl.mechanism="+mechanism,
					"sasl.jaas.config=org.apache.kafka.common.security."+module+` required username="`+user+`" password="`+user+`\"\\canary";`)
			}
			for user, address := range addresses {
				carry(t, login(address, user)...)
			}
			refused(t, login(addresses["ua"], "ub")...)
		})
	}
}

// jwt makes a token without a signature.
func jwt(issued, ends time.Time, mark string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(fmt.Appendf(nil, `{"iat":%d,"exp":%d,"sub":%q}`, issued.Unix(), ends.Unix(), mark)) + "."
}

// first returns what a mechanism sends first.
func first(t *testing.T, m sasl.Mechanism) (string, error) {
	t.Helper()
	_, message, err := m.Authenticate(t.Context(), "b-1.kafka.eu-central-1.amazonaws.com:9098")
	return string(message), err
}

// mechanism makes the mechanism of settings.
func mechanism(t *testing.T, lines ...string) sasl.Mechanism {
	t.Helper()
	c, _, err := FromProperties("a", settings(append(lines, "bootstrap.servers=a:1", "security.protocol=SASL_SSL")...))
	if err != nil {
		t.Fatal(err)
	}
	return c.access.login
}

// tokenServer answers as a token endpoint, with what answer returns.
func tokenServer(t *testing.T, answer func(n int, r *http.Request) (status int, body string)) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := answer(int(asked.Add(1)), r)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func oauthLines(url string, more ...string) []string {
	return append([]string{"sasl.mechanism=OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url=" + url,
		"sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
		`sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="me" clientSecret="s+canary" scope=" a b " extension_logicalCluster="lkc-1";`}, more...)
}

// TestTokenRequest: what is asked of a token endpoint, and what the broker gets.
func TestTokenRequest(t *testing.T) {
	var header, form string
	url, _ := tokenServer(t, func(_ int, r *http.Request) (int, string) {
		_ = r.ParseForm()
		header, form = r.Header.Get("Authorization"), r.Form.Encode()
		return 200, `{"access_token":"` + jwt(time.Now(), time.Now().Add(time.Hour), "me") + `","expires_in":3600}`
	})
	message, err := first(t, mechanism(t, oauthLines(url+"/token?x=1")...))
	if err != nil {
		t.Fatal(err)
	}
	if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:s+canary")); header != want {
		t.Errorf("header %q, not %q", header, want)
	}
	if form != "grant_type=client_credentials&scope=a+b&x=1" {
		t.Errorf("form %q", form)
	}
	if !strings.HasPrefix(message, "n,,\x01auth=Bearer ey") || !strings.HasSuffix(message, "\x01logicalCluster=lkc-1\x01\x01") {
		t.Errorf("message %q", message)
	}
	// The settings of 4.1 win over the options of the login module.
	_, err = first(t, mechanism(t, oauthLines(url, "sasl.oauthbearer.client.credentials.client.id=other", "sasl.oauthbearer.client.credentials.client.secret=a b/canary",
		"sasl.oauthbearer.scope=c", "sasl.oauthbearer.header.urlencode=true")...))
	if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("other:a+b%2Fcanary")); err != nil || header != want || form != "grant_type=client_credentials&scope=c" {
		t.Errorf("header %q, form %q, %v", header, form, err)
	}
}

// TestTokenRefusals: what is tried again, and that no answer brings a secret into
// an error.
func TestTokenRefusals(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("me:s+canary"))
	for name, test := range map[string]struct {
		answers   []string // status and body; the last repeats
		asked     int      // 0: several times
		part      string
		permanent bool
	}{
		"wrong secret":      {[]string{`401 {"error":"invalid_client","error_description":"unknown client"}`}, 1, "invalid_client: unknown client", true},
		"repeats secret":    {[]string{`400 {"error":"invalid_client","error_description":"s+canary is wrong"}`}, 1, "is not shown", true},
		"repeats header":    {[]string{`400 {"error":"x","error_description":"` + basic + `"}`}, 1, "is not shown", true},
		"busy, then better": {[]string{"503 busy", "502 busy", `200 {"access_token":"opaque","expires_in":60}`}, 3, "", false},
		"busy":              {[]string{"503 canary"}, 0, "status 503", false},
		"no token":          {[]string{`200 {"token":"canary"}`}, 1, "no access_token", false},
		"moved":             {[]string{"307 elsewhere"}, 1, "status 307", false},
		"ended token":       {[]string{`200 {"access_token":"` + jwt(time.Now().Add(-time.Hour), time.Now().Add(-time.Minute), "canary") + `"}`}, 1, "has ended", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, asked := tokenServer(t, func(n int, _ *http.Request) (status int, body string) {
				text, body, _ := strings.Cut(test.answers[min(n, len(test.answers))-1], " ")
				_, _ = fmt.Sscan(text, &status)
				return status, body
			})
			_, err := first(t, mechanism(t, oauthLines(url+"/token?canary", "sasl.login.retry.backoff.ms=5", "sasl.login.retry.backoff.max.ms=60")...))
			if test.part == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), test.part) || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), basic) {
				t.Errorf("got %v", err)
			} else if Permanent(err) != test.permanent {
				t.Errorf("permanent: %v, of %v", !test.permanent, err)
			}
			if n := int(asked.Load()); test.asked > 0 && n != test.asked || test.asked == 0 && n < 2 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestTokenRedirection: credentials go where the settings say, and nowhere else.
func TestTokenRedirection(t *testing.T) {
	url, asked := tokenServer(t, func(int, *http.Request) (int, string) { return 200, `{"access_token":"x"}` })
	s := httptest.NewServer(http.RedirectHandler(url, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	_, err := first(t, mechanism(t, oauthLines(s.URL)...))
	if err == nil || !strings.Contains(err.Error(), "status 307") || asked.Load() > 0 {
		t.Errorf("asked %d times, %v", asked.Load(), err)
	}
}

// TestTokenRefresh lets a clock run over the life of tokens.
func TestTokenRefresh(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	now, issued := start, 0
	var fail error
	s := &tokenSource{
		now: func() time.Time { return now }, random: func() float64 { return 0.5 },
		window: refreshWindow{factor: 0.8, jitter: 0.1, minPeriod: time.Minute, buffer: 5 * time.Minute},
		fetch: func(context.Context) (token, error) {
			if fail != nil {
				return token{}, fail
			}
			issued++
			return token{text: hide(fmt.Sprint(issued)), start: now, end: now.Add(time.Hour)}, nil
		},
	}
	at := func(minutes float64, want string) {
		t.Helper()
		now = start.Add(time.Duration(minutes * float64(time.Minute)))
		got, err := s.token(t.Context())
		if err != nil || got.reveal() != want {
			t.Errorf("after %v minutes: %q, %v, not %q", minutes, got.reveal(), err, want)
		}
	}
	at(0, "1")
	at(50.9, "1") // 0.85 of an hour are 51 minutes
	at(51.1, "2")
	at(51+50, "2")
	fail = os.ErrDeadlineExceeded
	at(51.1+52, "2") // due, but still valid
	fail = nil
	at(51.1+53, "3")
	fail = os.ErrDeadlineExceeded
	now = now.Add(2 * time.Hour)
	if _, err := s.token(t.Context()); err == nil {
		t.Error("a token that has ended was used")
	}
}

// TestTokenPastItsEnd: settings that Kafka allows have a token of short life replaced
// behind its end. It is not used up to there.
func TestTokenPastItsEnd(t *testing.T) {
	now, issued := time.Unix(1_700_000_000, 0), 0
	s := &tokenSource{
		now: func() time.Time { return now }, random: func() float64 { return 0.9 },
		window: refreshWindow{factor: 1, jitter: 0.25, minPeriod: time.Minute, buffer: 5 * time.Minute},
		fetch: func(context.Context) (token, error) {
			issued++
			return token{text: hide(fmt.Sprint(issued)), start: now, end: now.Add(5 * time.Minute)}, nil
		},
	}
	for _, want := range []string{"1", "2"} {
		for range 2 {
			if got, err := s.token(t.Context()); err != nil || got.reveal() != want {
				t.Errorf("%q, %v, not %q", got.reveal(), err, want)
			}
			now = now.Add(4 * time.Minute)
		}
		now = now.Add(-3 * time.Minute)
	}
}

// TestRefreshWindow works out examples of Kafka's rule by hand.
func TestRefreshWindow(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		w                refreshWindow
		startsIn, endsIn time.Duration
		random           float64
		want             time.Duration
	}{
		{refreshWindow{0.8, 0.05, time.Minute, 5 * time.Minute}, 0, 100 * time.Minute, 0, 80 * time.Minute},
		{refreshWindow{0.8, 0.05, time.Minute, 5 * time.Minute}, 0, 100 * time.Minute, 1, 85 * time.Minute},
		{refreshWindow{0.8, 0, time.Minute, 30 * time.Minute}, 0, 100 * time.Minute, 0, 70 * time.Minute},                // the buffer
		{refreshWindow{0.5, 0, 20 * time.Minute, time.Minute}, -40 * time.Minute, 60 * time.Minute, 0, 20 * time.Minute}, // the shortest period
		{refreshWindow{0.8, 0, time.Minute, 5 * time.Minute}, 0, 5 * time.Minute, 0, 4 * time.Minute},                    // too short for both
	} {
		got := test.w.after(now, now.Add(test.startsIn), now.Add(test.endsIn), test.random).Sub(now)
		if got.Round(time.Second) != test.want {
			t.Errorf("%+v: after %s, not %s", test, got, test.want)
		}
	}
}

// TestTokenFile: a token in a file is read anew for each login.
func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	m := mechanism(t, oauthLines("file:"+path)...)
	for _, token := range []string{"one", "two"} {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if message, err := first(t, m); err != nil || !strings.Contains(message, "Bearer "+token+"\x01") {
			t.Errorf("%q, %v", message, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := first(t, m); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// TestTokenEndpointTLS: options of the login module say whom to trust there.
func TestTokenEndpointTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"access_token":"opaque","expires_in":"60"}`)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{serverPair(t, "server")}}
	s.StartTLS()
	t.Cleanup(s.Close)
	jaas := func(options string) string {
		return "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId=a clientSecret=b " + options + ";"
	}
	quick := "sasl.login.retry.backoff.max.ms=1"
	if _, err := first(t, mechanism(t, oauthLines(s.URL, quick, jaas(`ssl.truststore.type=PEM ssl.truststore.location="`+stored("ca.pem")+`"`))...)); err != nil {
		t.Error(err)
	}
	if _, err := first(t, mechanism(t, oauthLines(s.URL, quick, jaas(""))...)); err == nil {
		t.Error("an unknown authority was trusted")
	}
}
