package connect

import (
	"bytes"
	"crypto/sha1"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

// Java's own key store (sun.security.provider.JavaKeyStore), all numbers
// big-endian:
//
//	magic feedfeed, version 1 or 2, number of entries    4 bytes each
//	per entry: tag 1 (key) or 2 (certificate)            4 bytes
//	           alias                                     2 bytes of length, text
//	           time                                      8 bytes
//	           tag 1: EncryptedPrivateKeyInfo            4 bytes of length, DER
//	                  number of certificates, each       4 bytes
//	           a certificate: type (in version 2)        2 bytes of length, text
//	                          X.509                      4 bytes of length, DER
//	SHA-1 of the password in UTF-16, "Mighty Aphrodite", and all of the above
type jksEntry struct {
	alias string
	key   []byte   // EncryptedPrivateKeyInfo; nil for a trusted certificate
	chain [][]byte // DER
}

// parseJKS reads a store. Without a password its digest is not checked, as in
// Java.
func parseJKS(data []byte, password string) ([]jksEntry, error) {
	if len(data) < sha1.Size {
		return nil, errJKSDamaged
	}
	body, digest := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	if password != "" {
		sum := sha1.Sum(bytes.Join([][]byte{utf16Bytes(password), []byte("Mighty Aphrodite"), body}, nil))
		if subtle.ConstantTimeCompare(sum[:], digest) == 0 {
			return nil, errWrongPassword
		}
	}
	r := &jksReader{rest: body}
	r.bytes(4) // the magic number
	version, count := r.uint32(), r.uint32()
	if r.failed || version < 1 || version > 2 {
		return nil, errJKSDamaged
	}
	var entries []jksEntry
	for range count {
		if r.failed {
			break
		}
		entries = append(entries, r.entry(version))
	}
	if r.failed || len(r.rest) > 0 {
		return nil, errJKSDamaged
	}
	return entries, nil
}

var errJKSDamaged = errors.New("the store is damaged, or cut short")

// utf16Bytes is a password as Java's stores hash it.
func utf16Bytes(text string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = append(b, byte(unit>>8), byte(unit))
	}
	return b
}

// A jksReader takes values off a store. Once it has failed it returns nothing.
type jksReader struct {
	rest   []byte
	failed bool
}

func (r *jksReader) bytes(n uint32) []byte {
	if r.failed || uint64(n) > uint64(len(r.rest)) {
		r.failed = true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *jksReader) uint32() uint32 {
	b := r.bytes(4)
	if r.failed {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func (r *jksReader) text() string {
	b := r.bytes(2)
	if r.failed {
		return ""
	}
	return string(r.bytes(uint32(binary.BigEndian.Uint16(b))))
}

func (r *jksReader) entry(version uint32) jksEntry {
	tag := r.uint32()
	e := jksEntry{alias: r.text()}
	r.bytes(8) // the time
	count := uint32(1)
	switch tag {
	case 1:
		e.key = r.bytes(r.uint32())
		count = r.uint32()
	case 2:
	default:
		r.failed = true
	}
	for range count {
		if r.failed {
			break
		}
		if version == 2 {
			r.text() // the type, X.509
		}
		e.chain = append(e.chain, r.bytes(r.uint32()))
	}
	return e
}

// jksTrusted returns what JSSE trusts of a store (TrustStoreUtil): trusted
// entries, and the own certificate of each key entry.
func jksTrusted(data []byte, password string) (trusted []*x509.Certificate, err error) {
	entries, err := parseJKS(data, password)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if len(e.chain) == 0 {
			continue
		}
		c, err := x509.ParseCertificate(e.chain[0])
		if err != nil {
			return nil, fmt.Errorf("certificate of entry %q: %w", e.alias, err)
		}
		trusted = append(trusted, c)
	}
	return trusted, nil
}

// jksPairs returns all keys of a store, whose password is that of the store
// unless there is another (DefaultSslEngineFactory).
func jksPairs(data []byte, password, keyPassword string) (pairs []tls.Certificate, err error) {
	entries, err := parseJKS(data, password)
	if err != nil {
		return nil, err
	}
	if keyPassword == "" {
		keyPassword = password
	}
	for _, e := range entries {
		if e.key == nil {
			continue
		}
		pair, err := e.pair(keyPassword)
		if err != nil {
			return nil, fmt.Errorf("key of entry %q: %w", e.alias, err)
		}
		pairs = append(pairs, pair)
	}
	if len(pairs) == 0 {
		return nil, errors.New("holds no private key")
	}
	return pairs, nil
}

func (e jksEntry) pair(password string) (tls.Certificate, error) {
	der, err := jksDecrypt(e.key, password)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := parseKey(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	chain := make([]*x509.Certificate, len(e.chain))
	for i, c := range e.chain {
		if chain[i], err = x509.ParseCertificate(c); err != nil {
			return tls.Certificate{}, err
		}
	}
	return keyPair(key, chain)
}

// jksDecrypt undoes sun.security.provider.KeyProtector: a stream of SHA-1 sums,
// each of the password and the one before, beginning with the salt, is laid over
// the key; behind it stands the sum of password and key.
func jksDecrypt(der []byte, password string) ([]byte, error) {
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	if _, err := asn1.Unmarshal(der, &info); err != nil || len(info.Data) < 2*sha1.Size {
		return nil, errJKSDamaged
	}
	if id := info.Algorithm.Algorithm.String(); id != "1.3.6.1.4.1.42.2.17.1.1" {
		return nil, fmt.Errorf("it is encrypted with algorithm %s, which no store of this type has", id)
	}
	secret := utf16Bytes(password)
	sum, check := info.Data[:sha1.Size], info.Data[len(info.Data)-sha1.Size:]
	key := bytes.Clone(info.Data[sha1.Size : len(info.Data)-sha1.Size])
	for start := 0; start < len(key); start += sha1.Size {
		next := sha1.Sum(append(bytes.Clone(secret), sum...))
		sum = next[:]
		subtle.XORBytes(key[start:], key[start:], sum)
	}
	if got := sha1.Sum(append(secret, key...)); subtle.ConstantTimeCompare(got[:], check) == 0 {
		return nil, errors.New("its password, ssl.key.password or else that of the store, is wrong")
	}
	return key, nil
}
