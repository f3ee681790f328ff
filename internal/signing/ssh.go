package signing

import (
	"context"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"errors"

	"golang.org/x/crypto/ssh"

	"github.com/toryo-dev/toryo/internal/task"
)

// Signer signs the text of a commit and returns what git calls its signature.
type Signer interface {
	Sign(ctx context.Context, text []byte) (string, error)
	// Public is the public key, as a forge is given it.
	Public(ctx context.Context) (string, error)
}

// sshNamespace says what a signature is for, so that it is good for nothing else.
const sshNamespace = "git"

type sshSigner struct{ key ssh.Signer }

// SSH makes a signer from a private key in the form of OpenSSH or PEM. BadConfig says
// what is wrong with it.
func SSH(key []byte) (Signer, error) {
	parsed, err := ssh.ParsePrivateKey(key)
	if missing, is := errors.AsType[*ssh.PassphraseMissingError](err); is && missing != nil {
		return nil, task.Errorf(task.BadConfig, "the SSH key has a passphrase").WithHint("use a key without one, in a file that only Toryo can read")
	}
	if err != nil { // the error may quote what is in the file
		return nil, task.Errorf(task.BadConfig, "the file has no SSH private key").WithHint("make one with ssh-keygen -t ed25519")
	}
	return sshSigner{parsed}, nil
}

// Public implements Signer.
func (s sshSigner) Public(context.Context) (string, error) {
	return string(ssh.MarshalAuthorizedKey(s.key.PublicKey())), nil
}

// Sign implements Signer, by the format that OpenSSH describes in PROTOCOL.sshsig.
func (s sshSigner) Sign(_ context.Context, text []byte) (string, error) {
	const magic, version, algorithm = "SSHSIG", 1, "sha512"
	hash := sha512.Sum512(text)
	signed := append([]byte(magic), ssh.Marshal(struct{ Namespace, Reserved, Algorithm, Hash string }{
		sshNamespace, "", algorithm, string(hash[:]),
	})...)
	signature, err := s.sign(signed)
	if err != nil {
		return "", task.Wrap(task.Internal, err, "cannot sign a commit")
	}
	blob := append([]byte(magic), ssh.Marshal(struct {
		Version                                              uint32
		PublicKey, Namespace, Reserved, Algorithm, Signature string
	}{version, string(s.key.PublicKey().Marshal()), sshNamespace, "", algorithm, string(ssh.Marshal(signature))})...)
	return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob})), nil
}

// sign signs with the newest algorithm of the key: RSA keys have an old one too, which
// nobody accepts.
func (s sshSigner) sign(data []byte) (*ssh.Signature, error) {
	if with, is := s.key.(ssh.AlgorithmSigner); is && s.key.PublicKey().Type() == ssh.KeyAlgoRSA {
		return with.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512)
	}
	return s.key.Sign(rand.Reader, data)
}
