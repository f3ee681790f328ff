package signing

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// longest is how long gpg may take.
const longest = 30 * time.Second

type gpgSigner struct {
	path string
	key  []byte
	dir  string // where the folders are that have the key while it signs
}

const (
	// homes is how the folders are called.
	homes = "gpg-"
	// leftAfter is the age from which nobody uses a folder. Another server may share
	// the data directory.
	leftAfter = 4 * longest
)

// OpenPGP makes a signer from an exported secret key. It uses the gpg program, which
// has the key in a folder in dir that exists while it signs; dir is made if it is not
// there, for this user only. Folders that a process has left there are removed, now and
// whenever something is signed, and what gpg has started for them is ended.
// NotReady means that there is no gpg, BadConfig says what is wrong with the key.
func OpenPGP(ctx context.Context, dir string, key []byte) (Signer, error) {
	path, err := exec.LookPath("gpg")
	if err != nil {
		return nil, task.Wrap(task.NotReady, err, "the gpg program is missing").WithHint("install GnuPG, or sign with an SSH key")
	}
	signer := gpgSigner{path, key, dir}
	if err := signer.clean(ctx); err != nil {
		return nil, err // it is not the key's fault
	}
	if _, err := signer.Sign(ctx, []byte("test")); err != nil {
		return nil, task.Wrap(task.BadConfig, err, "the file has no OpenPGP secret key that can sign").
			WithHint("export one without a passphrase with gpg --export-secret-keys --armor")
	}
	return signer, nil
}

// clean makes the folder, and removes what a process has left in it.
func (g gpgSigner) clean(ctx context.Context) error {
	err := os.MkdirAll(g.dir, 0o700)
	if err == nil {
		err = os.Chmod(g.dir, 0o700) //nolint:gosec // a folder has to be entered
	}
	if err != nil {
		return task.Wrap(task.Internal, err, "cannot make a folder for gpg")
	}
	left, err := filepath.Glob(filepath.Join(g.dir, homes+"*"))
	if err != nil {
		return task.Wrap(task.Internal, err, "cannot list the folders of gpg")
	}
	for _, home := range left {
		if info, err := os.Stat(home); err != nil || time.Since(info.ModTime()) < leftAfter {
			continue
		}
		link, unlink, err := shortName(home)
		if err != nil {
			return err
		}
		err = g.remove(ctx, home, link)
		unlink()
		if err != nil {
			return err
		}
	}
	return nil
}

// remove ends the agent that gpg started for a folder, which holds the key, and removes
// the folder. Where there is a folder for sockets, gpg has one there that is named after
// the link.
func (g gpgSigner) remove(ctx context.Context, home, link string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	gpgconf := filepath.Join(filepath.Dir(g.path), "gpgconf")
	_, _ = g.run(ctx, gpgconf, link, nil, "--kill", "all")
	_, _ = g.run(ctx, gpgconf, link, nil, "--remove-socketdir")
	if err := os.RemoveAll(home); err != nil {
		return task.Wrap(task.Internal, err, "cannot remove the folder of gpg")
	}
	return nil
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
	if err := g.clean(ctx); err != nil {
		return "", err
	}
	home, err := os.MkdirTemp(g.dir, homes) // of this user only
	if err != nil {
		return "", task.Wrap(task.Internal, err, "cannot make a folder for gpg")
	}
	link, unlink, err := shortName(home)
	if err != nil {
		return "", errors.Join(err, os.Remove(home))
	}
	defer unlink()
	defer func() {
		if failed := g.remove(ctx, home, link); err == nil {
			err = failed
		}
	}()
	if _, err := g.run(ctx, g.path, link, g.key, "--batch", "--no-tty", "--quiet", "--import"); err != nil {
		return "", err
	}
	return g.run(ctx, g.path, link, input, append([]string{"--batch", "--no-tty", "--quiet", "--pinentry-mode", "error"}, args...)...)
}

// shortName makes a link to a folder. gpg has sockets in its folder, and the kernel takes
// no name of a socket that is longer than 107 bytes; a data directory may be anywhere.
// When the process is killed the link stays, which is no secret.
func shortName(folder string) (link string, remove func(), err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return "", nil, task.Wrap(task.Internal, err, "cannot name the folder of gpg")
	}
	in, err := os.MkdirTemp("/tmp", "toryo-")
	if err != nil {
		in, err = os.MkdirTemp("", "toryo-") // there may be no /tmp
	}
	if err != nil {
		return "", nil, task.Wrap(task.Internal, err, "cannot make a link for gpg")
	}
	remove = func() { _ = os.RemoveAll(in) } // of links it removes what they are, not where they lead
	link = filepath.Join(in, "h")
	if err := os.Symlink(folder, link); err != nil {
		remove()
		return "", nil, task.Wrap(task.Internal, err, "cannot make a link for gpg")
	}
	return link, remove, nil
}

func (gpgSigner) run(ctx context.Context, program, home string, input []byte, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = []string{"GNUPGHOME=" + home, "HOME=" + home, "LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	command.Stdin, command.Dir = bytes.NewReader(input), home
	command.WaitDelay = time.Second // what gpg has started may hold its output
	var trouble strings.Builder
	command.Stderr = &trouble
	output, err := command.Output()
	if err != nil {
		said := textfmt.OneLine(trouble.String())
		return "", task.Errorf(task.Internal, "gpg: %v: %.300s", err, said)
	}
	return string(output), nil
}
