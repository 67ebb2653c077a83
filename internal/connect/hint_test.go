package connect

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
)

// TestHintOfACertificateThatExpired: the certificate is named, and not the login.
func TestHintOfACertificateThatExpired(t *testing.T) {
	for reason, want := range map[x509.InvalidReason]string{x509.Expired: "has expired", x509.NotAuthorizedToSign: "is not acceptable"} {
		err := &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: reason}}
		if got := (&access{}).hint(err); !strings.Contains(got, want) || !strings.Contains(got, "certificate") {
			t.Errorf("hint %q, want %q in it", got, want)
		}
	}
}
