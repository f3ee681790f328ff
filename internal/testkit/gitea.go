package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gitea "code.gitea.io/sdk/gitea"
)

// giteaFolder names the folder that scripts/gitea makes: the server program
// and its static files.
const giteaFolder = "TORYO_TEST_GITEA"

// giteaVersion is the one that scripts/gitea builds.
const giteaVersion = "1.26.0"

const giteaAdmin = "root1"

// giteaToken is a line with a token.
var giteaToken = regexp.MustCompile(`(?m)^[0-9a-f]{40}$`)

// GiteaPassword is the password of every account that [GiteaServer.User] makes.
const GiteaPassword = "correct-Horse-1"

// GiteaServer is a real Gitea server on loopback.
type GiteaServer struct {
	URL   string
	Admin string // the token of an administrator, who can act as everyone

	log   *tail
	names atomic.Int64
}

// Gitea starts a fresh server. It stops when the test ends, so a package that
// wants one for all of its tests makes them subtests of one test. The name of a test
// that calls it begins with TestOnGitea.
func Gitea(t testing.TB) *GiteaServer {
	t.Helper()
	wantPrefix(t, onGitea)
	program, static := giteaProgram(t)
	folder := t.TempDir()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(folder, "app.ini")
	if err := os.WriteFile(config, []byte(giteaConfig(t, folder, static, port)), 0o600); err != nil {
		t.Fatal(err)
	}
	server := &GiteaServer{URL: fmt.Sprintf("http://127.0.0.1:%d", port), log: &tail{}}
	run := func(args ...string) string {
		command := exec.Command(program, append([]string{"--config", config}, args...)...) //nolint:noctx // ends by itself
		command.Env = giteaEnvironment(folder)
		out, err := command.Output()
		if err != nil {
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				t.Logf("%s", exit.Stderr)
			}
			t.Fatalf("gitea %s: %v", args[0], err)
		}
		return string(out)
	}
	run("migrate")
	run("admin", "user", "create", "--admin", "--username", giteaAdmin, "--password", GiteaPassword,
		"--email", giteaAdmin+"@example.com", "--must-change-password=false")
	// Warnings may come before and after it: another goroutine writes them.
	printed := run("admin", "user", "generate-access-token", "--username", giteaAdmin,
		"--token-name", "boot", "--scopes", "all", "--raw")
	if server.Admin = giteaToken.FindString(printed); server.Admin == "" {
		t.Fatalf("Gitea prints no token: %s", printed)
	}
	server.start(t, program, config, folder)
	return server
}

func giteaProgram(t testing.TB) (program, static string) {
	t.Helper()
	folder := os.Getenv(giteaFolder)
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		folder = filepath.Join(cache, "toryo-test", "gitea-"+giteaVersion)
	}
	program = filepath.Join(folder, "gitea")
	if _, err := os.Stat(program); err != nil {
		LeaveOut(t, "the Gitea server ("+giteaFolder+", made by scripts/gitea)")
	}
	return program, filepath.Join(folder, "static")
}

func giteaEnvironment(folder string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "USER=" + os.Getenv("USER"), "GITEA_WORK_DIR=" + folder}
}

func giteaConfig(t testing.TB, folder, static string, port int) string {
	t.Helper()
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`RUN_MODE = prod
RUN_USER = %[1]s
WORK_PATH = %[2]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[4]d
ROOT_URL = http://127.0.0.1:%[4]d/
STATIC_ROOT_PATH = %[3]s
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = %[2]s/data/gitea.db
SQLITE_JOURNAL_MODE = WAL
[repository]
ROOT = %[2]s/repos
DEFAULT_BRANCH = main
[git]
HOME_PATH = %[2]s/home
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2$1000$50
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = loopback
[log]
MODE = console
LEVEL = Warn
[indexer]
ISSUE_INDEXER_TYPE = db
[queue]
TYPE = channel
[actions]
ENABLED = false
[packages]
ENABLED = false
[cron]
ENABLED = false
`, account.Username, folder, static, port)
}

