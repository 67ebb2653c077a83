package connect

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
)

// maxIterations bounds the work that a key file can ask for; tools write 2,048 to
// 1,000,000.
const maxIterations = 2_000_000

// decryptKey opens an EncryptedPrivateKeyInfo (RFC 5958): PBES2, which tools of
// today write, and PBES1 (RFC 8018, RFC 7292), which alone Java 17 can read in a
// PEM file and which is therefore what is found in the field.
func decryptKey(der []byte, password string) ([]byte, error) {
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	if rest, err := asn1.Unmarshal(der, &info); err != nil || len(rest) > 0 {
		return nil, errors.New("the encrypted private key is not PKCS#8")
	}
	return decrypt(info.Algorithm, info.Data, password)
}

// decrypt opens data, in place.
func decrypt(algorithm pkix.AlgorithmIdentifier, data []byte, password string) ([]byte, error) {
	mode, err := keyCipher(algorithm, password)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 || len(data)%mode.BlockSize() != 0 {
		return nil, errors.New("the encrypted private key is cut short")
	}
	mode.CryptBlocks(data, data)
	return unpad(data, mode.BlockSize())
}

func unpad(data []byte, block int) ([]byte, error) {
	n := int(data[len(data)-1])
	if n == 0 || n > block || n > len(data) {
		return nil, errWrongPassword
	}
	for _, b := range data[len(data)-n:] {
		if int(b) != n {
			return nil, errWrongPassword
		}
	}
	return data[:len(data)-n], nil
}

// keyCipher makes the decrypter that an algorithm and a password stand for.
func keyCipher(a pkix.AlgorithmIdentifier, password string) (cipher.BlockMode, error) {
	switch a.Algorithm.String() {
	case "1.2.840.113549.1.5.13": // PBES2
		return pbes2(a.Parameters.FullBytes, password)
	case "1.2.840.113549.1.5.3": // pbeWithMD5AndDES-CBC
		return pbes1(a.Parameters.FullBytes, func(salt []byte, n int) (key, iv []byte) {
			return pbkdf1(md5.New(), password, salt, n)
		}, des.NewCipher)
	case "1.2.840.113549.1.5.10": // pbeWithSHA1AndDES-CBC
		return pbes1(a.Parameters.FullBytes, func(salt []byte, n int) (key, iv []byte) {
			return pbkdf1(sha1.New(), password, salt, n)
		}, des.NewCipher)
	case "1.2.840.113549.1.12.1.3": // pbeWithSHAAnd3-KeyTripleDES-CBC
		return pbes1(a.Parameters.FullBytes, func(salt []byte, n int) (key, iv []byte) {
			return pkcs12Derive(password, salt, n, 1, 24), pkcs12Derive(password, salt, n, 2, 8)
		}, des.NewTripleDESCipher)
	case "1.2.840.113549.1.12.1.4": // pbeWithSHAAnd2-KeyTripleDES-CBC
		return pbes1(a.Parameters.FullBytes, func(salt []byte, n int) (key, iv []byte) {
			key = pkcs12Derive(password, salt, n, 1, 16)
			return append(key, key[:8]...), pkcs12Derive(password, salt, n, 2, 8)
		}, des.NewTripleDESCipher)
	}
	return nil, fmt.Errorf("the private key is encrypted with algorithm %s, which is not supported (PBES2 with AES or 3DES, and PBES1 with 3DES or DES are)", a.Algorithm)
}

func pbes1(parameters []byte, derive func(salt []byte, n int) (key, iv []byte), newCipher func([]byte) (cipher.Block, error)) (cipher.BlockMode, error) {
	var p struct {
		Salt       []byte
		Iterations int
	}
	if _, err := asn1.Unmarshal(parameters, &p); err != nil {
		return nil, fmt.Errorf("parameters of the private key's encryption: %w", err)
	}
	if p.Iterations < 1 || p.Iterations > maxIterations {
		return nil, fmt.Errorf("the private key asks for %d iterations", p.Iterations)
	}
	key, iv := derive(p.Salt, p.Iterations)
	block, err := newCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewCBCDecrypter(block, iv), nil
}

// pbkdf1 derives a key of DES and its initialisation vector (RFC 8018, 5.1).
func pbkdf1(h hash.Hash, password string, salt []byte, n int) (key, iv []byte) {
	h.Write([]byte(password))
	h.Write(salt)
	sum := h.Sum(nil)
	for range n - 1 {
		h.Reset()
		h.Write(sum)
		sum = h.Sum(nil)
	}
	return sum[:8], sum[8:16]
}

