package connect

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
)

// What a PKCS12 store is made of (RFC 7292). Package go-pkcs12 reads stores, but does
// not tell of certificates beside a key which of them Java trusts.
type (
	pkcs12Content struct {
		Type    asn1.ObjectIdentifier
		Content asn1.RawValue `asn1:"tag:0,explicit,optional"`
	}
	pkcs12Encrypted struct {
		Version int
		Info    struct {
			Type      asn1.ObjectIdentifier
			Algorithm pkix.AlgorithmIdentifier
			Data      []byte `asn1:"tag:0,optional"`
		}
	}
	pkcs12Bag struct {
		Type       asn1.ObjectIdentifier
		Value      asn1.RawValue     `asn1:"tag:0,explicit"`
		Attributes []pkcs12Attribute `asn1:"set,optional"`
	}
	pkcs12Attribute struct {
		Type   asn1.ObjectIdentifier
		Values asn1.RawValue
	}
)

// pkcs12Imported returns the certificates of a store that were imported as trusted
// ones; false if it is made in a way that is not known here.
func pkcs12Imported(data []byte, password string) ([]*x509.Certificate, bool) {
	var store struct {
		Version int
		Safe    pkcs12Content
		MAC     asn1.RawValue `asn1:"optional"`
	}
	var whole []byte
	var parts []pkcs12Content
	if !unmarshalAll(data, &store) || !unmarshalAll(store.Safe.Content.Bytes, &whole) || !unmarshalAll(whole, &parts) {
		return nil, false
	}
	var trusted []*x509.Certificate
	for _, part := range parts {
		var bags []pkcs12Bag
		text, ok := part.open(password)
		if !ok || !unmarshalAll(text, &bags) {
			return nil, false
		}
		for _, bag := range bags {
			if c, ok := bag.trusted(); ok {
				trusted = append(trusted, c)
			}
		}
	}
	return trusted, true
}

func unmarshalAll(data []byte, to any) bool {
	rest, err := asn1.Unmarshal(data, to)
	return err == nil && len(rest) == 0
}

// open returns the bags of a part, encrypted or not.
func (c pkcs12Content) open(password string) ([]byte, bool) {
	switch c.Type.String() {
	case "1.2.840.113549.1.7.1": // data
		var text []byte
		ok := unmarshalAll(c.Content.Bytes, &text)
		return text, ok
	case "1.2.840.113549.1.7.6": // encryptedData
		var e pkcs12Encrypted
		if !unmarshalAll(c.Content.Bytes, &e) {
			return nil, false
		}
		text, err := decrypt(e.Info.Algorithm, e.Info.Data, password)
		return text, err == nil
	}
	return nil, false
}

// trusted returns the certificate in a bag that has Java's attribute of trusted ones.
func (b pkcs12Bag) trusted() (*x509.Certificate, bool) {
	java := false
	for _, a := range b.Attributes {
		java = java || a.Type.String() == "2.16.840.1.113894.746875.1.1"
	}
	var holds struct {
		Type asn1.ObjectIdentifier
		Data []byte `asn1:"tag:0,explicit"`
	}
	if !java || b.Type.String() != "1.2.840.113549.1.12.10.1.3" || !unmarshalAll(b.Value.Bytes, &holds) {
		return nil, false
	}
	c, err := x509.ParseCertificate(holds.Data)
	return c, err == nil
}
