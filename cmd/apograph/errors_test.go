package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestHideSecrets(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing to hide", "orders:0:12 at offset 7", "orders:0:12 at offset 7"},
		{"a setting", "ssl.key.password=p4ss rest", "ssl.key.password=[hidden] rest"},
		{"blanks around the sign", "ssl.truststore.password = p4ss", "ssl.truststore.password = [hidden]"},
		{"a colon for the sign", "ssl.keystore.password:p4ss", "ssl.keystore.password:[hidden]"},
		{"double quotes", `username="u" password="p4 \" ss" x`, `username="u" password=[hidden] x`},
		{"single quotes", `password='p4 ss' x`, `password=[hidden] x`},
		{"quotes that do not end", `password="p4 ss`, `password=[hidden]`},
		{"JSON", `{"clientSecret": "p4ss", "a": 1}`, `{"clientSecret": [hidden], "a": 1}`},
		{"letter case", "CLIENT_SECRET=p4ss", "CLIENT_SECRET=[hidden]"},
		{"a login", "source.sasl.jaas.config=Module required user=u password=p4ss;", "source.sasl.jaas.config=[hidden]"},
		{"a login on two lines", "sasl.jaas.config=M required \\\n p4ss", "sasl.jaas.config=[hidden]"},
		{"a login in a map", "map[sasl.jaas.config:org.apache.PlainLoginModule required password=p4ss;]", "map[sasl.jaas.config:org.apache.PlainLoginModule[hidden]"},
		{"what is wrong with a login", "sasl.jaas.config: does not end with a semicolon", "sasl.jaas.config: does not end with a semicolon"},
		{"a key", "ssl.keystore.key=-----BEGIN PRIVATE KEY----- p4ss", "ssl.keystore.key=[hidden]"},
		{"a key by itself", "read -----BEGIN RSA PRIVATE KEY-----\np4ss\n", "read -----BEGIN RSA PRIVATE KEY-----[hidden]"},
		{"an address with a login", "dial https://u:p4ss@host/x", "dial https://u:[hidden]@host/x"},
		{"prose about a secret", "the password: it must not be empty", "the password: it must not be empty"},
		{"a token of a language", "unexpected token: comma", "unexpected token: comma"},
		{"hidden before", `unexpected "password=[hidden]" and "jaas.config=[hidden]"`,
			`unexpected "password=[hidden]" and "jaas.config=[hidden]"`},
		{"several", "token=p4ss,secret=p4ss", "token=[hidden],secret=[hidden]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := hideSecrets(tt.in)
			if got != tt.want {
				t.Errorf("hideSecrets(%q) = %q, want %q", tt.in, got, tt.want)
			}
			if again := hideSecrets(got); again != got {
				t.Errorf("hidden again: %q, want %q", again, got)
			}
		})
	}
}

// TestMissingLedger: only the ledger itself can be the ledger that is missing.
func TestMissingLedger(t *testing.T) {
	open := func(path string) error { _, err := os.Open(path); return fmt.Errorf("open ledger: %w", err) }
	directory := t.TempDir()
	ledger, other := directory+"/f.ledger", directory+"/other"
	var missing *missingLedgerError
	if err := ledgerError(ledger, open(ledger)); !errors.As(err, &missing) || missing.path != ledger {
		t.Errorf("the ledger is missing: %v", err)
	}
	if err := ledgerError(ledger, open(other)); errors.As(err, &missing) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another file is missing: %v", err)
	}
	if err := ledgerError(ledger, nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
}

func TestQuoteArg(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                `"plain"`,
		"a\nb\x1b":             `"a\nb\x1b"`,
		"-Xpassword=p4ss":      `"-Xpassword=[hidden]"`,
		"f\xff":                `"f\xff"`,
		"C:\\x":                `"C:\x"`,
		"\u202eevil":           `"\u202eevil"`,
		"\u00e9t\u00e9 \u4e2d": "\"\u00e9t\u00e9 \u4e2d\"",
	} {
		if got := quoteArg(in); got != want {
			t.Errorf("quoteArg(%q) = %s, want %s", in, got, want)
		}
	}
	// A long word is cut between characters, whatever their length.
	for shift := range 4 {
		got := quoteArg(strings.Repeat("x", shift) + strings.Repeat("\U0001f600", 1000))
		if len(got) > maxEcho+5 || !strings.HasSuffix(got, `..."`) || !utf8.ValidString(got) || strings.Contains(got, `\x`) {
			t.Errorf("quoteArg of a long word = %s, want at most %d bytes", got, maxEcho)
		}
	}
	if got := quoteArg(strings.Repeat("\xbf", 200)); len(got) > 5*maxEcho {
		t.Errorf("quoteArg of bytes that begin no character = %d bytes", len(got))
	}
}