// pkcs12Derive derives bytes of SHA-1 by RFC 7292, appendix B.2; id 1 is for keys,
// 2 for initialisation vectors.
func pkcs12Derive(password string, salt []byte, n int, id byte, size int) []byte {
	const u, v = sha1.Size, sha1.BlockSize
	input := append(repeatTo(salt, v), repeatTo(append(utf16Bytes(password), 0, 0), v)...)
	diversifier := make([]byte, v)
	for i := range diversifier {
		diversifier[i] = id
	}
	var out []byte
	for len(out) < size {
		sum := sha1.Sum(append(diversifier[:v:v], input...))
		for range n - 1 {
			sum = sha1.Sum(sum[:])
		}
		out = append(out, sum[:u]...)
		addOne(input, repeatTo(sum[:], v)[:v])
	}
	return out[:size]
}

// repeatTo repeats b up to a multiple of v bytes.
func repeatTo(b []byte, v int) []byte {
	size := (len(b) + v - 1) / v * v
	out := make([]byte, size)
	for i := range out {
		out[i] = b[i%len(b)]
	}
	return out
}

// addOne adds b+1 to every block of input as a big-endian number, modulo its size.
func addOne(input, b []byte) {
	for start := 0; start < len(input); start += len(b) {
		carry := 1
		for i := len(b) - 1; i >= 0; i-- {
			carry += int(input[start+i]) + int(b[i])
			input[start+i], carry = byte(carry), carry>>8
		}
	}
}

// pbes2 reads RFC 8018, appendix A.4.
func pbes2(parameters []byte, password string) (cipher.BlockMode, error) {
	var p struct {
		KDF, Encryption pkix.AlgorithmIdentifier
	}
	if _, err := asn1.Unmarshal(parameters, &p); err != nil {
		return nil, fmt.Errorf("parameters of the private key's encryption: %w", err)
	}
	size, newCipher, err := pbes2Cipher(p.Encryption.Algorithm)
	if err != nil {
		return nil, err
	}
	key, err := pbes2Key(p.KDF, password, size)
	if err != nil {
		return nil, err
	}
	block, err := newCipher(key)
	if err != nil {
		return nil, err
	}
	var iv []byte
	if _, err := asn1.Unmarshal(p.Encryption.Parameters.FullBytes, &iv); err != nil || len(iv) != block.BlockSize() {
		return nil, errors.New("the private key's encryption has no valid initialisation vector")
	}
	return cipher.NewCBCDecrypter(block, iv), nil
}

func pbes2Cipher(id asn1.ObjectIdentifier) (size int, newCipher func([]byte) (cipher.Block, error), err error) {
	switch id.String() {
	case "2.16.840.1.101.3.4.1.2":
		return 16, aes.NewCipher, nil
	case "2.16.840.1.101.3.4.1.22":
		return 24, aes.NewCipher, nil
	case "2.16.840.1.101.3.4.1.42":
		return 32, aes.NewCipher, nil
	case "1.2.840.113549.3.7":
		return 24, des.NewTripleDESCipher, nil
	case "1.3.14.3.2.7":
		return 8, des.NewCipher, nil
	}
	return 0, nil, fmt.Errorf("the private key is encrypted with cipher %s, which is not supported (AES-CBC, 3DES-CBC and DES-CBC are)", id)
}

func pbes2Key(kdf pkix.AlgorithmIdentifier, password string, size int) ([]byte, error) {
	if id := kdf.Algorithm.String(); id != "1.2.840.113549.1.5.12" {
		return nil, fmt.Errorf("the private key's password goes through algorithm %s, which is not supported (PBKDF2 is)", id)
	}
	var p struct {
		Salt       []byte
		Iterations int
		Size       int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
	if _, err := asn1.Unmarshal(kdf.Parameters.FullBytes, &p); err != nil {
		return nil, fmt.Errorf("parameters of the private key's encryption: %w", err)
	}
	if p.Iterations < 1 || p.Iterations > maxIterations {
		return nil, fmt.Errorf("the private key asks for %d iterations", p.Iterations)
	}
	switch p.PRF.Algorithm.String() {
	case "", "1.2.840.113549.2.7":
		return pbkdf2.Key(sha1.New, password, p.Salt, p.Iterations, size)
	case "1.2.840.113549.2.8":
		return pbkdf2.Key(sha256.New224, password, p.Salt, p.Iterations, size)
	case "1.2.840.113549.2.9":
		return pbkdf2.Key(sha256.New, password, p.Salt, p.Iterations, size)
	case "1.2.840.113549.2.10":
		return pbkdf2.Key(sha512.New384, password, p.Salt, p.Iterations, size)
	case "1.2.840.113549.2.11":
		return pbkdf2.Key(sha512.New, password, p.Salt, p.Iterations, size)
	}
	return nil, fmt.Errorf("the private key's password goes through %s, which is not supported (HMAC with SHA-1 and SHA-2 are)", p.PRF.Algorithm)
}
