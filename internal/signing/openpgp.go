package signing

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// longest is how long gpg may take.
const longest = 30 * time.Second

type gpgSigner struct {
	path string
	key  []byte
}

// OpenPGP makes a signer from an exported secret key. It uses the gpg program, which
// has the key in a folder that exists while it signs. NotReady means that there is no
// gpg, BadConfig says what is wrong with the key.
func OpenPGP(ctx context.Context, key []byte) (Signer, error) {
	path, err := exec.LookPath("gpg")
	if err != nil {
		return nil, task.Wrap(task.NotReady, err, "the gpg program is missing").WithMend("install GnuPG, or sign with an SSH key")
	}
	signer := gpgSigner{path, key}
	if _, err := signer.Sign(ctx, []byte("test")); err != nil {
		return nil, task.Wrap(task.BadConfig, err, "the file has no OpenPGP secret key that can sign").
			WithMend("export one without a passphrase with gpg --export-secret-keys --armor")
	}
	return signer, nil
}

// Sign implements Signer.
func (g gpgSigner) Sign(ctx context.Context, text []byte) (string, error) {
	return g.with(ctx, text, "--armor", "--detach-sign")
}

// Public implements Signer.
func (g gpgSigner) Public(ctx context.Context) (string, error) {
	return g.with(ctx, nil, "--armor", "--export")
}

// with runs gpg with the key in a folder of its own.
func (g gpgSigner) with(ctx context.Context, input []byte, args ...string) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	home, err := os.MkdirTemp("", "toryo-gpg-") // of this user only; a socket in it has to have a short path
	if err != nil {
		return "", task.Wrap(task.Internal, err, "cannot make a folder for gpg")
	}
	defer func() {
		ending, done := context.WithTimeout(context.WithoutCancel(ctx), longest)
		defer done()
		// The agent that gpg starts holds the key.
		_, _ = g.run(ending, filepath.Join(filepath.Dir(g.path), "gpgconf"), home, nil, "--kill", "all")
		if failed := os.RemoveAll(home); failed != nil && err == nil {
			err = task.Wrap(task.Internal, failed, "cannot remove the folder of gpg")
		}
	}()
	if _, err := g.run(ctx, g.path, home, g.key, "--batch", "--no-tty", "--quiet", "--import"); err != nil {
		return "", err
	}
	return g.run(ctx, g.path, home, input, append([]string{"--batch", "--no-tty", "--quiet", "--pinentry-mode", "error"}, args...)...)
}

func (gpgSigner) run(ctx context.Context, program, home string, input []byte, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = []string{"GNUPGHOME=" + home, "HOME=" + home, "LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	command.Stdin, command.Dir = bytes.NewReader(input), home
	var trouble strings.Builder
	command.Stderr = &trouble
	output, err := command.Output()
	if err != nil {
		said := strings.Join(strings.Fields(trouble.String()), " ")
		return "", task.Errorf(task.Internal, "gpg: %v: %.300s", err, said)
	}
	return string(output), nil
}
