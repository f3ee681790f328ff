package program

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// needBubblewrap leaves a test out where there are no sandboxes.
func needBubblewrap(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
}

// worker is a toryo agent that was started.
type worker struct {
	*exec.Cmd
	lines  chan string
	stderr *strings.Builder
}

func startWorker(t testing.TB, p place, args ...string) *worker {
	t.Helper()
	w := &worker{Cmd: p.command(t, append([]string{"agent"}, args...)...), lines: make(chan string, 10), stderr: new(strings.Builder)}
	w.Stderr = w.stderr
	said, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		for scanner := bufio.NewScanner(said); scanner.Scan(); {
			w.lines <- scanner.Text()
		}
	}()
	return w
}

func agentPlace(t *testing.T) place {
	t.Helper()
	own := newPlace(t, "sqlite")
	own.environ = append(own.environ, "TORYO_EXECUTORS_DEVELOPMENT=true", "TORYO_EXECUTORS_REVIEW=true", "TORYO_SANDBOX_KIND=bubblewrap")
	return own
}

// An agent enrols with a one-time token, once; then it has a token of its own that
// only it can read. When that is revoked the agent ends.
func TestAgentsEnrolAndAreRevoked(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	for _, driver := range []string{"sqlite", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			here := newPlace(t, driver)
			server := here.start(t, "serve")
			oneTime := strings.TrimSpace(here.output(t, "agent", "token", "create"))
			own := agentPlace(t)
			first := startWorker(t, own, "--server", server.url, "--name", "bench", "--enrol", oneTime)
			if line := <-first.lines; !strings.HasPrefix(line, "bench is waiting for tasks from "+server.url) {
				t.Fatalf("it says %q, %s", line, first.stderr)
			}
			stored := filepath.Join(own.data, "agent", "token")
			if info, err := os.Stat(stored); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the token is kept with %v, %v", info, err)
			}
			if text, _ := os.ReadFile(stored); strings.Contains(here.output(t, "agent", "list"), strings.TrimSpace(string(text))) || !strings.Contains(here.output(t, "agent", "list"), "bench") {
				t.Errorf("the list is %s", here.output(t, "agent", "list"))
			}

			again := agentPlace(t)
			refused := again.command(t, "agent", "--server", server.url, "--name", "other", "--enrol", oneTime)
			if said, _ := refused.CombinedOutput(); refused.ProcessState.ExitCode() != task.Unauthorized.Info().Exit {
				t.Errorf("the token is good a second time: %s", said)
			}
			twin := own.command(t, "agent", "--server", server.url)
			if said, _ := twin.CombinedOutput(); twin.ProcessState.ExitCode() != task.DataDir.Info().Exit {
				t.Errorf("a second agent in one folder: %s", said)
			}

			if err := first.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := first.Wait(); err != nil {
				t.Errorf("on a signal it ends with %v, %s", err, first.stderr)
			}
			second := startWorker(t, own, "--server", server.url)
			if line := <-second.lines; !strings.HasPrefix(line, "bench is waiting for tasks") {
				t.Fatalf("started again it says %q, %s", line, second.stderr)
			}
			here.output(t, "agent", "revoke", "bench")
			server.stop(t) // the agent asks the next one, and is told there
			next := here.start(t, "serve", "--addr", strings.TrimPrefix(server.url, "http://"))
			_ = second.Wait()
			if second.ProcessState.ExitCode() != task.Unauthorized.Info().Exit {
				t.Errorf("when it was revoked it ends with %v, %s", second.ProcessState, second.stderr)
			}
			next.stop(t)
		})
	}
}

// An agent that lacks something ends before it enrols: the one-time token is still good when
// that is repaired.
func TestEnrolmentComesLast(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	here := newPlace(t, "sqlite")
	server := here.start(t, "serve")
	oneTime := strings.TrimSpace(here.output(t, "agent", "token", "create"))
	enrol := []string{"agent", "--server", server.url, "--name", "bench", "--enrol", oneTime}

	lacking := agentPlace(t)
	lacking.environ = append(lacking.environ, "TORYO_SANDBOX_KIND=docker", "TORYO_SANDBOX_CONTAINER_ENGINE=unix://"+filepath.Join(t.TempDir(), "none.sock"))
	if said := lacking.refuse(t, task.NotReady, enrol...); !strings.Contains(said, "Docker") {
		t.Errorf("without a sandbox it says %s", said)
	}
	lacking = newPlace(t, "sqlite")
	lacking.environ = append(lacking.environ, "TORYO_SANDBOX_KIND=bubblewrap")
	if said := lacking.refuse(t, task.NotReady, enrol...); !strings.Contains(said, "no model") {
		t.Errorf("without a model it says %s", said)
	}
	lacking = agentPlace(t)
	inTheWay := filepath.Join(lacking.data, "agent", "token.new", "file")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if said := lacking.refuse(t, task.DataDir, enrol...); !strings.Contains(said, "cannot be written") {
		t.Errorf("without a place for the token it says %s", said)
	}
	if list := here.output(t, "agent", "list"); strings.Contains(list, "bench") {
		t.Errorf("an agent that could not start is known: %s", list)
	}

	if err := os.RemoveAll(filepath.Dir(inTheWay)); err != nil {
		t.Fatal(err)
	}
	repaired := startWorker(t, lacking, enrol[1:]...)
	if line := <-repaired.lines; !strings.HasPrefix(line, "bench is waiting for tasks from "+server.url) {
		t.Fatalf("it says %q, %s", line, repaired.stderr)
	}
	if err := repaired.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := repaired.Wait(); err != nil {
		t.Errorf("on a signal it ends with %v, %s", err, repaired.stderr)
	}
	server.stop(t)
}