// start runs the server until the test ends, and waits until it answers.
func (g *GiteaServer) start(t testing.TB, program, config, folder string) {
	t.Helper()
	command := exec.Command(program, "--config", config, "web") //nolint:noctx // stopped below
	command.Env = giteaEnvironment(folder)
	command.Stdout, command.Stderr = g.log, g.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		// Killed rather than asked: it has nothing that is worth keeping, and
		// asked it takes seconds.
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the end of Gitea's log:\n%s", g.log)
		}
	})
	g.await(t, ended)
}

// await returns when the server answers. It is asked again and again: that it
// listens is not to be had as a signal.
func (g *GiteaServer) await(t testing.TB, ended chan error) {
	t.Helper()
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := &http.Client{Timeout: 10 * time.Second}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		request, err := http.NewRequestWithContext(deadline, http.MethodGet, g.URL+"/api/v1/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := client.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("Gitea ended: %v\n%s", err, g.log)
		case <-deadline.Done():
			t.Fatalf("Gitea does not answer\n%s", g.log)
		case <-again.C:
		}
	}
}

// Client returns a client that acts as the given account, or as the administrator
// for "".
func (g *GiteaServer) Client(t testing.TB, login string) *gitea.Client {
	t.Helper()
	client, err := gitea.NewClient(g.URL, gitea.SetToken(g.Admin), gitea.SetSudo(login), gitea.SetGiteaVersion(giteaVersion))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// User makes an account with a name that starts with the given prefix.
func (g *GiteaServer) User(t testing.TB, prefix string) string {
	t.Helper()
	name := fmt.Sprintf("%s%d", prefix, g.names.Add(1))
	stay := false
	_, _, err := g.Client(t, "").AdminCreateUser(gitea.CreateUserOption{
		Username: name, Email: name + "@example.com", Password: GiteaPassword, MustChangePassword: &stay,
	})
	if err != nil {
		t.Fatalf("make the account %s: %v", name, err)
	}
	return name
}

// Token returns an access token of an account that may do everything.
func (g *GiteaServer) Token(t testing.TB, login string) string {
	t.Helper()
	return g.ScopedToken(t, login, string(gitea.AccessTokenScopeAll))
}

// ScopedToken returns an access token of an account that has some scopes only.
func (g *GiteaServer) ScopedToken(t testing.TB, login string, scopes ...string) string {
	t.Helper()
	client, err := gitea.NewClient(g.URL, gitea.SetBasicAuth(login, GiteaPassword), gitea.SetGiteaVersion(giteaVersion))
	if err != nil {
		t.Fatal(err)
	}
	options := gitea.CreateAccessTokenOption{Name: fmt.Sprint("token", g.names.Add(1))}
	for _, scope := range scopes {
		options.Scopes = append(options.Scopes, gitea.AccessTokenScope(scope))
	}
	token, _, err := client.CreateAccessToken(options)
	if err != nil {
		t.Fatalf("make a token for %s: %v", login, err)
	}
	return token.Token
}

// Repository makes a repository of an account, with a first commit on main.
func (g *GiteaServer) Repository(t testing.TB, owner string, private bool) *gitea.Repository {
	t.Helper()
	repository, _, err := g.Client(t, owner).CreateRepo(gitea.CreateRepoOption{
		Name: fmt.Sprint("repository", g.names.Add(1)), Private: private, AutoInit: true, DefaultBranch: "main",
	})
	if err != nil {
		t.Fatalf("make a repository of %s: %v", owner, err)
	}
	return repository
}

// tail keeps the last of what a program writes.
type tail struct {
	mutex sync.Mutex
	kept  []byte
}

func (l *tail) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.kept = append(l.kept, p...)
	if extra := len(l.kept) - 16<<10; extra > 0 {
		l.kept = l.kept[extra:]
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return string(l.kept)
}
