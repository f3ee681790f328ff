package signing_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/signing"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// run runs a program that checks what we made.
func run(t *testing.T, dir, input, name string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		testkit.LeaveOut(t, name)
	}
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Stdin = dir, strings.NewReader(input)
	command.Env = append(os.Environ(), "GNUPGHOME="+dir, "LC_ALL=C")
	output, err := command.CombinedOutput()
	return string(output), err
}

func must(t *testing.T, output string, err error) string {
	t.Helper()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return output
}

func sshKey(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	output, err := run(t, dir, "", "ssh-keygen", append([]string{"-q", "-f", "key"}, args...)...)
	must(t, output, err)
	key, err := os.ReadFile(filepath.Join(dir, "key"))
	must(t, "", err)
	return key
}

// OpenSSH accepts what we sign, for git only, and nothing that was changed.
func TestSSHSignaturesAreOpenSSHs(t *testing.T) {
	t.Parallel()
	for kind, args := range map[string][]string{
		"ed25519": {"-t", "ed25519"}, "rsa": {"-t", "rsa", "-b", "2048"}, "ecdsa": {"-t", "ecdsa"}, "pem": {"-t", "rsa", "-b", "2048", "-m", "PEM"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			signer, err := signing.SSH(sshKey(t, dir, append(args, "-N", "")...))
			must(t, "", err)
			const text = "tree 0\n\na commit\n"
			signature, err := signer.Sign(t.Context(), []byte(text))
			must(t, "", err)
			public, err := signer.Public(t.Context())
			must(t, "", err)
			must(t, "", os.WriteFile(filepath.Join(dir, "signature"), []byte(signature), 0o600))
			must(t, "", os.WriteFile(filepath.Join(dir, "allowed"), []byte("bot@example.org "+public), 0o600))
			verify := func(text, namespace string) error {
				_, err := run(t, dir, text, "ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "bot@example.org", "-n", namespace, "-s", "signature")
				return err
			}
			if err := verify(text, "git"); err != nil {
				t.Errorf("OpenSSH does not accept it: %v\n%s", err, signature)
			}
			if verify(text+"x", "git") == nil || verify(text, "file") == nil {
				t.Error("it is good for something else too")
			}
		})
	}
}

func TestSSHKeysThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{
		"a passphrase": sshKey(t, t.TempDir(), "-t", "ed25519", "-N", "a passphrase"), "nothing": nil, "other text": []byte("secret-of-another-kind"),
	} {
		_, err := signing.SSH(key)
		if task.CodeOf(err) != task.BadConfig || strings.Contains(err.Error(), "secret-of-another-kind") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// GnuPG accepts what we sign, and nothing is left of the key.
func TestOpenPGPSignaturesAreGnuPGs(t *testing.T) {
	elsewhere := t.TempDir()
	t.Setenv("TMPDIR", elsewhere)
	dir, err := os.MkdirTemp("/tmp", "gpg-test-") //nolint:usetesting // a socket in it has to have a short path
	must(t, "", err)
	t.Cleanup(func() {
		_, _ = run(t, dir, "", "gpgconf", "--kill", "all")
		_ = os.RemoveAll(dir)
	})
	gpg := func(input string, args ...string) string {
		output, err := run(t, dir, input, "gpg", append([]string{"--batch", "--quiet", "--no-tty"}, args...)...)
		return must(t, output, err)
	}
	gpg("", "--passphrase", "", "--quick-gen-key", "Bot <bot@example.org>", "ed25519", "sign")
	// An earlier process was ended while it signed: its folder is there, and an agent
	// that gpg started for it.
	scratch := filepath.Join(dir, "data", "keys")
	left := filepath.Join(scratch, "gpg-123")
	must(t, "", os.MkdirAll(left, 0o700))
	_, err = run(t, left, "", "gpgconf", "--launch", "gpg-agent")
	must(t, "", err)
	socket, err := run(t, left, "", "gpgconf", "--list-dirs", "agent-socket")
	must(t, "", err)
	agent, err := net.DialTimeout("unix", strings.TrimSpace(socket), time.Minute)
	if err != nil {
		t.Fatalf("no agent was started: %v", err)
	}
	defer func() { _ = agent.Close() }()
	hourAgo := time.Now().Add(-time.Hour)
	must(t, "", os.Chtimes(left, hourAgo, hourAgo))
	young := filepath.Join(scratch, "gpg-124") // of another server that signs now
	must(t, "", os.Mkdir(young, 0o700))
	signer, err := signing.OpenPGP(t.Context(), scratch, []byte(gpg("", "--armor", "--export-secret-keys")))
	must(t, "", err)
	if _, err := io.Copy(io.Discard, agent); err != nil { // which ends when the agent does
		t.Errorf("the agent: %v", err)
	}
	if info, err := os.Stat(scratch); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	// A data directory may have a longer path than a socket.
	far := filepath.Join(dir, strings.Repeat("long", 40))
	must(t, "", os.Mkdir(far, 0o700))
	_, err = signing.OpenPGP(t.Context(), far, []byte(gpg("", "--armor", "--export-secret-keys")))
	must(t, "", err)
	signature, err := signer.Sign(t.Context(), []byte("a commit\n"))
	must(t, "", err)
	must(t, "", os.WriteFile(filepath.Join(dir, "signature"), []byte(signature), 0o600))
	gpg("a commit\n", "--verify", "signature", "-")
	if output, err := run(t, dir, "another\n", "gpg", "--batch", "--verify", "signature", "-"); err == nil {
		t.Errorf("it is good for another text: %s", output)
	}
	must(t, "", os.Remove(young))
	for _, folder := range []string{scratch, elsewhere} {
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("there are left %v, %v", left, err)
		}
	}
	if public, err := signer.Public(t.Context()); err != nil || !strings.Contains(public, "PUBLIC KEY") {
		t.Errorf("the public key is %q, %v", public, err)
	}
	if _, err := signing.OpenPGP(t.Context(), scratch, []byte("no key")); task.CodeOf(err) != task.BadConfig {
		t.Errorf("what is no key: %v", err)
	}
}
