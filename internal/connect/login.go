package connect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// loginTimeout bounds how long credentials may take to be fetched for one
// connection.
const loginTimeout = 15 * time.Second

// A LoginError reports that the credentials for a login could not be had, before
// the broker was asked. It holds no secret.
type LoginError struct {
	Mechanism      string
	Setting, Where string // the setting that says where they come from, and its place
	Err            error
}

func (e *LoginError) Error() string {
	setting := e.Setting
	if e.Where != "" {
		setting += ", " + e.Where
	}
	return fmt.Sprintf("no credentials for %s (%s): %v", e.Mechanism, setting, e.Err)
}

func (e *LoginError) Unwrap() error { return e.Err }

// loginModules are the login modules of each mechanism. Only their last name
// counts: they are also built into other packages.
var loginModules = map[string]string{
	"PLAIN":         "org.apache.kafka.common.security.plain.PlainLoginModule",
	"SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
	"SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
	"OAUTHBEARER":   "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
	"AWS_MSK_IAM":   "software.amazon.msk.auth.iam.IAMLoginModule",
}

// callbackHandlers are classes whose work is done here, by key and mechanism.
var callbackHandlers = map[string][]string{
	"sasl.login.callback.handler.class OAUTHBEARER": {
		"org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
		"org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler", // before 3.4
	},
	"sasl.client.callback.handler.class AWS_MSK_IAM": {"software.amazon.msk.auth.iam.IAMClientCallbackHandler"},
}

// login reads the sasl.* properties and leaves problems in p.
func (p *properties) login() sasl.Mechanism {
	mechanism := strings.ToUpper(p.text("sasl.mechanism"))
	class, ok := loginModules[mechanism]
	switch {
	case mechanism == "":
		p.problem("sasl.mechanism", "not set; a Java client would then use GSSAPI (Kerberos), which is not supported")
		return nil
	case mechanism == "GSSAPI":
		p.problem("sasl.mechanism", "GSSAPI (Kerberos) is not supported")
		return nil
	case !ok:
		p.noneOf("sasl.mechanism", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM")
		return nil
	}
	for _, key := range []string{"sasl.login.callback.handler.class", "sasl.client.callback.handler.class"} {
		p.only(key, callbackHandlers[key+" "+mechanism]...)
	}
	m, ok := p.loginModule(mechanism, class)
	if !ok {
		return nil
	}
	switch mechanism {
	case "OAUTHBEARER":
		return p.oauth(m)
	case "AWS_MSK_IAM":
		return p.aws(m)
	}
	return p.password(mechanism, m)
}

// loginModule reads sasl.jaas.config.
func (p *properties) loginModule(mechanism, class string) (loginModule, bool) {
	const key = "sasl.jaas.config"
	if !p.set(key) && (mechanism == "OAUTHBEARER" && p.set("sasl.oauthbearer.token.endpoint.url") || mechanism == "AWS_MSK_IAM") {
		return loginModule{}, true // everything can be said without it
	}
	if !p.set(key) {
		p.problem(key, "not set: it is to hold the login ("+class+" required ...;)")
		return loginModule{}, false
	}
	m, err := parseJAAS(p.values[key].Value)
	if err != nil {
		p.problem(key, err.Error())
		return loginModule{}, false
	}
	if m.name() != class[strings.LastIndexByte(class, '.')+1:] {
		p.problem(key, "does not name the login module of "+mechanism+", "+class)
		return loginModule{}, false
	}
	return m, true
}

// password makes the mechanisms that need a user and a password.
func (p *properties) password(mechanism string, m loginModule) sasl.Mechanism {
	const key = "sasl.jaas.config"
	for _, option := range []string{"username", "password"} {
		if m.option(option) == "" {
			p.problem(key, "has no option "+option)
			return nil
		}
	}
	user, pass, isToken := m.options["username"], m.options["password"], strings.EqualFold(m.option("tokenauth"), "true")
	scrams := func(context.Context) (scram.Auth, error) {
		return scram.Auth{User: user.reveal(), Pass: pass.reveal(), IsToken: isToken}, nil
	}
	switch mechanism {
	case "SCRAM-SHA-256":
		return scram.Sha256(scrams)
	case "SCRAM-SHA-512":
		return scram.Sha512(scrams)
	}
	return plain.Plain(func(context.Context) (plain.Auth, error) {
		return plain.Auth{User: user.reveal(), Pass: pass.reveal()}, nil
	})
}

// unknownOptions tells of options of a login module that have no effect.
func (p *properties) unknownOptions(m loginModule, known ...string) {
	n := 0
	for name := range m.options {
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "ssl.") && !strings.HasPrefix(name, "extension_") {
			n++
		}
	}
	if n > 0 {
		p.notice(Otherwise, "sasl.jaas.config", Warning, fmt.Sprintf("%d of its options have no effect; known are %s", n, strings.Join(known, ", ")))
	}
}
