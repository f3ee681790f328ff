package receipt

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/toryo-dev/toryo/internal/task"
)

// PublicKey checks receipts.
type PublicKey struct {
	id  string
	key ed25519.PublicKey
}

// PrivateKey signs receipts.
type PrivateKey struct {
	PublicKey
	key ed25519.PrivateKey
}

var (
	_ dsse.Verifier       = PublicKey{}
	_ dsse.SignerVerifier = PrivateKey{}
)

// NewKey makes a key.
func NewKey() (PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(nil) // nil means the system's random numbers
	if err != nil {
		return PrivateKey{}, task.Wrap(task.Internal, err, "a key for receipts cannot be made")
	}
	return private(key)
}

func private(key ed25519.PrivateKey) (PrivateKey, error) {
	open, is := key.Public().(ed25519.PublicKey)
	if !is {
		return PrivateKey{}, task.Errorf(task.Internal, "the key for receipts is not an ed25519 key")
	}
	public, err := public(open)
	return PrivateKey{public, key}, err
}

// public is a key with its id: the SHA-256 of the key in DER, in hexadecimal.
func public(key ed25519.PublicKey) (PublicKey, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return PublicKey{}, task.Wrap(task.Internal, err, "the id of a key cannot be made")
	}
	sum := sha256.Sum256(der)
	return PublicKey{hex.EncodeToString(sum[:]), key}, nil
}

// ID names the key.
func (k PublicKey) ID() string { return k.id }

// KeyID implements dsse.Signer and dsse.Verifier.
func (k PublicKey) KeyID() (string, error) { return k.id, nil }

// Public implements dsse.Verifier.
func (k PublicKey) Public() crypto.PublicKey { return k.key }

var errSignature = errors.New("the signature is not this key's")

// Verify implements dsse.Verifier.
func (k PublicKey) Verify(_ context.Context, data, signature []byte) error {
	if !ed25519.Verify(k.key, data, signature) {
		return errSignature
	}
	return nil
}

// Sign implements dsse.Signer.
func (k PrivateKey) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.key, data), nil
}

// Encode is the private key in PKCS #8, as it is kept.
func (k PrivateKey) Encode() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.key)
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "the key for receipts cannot be written down")
	}
	return der, nil
}

// ParsePrivate reads what Encode wrote.
func ParsePrivate(der []byte) (PrivateKey, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	key, is := parsed.(ed25519.PrivateKey)
	if err != nil || !is {
		return PrivateKey{}, task.Wrap(task.Internal, err, "the key for receipts that is kept cannot be read")
	}
	return private(key)
}

// publicBlock is the type of a public key in PEM.
const publicBlock = "PUBLIC KEY"

// PEM writes public keys one after the other.
func PEM(keys ...PublicKey) ([]byte, error) {
	var all []byte
	for _, key := range keys {
		der, err := x509.MarshalPKIXPublicKey(key.key)
		if err != nil {
			return nil, task.Wrap(task.Internal, err, "a public key cannot be written down")
		}
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der})...)
	}
	return all, nil
}

// ParsePEM reads public keys. There has to be one at least, and each an ed25519 key.
func ParsePEM(text []byte) ([]PublicKey, error) {
	var keys []PublicKey
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != publicBlock {
			return nil, task.Errorf(task.Invalid, "there is a %.40q where public keys are expected", block.Type).
				WithHint("give the public key, as toryo receipt key prints it")
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		key, is := parsed.(ed25519.PublicKey)
		if err != nil || !is {
			return nil, task.Errorf(task.Invalid, "there is a key that is not an ed25519 public key").
				WithHint("give the public key, as toryo receipt key prints it")
		}
		one, err := public(key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, one)
	}
	if len(keys) == 0 {
		return nil, task.Errorf(task.Invalid, "there is no public key").WithHint("give the public key, as toryo receipt key prints it")
	}
	return keys, nil
}