// certificate makes one for this machine, and says where it and its key are.
func certificate(t *testing.T) (certificateFile, keyFile string) {
	t.Helper()
	return certificateFor(t, nil)
}

// certificateFor is certificate for servers of other names too.
func certificateFor(t *testing.T, names []string) (certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: names,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, content []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("tls.crt", "CERTIFICATE", made), write("tls.key", "PRIVATE KEY", secret)
}

// With a certificate the server speaks HTTPS; an agent that knows the certificate
// works with it, git included, and one that does not will not.
func TestEncryptedServer(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	certificateFile, keyFile := certificate(t)
	here := newPlace(t, "sqlite")
	here.environ = append(here.environ, "TORYO_SERVER_TLS_CERT_FILE="+certificateFile, "TORYO_SERVER_TLS_KEY_FILE="+keyFile)
	server := here.start(t, "serve")
	if !strings.HasPrefix(server.url, "https://") {
		t.Fatalf("it listens on %s", server.url)
	}
	own := agentPlace(t)
	own.environ = append(own.environ, `TORYO_EXECUTORS_DEVELOPMENT=sh, -c, echo new >README`)
	stranger := agentPlace(t)
	unknown := stranger.command(t, "agent", "--server", server.url, "--enrol", "enrol_x")
	if said, _ := unknown.CombinedOutput(); !strings.Contains(string(said), "certificate") {
		t.Errorf("without the certificate: %s", said)
	}
	oneTime := strings.TrimSpace(here.output(t, "agent", "token", "create"))
	works := startWorker(t, own, "--server", server.url, "--ca-file", certificateFile, "--enrol", oneTime)
	<-works.lines
	giveIssue(t, here)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent said %s, the server %s", works.stderr, server.stderr)
		}
	})
	awaitPull(t, here)
	if err := works.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := works.Wait(); err != nil {
		t.Errorf("it ends with %v, %s", err, works.stderr)
	}
	server.stop(t)
}

// giveIssue puts a repository on the board, and an issue that the bot has.
func giveIssue(t testing.TB, p place) {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "--message=first"},
	} {
		git := exec.CommandContext(t.Context(), "git", args...)
		git.Dir = dir
		if said, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, said)
		}
	}
	p.output(t, "board", "import", dir, "--name", "team/app")
	p.output(t, "board", "issue", "create", "--repo", "team/app", "--title", "Say hello", "--body", "please")
	p.output(t, "board", "issue", "assign", "team/app#1", "toryo")
}

// awaitPull waits until the bot has opened its pull request.
func awaitPull(t *testing.T, p place) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for !strings.Contains(p.output(t, "board", "pr", "list", "--repo", "team/app"), "Say hello") {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("there is no pull request: %s", p.output(t, "board", "issue", "show", "team/app#1"))
		}
	}
}

// Servers and agents that are killed and cut off at random leave everything right.
func TestDrill(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	here := newPlace(t, "sqlite")
	for name, more := range map[string][]string{"sqlite": nil, "postgres": {"--servers", "2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if more != nil {
				database, restart := ownPostgres(t)
				more = append(more, "--postgres", database, "--restart-database", restart)
			}
			command := exec.CommandContext(t.Context(), "toryo", append([]string{"drill", "--minutes", "0.2", "--tasks", "6", "--agents", "2", "--sandbox", "bubblewrap"}, more...)...)
			command.Env = here.environ
			if said, err := command.CombinedOutput(); err != nil || !strings.Contains(string(said), "everything came out right") {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}

// ownPostgres starts a PostgreSQL server that may be restarted, and says how.
func ownPostgres(t *testing.T) (address, restart string) {
	t.Helper()
	script, err := filepath.Abs("../../../scripts/services/postgresql")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), script, "find").Run(); err != nil {
		testkit.LeaveOut(t, "the programs of a PostgreSQL server")
	}
	// It runs as another user, who has to reach it.
	parent, err := os.MkdirTemp("/tmp", "toryo-postgres-") //nolint:usetesting // the folders of tests are not open to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o711); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "server")
	start := exec.CommandContext(t.Context(), script, "start", dir)
	said, err := start.Output()
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		if said, err := exec.Command(script, "stop", dir).CombinedOutput(); err != nil {
			t.Errorf("stop PostgreSQL: %v %s", err, said)
		}
	})
	_, address, _ = strings.Cut(strings.TrimSpace(string(said)), "=")
	return address, script + " restart " + dir
}
