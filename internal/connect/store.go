package connect

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"software.sslmate.com/src/go-pkcs12"
)

// A store is where keys or certificates are: a file, or text in the settings.
// It is read anew for every connection, so that a rotated file is used.
type store struct {
	key, where  string // of the setting that names it
	path        string // empty if the text is inline
	pem         secret // certificates, inline
	privateKey  secret // PEM, inline; nil for trust stores
	password    secret // of the store
	keyPassword secret // of the key in it
}

// A StoreError reports a key or trust store that cannot be used. It holds no
// secret.
type StoreError struct {
	Key, Where string // the setting that names the store
	Path       string // empty if the store is in the setting itself
	Err        error
}

func (e *StoreError) Error() string {
	name := e.Key
	if e.Where != "" {
		name += " (" + e.Where + ")"
	}
	if e.Path != "" {
		name += ", file " + e.Path
	}
	return fmt.Sprintf("%s: %v", name, e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

func (s *store) fail(err error) error {
	return &StoreError{Key: s.key, Where: s.where, Path: s.path, Err: err}
}

// A storeFormat is told from a file's first bytes: keytool writes PKCS12 into
// files named .jks, and ssl.keystore.type is often wrong without harm in Java,
// which looks at the bytes as well (keystore.type.compat).
type storeFormat int

const (
	formatPEM storeFormat = iota
	formatJKS
	formatJCEKS
	formatPKCS12
)

func formatOf(data []byte) storeFormat {
	switch {
	case bytes.HasPrefix(data, []byte{0xfe, 0xed, 0xfe, 0xed}):
		return formatJKS
	case bytes.HasPrefix(data, []byte{0xce, 0xce, 0xce, 0xce}):
		return formatJCEKS
	case bytes.HasPrefix(data, []byte{0x30}):
		return formatPKCS12
	}
	return formatPEM
}

var errJCEKS = errors.New("the store is of type JCEKS, which is not supported: keytool -importkeystore -deststoretype pkcs12 makes a PKCS12 store of it")

// trusted reads a trust store.
func (s *store) trusted() ([]*x509.Certificate, error) {
	certificates, err := s.readTrusted()
	if err == nil && len(certificates) == 0 {
		err = errors.New("holds no trusted certificate")
	}
	if err != nil {
		return nil, s.fail(err)
	}
	return certificates, nil
}

func (s *store) readTrusted() ([]*x509.Certificate, error) {
	if s.path == "" {
		return pemCertificates(s.pem.reveal())
	}
	data, err := readFile(s.path)
	if err != nil {
		return nil, err
	}
	switch formatOf(data) {
	case formatJKS:
		return jksTrusted(data, s.password.reveal())
	case formatPKCS12:
		return pkcs12Trusted(data, s.password.reveal())
	case formatJCEKS:
		return nil, errJCEKS
	case formatPEM:
	}
	return pemCertificates(string(data))
}

// keyPairs reads a key store.
func (s *store) keyPairs() ([]tls.Certificate, error) {
	pairs, err := s.readKeyPairs()
	if err != nil {
		return nil, s.fail(err)
	}
	return pairs, nil
}

func (s *store) readKeyPairs() ([]tls.Certificate, error) {
	if s.path == "" {
		return pemPair(s.privateKey.reveal(), s.pem.reveal(), s.keyPassword)
	}
	data, err := readFile(s.path)
	if err != nil {
		return nil, err
	}
	switch formatOf(data) {
	case formatJKS:
		return jksPairs(data, s.password.reveal(), s.keyPassword.reveal())
	case formatPKCS12:
		return s.pkcs12Pair(data)
	case formatJCEKS:
		return nil, errJCEKS
	case formatPEM:
	}
	return pemPair(string(data), string(data), s.keyPassword)
}

// readFile is os.ReadFile without the path, which a StoreError has.
func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	var failed *os.PathError
	if errors.As(err, &failed) {
		return nil, failed.Err
	}
	return data, err
}

func pemPair(key, certificates string, password secret) ([]tls.Certificate, error) {
	private, err := pemKey(key, password)
	if err != nil {
		return nil, err
	}
	chain, err := pemCertificates(certificates)
	if err != nil {
		return nil, err
	}
	pair, err := keyPair(private, chain)
	return []tls.Certificate{pair}, err
}

// pkcs12Trusted returns the certificates that Java would trust: those with its
// attribute, and the one that belongs to a key, without the rest of its chain
// (sun.security.validator.TrustStoreUtil).
func pkcs12Trusted(data []byte, password string) ([]*x509.Certificate, error) {
	trusted, err := pkcs12.DecodeTrustStore(data, password)
	if err == nil {
		return trusted, nil
	}
	if wrongPKCS12Password(err) {
		return nil, pkcs12PasswordError(password)
	}
	_, own, others, mixed := pkcs12.DecodeChain(data, password)
	if mixed != nil {
		return nil, fmt.Errorf("%w: Java trusts only certificates that were imported as such: keytool -importcert -keystore FILE -file CA makes a trust store that works", err)
	}
	if imported, ok := pkcs12Imported(data, password); ok {
		others = imported
	}
	return append(others, own), nil
}

func (s *store) pkcs12Pair(data []byte) ([]tls.Certificate, error) {
	key, own, others, err := pkcs12.DecodeChain(data, s.password.reveal())
	if wrongPKCS12Password(err) {
		return nil, pkcs12PasswordError(s.password.reveal())
	}
	if err != nil {
		return nil, err
	}
	pair, err := keyPair(key, append([]*x509.Certificate{own}, others...))
	return []tls.Certificate{pair}, err
}

func wrongPKCS12Password(err error) bool {
	return errors.Is(err, pkcs12.ErrIncorrectPassword) || errors.Is(err, pkcs12.ErrDecryption)
}

func pkcs12PasswordError(password string) error {
	if password == "" {
		return errors.New("the store is encrypted, and its password is not set")
	}
	return errWrongPassword
}
