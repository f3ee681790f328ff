package program

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
)

// place is where a process keeps its things: the database is the driver's.
type place struct {
	before  []string // what the program is called by, if not by itself
	environ []string
	data    string
}

func newPlace(t testing.TB, driver string) place {
	t.Helper()
	p := place{data: filepath.Join(t.TempDir(), "data"), environ: append(os.Environ(), "TORYO_LOG_LEVEL=warn")}
	if driver == "postgres" {
		p.environ = append(p.environ, "TORYO_DATABASE_DRIVER=postgres", "TORYO_DATABASE_URL="+testkit.Postgres(t))
	}
	return p
}

func (p place) command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	words := slices.Concat(p.before, []string{"toryo"}, args, []string{"--data", p.data})
	command := exec.CommandContext(t.Context(), words[0], words[1:]...)
	command.Env = p.environ
	command.Dir = t.TempDir()
	return command
}

func (p place) output(t testing.TB, args ...string) string {
	t.Helper()
	said, err := p.command(t, args...).Output()
	if err != nil {
		t.Fatalf("toryo %s: %v", args, err)
	}
	return string(said)
}

// process is a toryo that listens.
type process struct {
	*exec.Cmd
	url    string
	stdout *bufio.Reader
	stderr *strings.Builder
}

func (p place) start(t testing.TB, command string, more ...string) process {
	t.Helper()
	started := process{Cmd: p.command(t, append([]string{command, "--addr", "127.0.0.1:0"}, more...)...), stderr: new(strings.Builder)}
	started.Stderr = started.stderr
	stdout, err := started.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := started.Start(); err != nil {
		t.Fatal(err)
	}
	started.stdout = bufio.NewReader(stdout)
	line, err := started.stdout.ReadString('\n')
	url, listening := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !listening {
		_ = started.Wait()
		t.Fatalf("toryo %s says %q, %v, %s", command, line, err, started.stderr)
	}
	started.url = url
	return started
}

// stop sends SIGTERM and waits. It returns what the process still said.
func (p process) stop(t testing.TB) string {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("on SIGTERM it ends with %v and says %s", err, p.stderr)
	}
	return string(rest)
}

func (p process) client(token string) *wire.Client {
	return &wire.Client{Server: p.url, Token: token, HTTP: new(http.Client)}
}

// A file with keys that were removed starts the server, which names each of them once.
func TestRemovedKeysAreNamedAtTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "old.yaml")
	if err := os.WriteFile(file, []byte("task_stop: {check_interval: 3}\npause_resume: {check_interval: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := newPlace(t, "sqlite").start(t, "serve", "--config", file)
	server.stop(t)
	for _, key := range []string{"task_stop.check_interval: removed", "pause_resume.check_interval: removed"} {
		if got := strings.Count(server.stderr.String(), key); got != 1 {
			t.Errorf("%q is said %d times in\n%s", key, got, server.stderr)
		}
	}
}

// A token made on the command line opens the API of a server that runs already.
// When it is revoked it opens it no more. What the server knew is there after a
// restart.
func TestTokensOpenARunningServer(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"sqlite", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			here := newPlace(t, driver)
			server := here.start(t, "serve")
			token, alone := strings.CutSuffix(here.output(t, "token", "create", "--role", "viewer", "--name", "night shift"), "\n")
			if !alone || strings.ContainsAny(token, " \n") {
				t.Fatalf("%q is not a token alone", token)
			}
			if me, err := server.client(token).Me(t.Context()); err != nil || me.Name != "night shift" || me.Role != "viewer" {
				t.Fatalf("the token is that of %+v, %v", me, err)
			}
			if rest := server.stop(t); rest != "" {
				t.Errorf("at its end the server says %q", rest)
			}

			server = here.start(t, "serve")
			if _, err := server.client(token).Me(t.Context()); err != nil {
				t.Errorf("after a restart: %v", err)
			}
			list := here.output(t, "token", "list")
			if strings.Contains(list, token) || !strings.Contains(list, "night shift") {
				t.Errorf("the list is %s", list)
			}
			id := strings.Fields(strings.Split(list, "\n")[1])[0]
			here.output(t, "token", "revoke", id)
			if _, err := server.client(token).Me(t.Context()); task.CodeOf(err) != task.Unauthorized {
				t.Errorf("when it was revoked: %v", err)
			}
			server.stop(t)
		})
	}
}

func TestUpHasAnAgent(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "sqlite")
	for range 2 { // the second start must not leave a second valid token
		up := here.start(t, "up")
		for _, says := range []string{"pages: open http://", "agent is connected"} {
			line, err := up.stdout.ReadString('\n')
			if err != nil || !strings.Contains(line, says) {
				t.Errorf("says %q, %v, want %q", line, err, says)
			}
		}
		up.stop(t)
	}
}

// Several servers may be started at once on a PostgreSQL database that is empty,
// each with a data directory of its own.
func TestServersStartTogether(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "postgres")
	for range 4 {
		t.Run("server", func(t *testing.T) {
			t.Parallel()
			own := here
			own.data = filepath.Join(t.TempDir(), "data")
			own.start(t, "serve").stop(t)
		})
	}
}

// A data directory is one server's. Another one says so and leaves it alone; when
// the first is gone, however it went, the next may have it.
func TestDataDirectoryIsOneServers(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "sqlite")
	first := here.start(t, "serve")
	second := here.command(t, "serve", "--addr", "127.0.0.1:0")
	said, _ := second.CombinedOutput()
	if code := second.ProcessState.ExitCode(); code != task.DataDir.Info().Exit || !strings.Contains(string(said), "another server") {
		t.Errorf("a second server exits with %d and says %s", code, said)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	here.start(t, "serve").stop(t)
}

func TestDatabaseThatIsDown(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "sqlite")
	here.environ = append(here.environ, "TORYO_DATABASE_DRIVER=postgres", "TORYO_DATABASE_URL=postgres://toryo:hunter2secret@127.0.0.1:1/toryo")
	for _, args := range [][]string{{"serve", "--addr", "127.0.0.1:0"}, {"token", "list"}} {
		command := here.command(t, args...)
		said, _ := command.CombinedOutput()
		if code := command.ProcessState.ExitCode(); code != task.DatabaseDown.Info().Exit {
			t.Errorf("toryo %s exits with %d", args, code)
		}
		if strings.Contains(string(said), "hunter2secret") || strings.Count(string(said), "\n") != 1 {
			t.Errorf("toryo %s says %s", args, said)
		}
	}
	if _, err := os.Stat(here.data); !os.IsNotExist(err) {
		t.Errorf("something was left in %s: %v", here.data, err)
	}
}
