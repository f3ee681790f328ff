package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgesetup"
)

const (
	initBot   = "toryo-bot"
	initToken = "t0k3n-t0k3n-t0k3n"
)

// newcomer runs toryo init in a folder, on a Gitea in memory.
type newcomer struct {
	*testing.T
	folder  string
	url     string // of the forge
	addr    string // to listen on
	forge   *forgesetup.Forge
	shown   bytes.Buffer // to people
	out     bytes.Buffer // with --json
	asked   int
	opened  int             // how often the forge was asked something with a token
	down    bool            // the forge does not answer
	cache   string          // of the user
	env     []string        // variables
	place   []string        // flags that say where the installation is, if not the usual ones
	before  func(asked int) // each answer
	steps   []string        // becoming another user and serving, where servers are expected
	serves  bool
	goes    string        // where it goes when it becomes another user, if that is not where it is
	served  config.Config // by the last server
	started site.Started
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/version" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"version":"1.26.2"}`)
	}))
	t.Cleanup(web.Close)
	port, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	n := &newcomer{T: t, folder: t.TempDir(), url: web.URL, addr: fmt.Sprint("127.0.0.1:", port), forge: forgesetup.New(initBot, "team/app", "team/web")}
	n.forge.Token = initToken
	n.cache = t.TempDir()
	return n
}

// run runs the command with flags. Lines are what a person types; nil means that there is no
// terminal.
func (n *newcomer) run(lines []string, flags ...string) error {
	n.Helper()
	n.shown.Reset()
	n.out.Reset()
	n.asked = 0
	p := site.Program{Stdin: strings.NewReader(initToken + "\n"), Stdout: &n.shown, Stderr: &n.shown, Now: time.Now, Environ: n.env}
	o := setup{
		Program: p, client: forge.HTTPClient(nil), folder: n.folder, wait: 10 * time.Second, cache: n.cache,
		open: func(c config.Config, _ task.Forge) (forge.Forge, error) {
			n.opened++
			if n.down {
				return nil, task.Errorf(task.Unavailable, "nobody answers")
			}
			return n.forge.As(c.Gitea.Token.Reveal()), nil
		},
		serve: func(_ context.Context, p site.Program, c config.Config, _ string, _ site.WhenReady) error {
			n.steps, n.served, n.started = append(n.steps, "serve"), c, p.Started
			if !n.serves {
				n.Error("the server was started")
			}
			return nil
		},
		become: func(folder string) error {
			n.steps = append(n.steps, "become the owner of "+folder)
			if n.goes == "" {
				return nil
			}
			return os.Chdir(n.goes)
		},
	}
	if lines != nil {
		next := func() (string, error) {
			n.asked++
			if n.before != nil {
				n.before(n.asked)
			}
			if n.asked > len(lines) {
				return "", io.EOF
			}
			return lines[n.asked-1], nil
		}
		o.terminal = &terminal{line: next, hidden: next, restore: func() {}}
	}
	return n.parse(&o, flags)
}

// parse reads the flags and runs.
func (n *newcomer) parse(o *setup, flags []string) error {
	c := new(cobra.Command)
	o.bind(c)
	place := n.place
	if place == nil {
		place = []string{"--config", filepath.Join(n.folder, "toryo.yaml"), "--data", filepath.Join(n.folder, "data"), "--addr", n.addr}
	}
	if err := c.ParseFlags(slices.Concat(place, flags)); err != nil {
		return err
	}
	if o.json {
		o.Stdout = &n.out
	}
	return o.run(n.Context())
}

// flags answer every question.
func (n *newcomer) flags(more ...string) []string {
	n.Helper()
	file := filepath.Join(n.TempDir(), "token")
	if err := os.WriteFile(file, []byte(initToken+"\n"), 0o600); err != nil {
		n.Fatal(err)
	}
	return append([]string{
		"--forge", "gitea", "--url", n.url, "--token-file", file, "--repository", "team/app", "--provider", "none", "--sandbox", "auto", "--public-url", "http://" + n.addr,
	}, more...)
}

func (n *newcomer) files() map[string]string {
	n.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(n.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, n.folder)] = string(text)
		return err
	})
	if err != nil {
		n.Fatal(err)
	}
	return all
}

func (n *newcomer) wantShown(texts ...string) {
	n.Helper()
	for _, text := range texts {
		if !strings.Contains(n.shown.String(), text) {
			n.Errorf("%q is not shown:\n%s", text, n.shown.String())
		}
	}
}

// Flags alone do, without a terminal; the summary is for programs.
func TestInitByFlags(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if err := n.run(nil, n.flags("--json")...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	var said summary
	if err := json.Unmarshal(n.out.Bytes(), &said); err != nil {
		t.Fatalf("%v: %s", err, n.out.String())
	}
	if said.Bot != initBot || said.Forge != task.Gitea || len(said.Steps) == 0 || len(said.Repositories) != 1 {
		t.Errorf("the summary is %+v", said)
	}
	c, report := config.Load(filepath.Join(n.folder, "toryo.yaml"), nil, nil)
	if err := report.Err(); err != nil || c.Gitea.BotName != initBot || c.Gitea.Token.Reveal() != initToken || c.Gitea.Owner != "team" || c.Server.Addr != n.addr || c.Server.PublicURL != "" { // links follow the address at which it listens
		t.Errorf("%v: %+v %+v", err, c.Gitea, c.Server)
	}
	n.wantShown("✓ push branches", "✓ delivery of a webhook")
	if len(n.forge.HookURLs("team/app")) != 1 || len(n.forge.HookURLs("team/web")) != 0 {
		t.Errorf("webhooks: %v", n.forge.Written())
	}

	before, written := n.files(), len(n.forge.Written())
	if err := n.run(nil, "--yes", "--provider", "none"); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	if diff := cmp.Diff(before, n.files()); diff != "" || len(n.forge.Written()) != written {
		t.Errorf("the second run changed %s and wrote %v", diff, n.forge.Written()[written:])
	}

	if err := n.run(nil, "--remove", "--yes"); err != nil {
		t.Fatal(err)
	}
	if left := n.files(); len(left) > 0 || len(n.forge.HookURLs("team/app")) > 0 {
		t.Errorf("left: %v, %v", left, n.forge.HookURLs("team/app"))
	}
	n.wantShown("stays")
}

// An answer that is missing where nobody can be asked is an error that names its flag.
func TestInitNamesTheFlag(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	all := n.flags()
	for at := 0; at < len(all); at += 2 {
		left := append(append([]string{}, all[:at]...), all[at+2:]...)
		if all[at] == "--forge" { // the address tells
			if err := n.run(nil, append(left, "--dry-run")...); err != nil {
				t.Error(err)
			}
			continue
		}
		err := n.run(nil, left...)
		if task.CodeOf(err) != task.Usage || !strings.Contains(err.Error(), all[at]) || len(n.files()) > 0 {
			t.Errorf("without %s: %v, %v", all[at], err, n.files())
		}
	}
}

// A person answers few questions, and Enter is mostly an answer. What is typed as a secret
// is not shown.
func TestInitByQuestions(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.git("init", "-q")
	n.git("remote", "add", "origin", n.url+"/team/app.git")
	n.write("README.md", "# App\n")
	n.write("go.mod", "module example.com/app\n\ngo 1.26\n")
	lines := []string{
		"", "", "wrong-token", initToken, "9", "none/such", "", "", "none", "http://" + n.addr, "", "no", "",
	}
	if err := n.run(lines); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("the git remote origin: team/app", "does not accept the token", "knows it as toryo-bot", "there is no number 9", "no repository none/such", "✓ labels of team/app")
	if strings.Contains(n.shown.String(), initToken) {
		t.Error("the token is shown")
	}
	if n.asked > 15 || n.asked != len(lines) {
		t.Errorf("%d questions were asked", n.asked)
	}
	secret, err := os.ReadFile(filepath.Join(n.folder, "data", "secrets", "gitea-token"))
	if err != nil || strings.TrimSpace(string(secret)) != initToken {
		t.Errorf("the token is not in its file: %v", err)
	}
}

// Interrupted at any question, nothing was written anywhere.
func TestInitIsInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	lines := []string{"gitea", "URL", initToken, "team/app", "auto", "none", "http://ADDR", "yes", "no", "yes"}
	for count := range lines {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			t.Parallel()
			n := newNewcomer(t)
			given := make([]string, 0, count)
			for _, line := range lines[:count] {
				given = append(given, strings.NewReplacer("URL", n.url, "ADDR", n.addr).Replace(line))
			}
			err := n.run(given)
			if task.CodeOf(err) != task.Interrupted {
				t.Errorf("it ended with %v\n%s", err, n.shown.String())
			}
			if n.asked != count+1 {
				t.Errorf("%d questions were asked, want %d:\n%s", n.asked, count+1, n.shown.String())
			}
			if left := n.files(); len(left) > 0 || len(n.forge.Written()) > 0 {
				t.Errorf("written: %v, %v", left, n.forge.Written())
			}
			n.goesOn(count)
		})
	}
}

// goesOn runs again with Enter as the answer to all that was answered before.
func (n *newcomer) goesOn(count int) {
	n.Helper()
	lines := []string{"gitea", n.url, initToken, "team/app", "auto", "none", "http://" + n.addr, "yes", "no", "yes"}
	for at := range lines[:count] {
		if lines[at] != initToken {
			lines[at] = ""
		}
	}
	if err := n.run(lines); err != nil {
		n.Errorf("the next run ended with %v\n%s", err, n.shown.String())
	}
	if left, err := filepath.Glob(filepath.Join(n.cache, "toryo", "*")); err != nil || len(left) > 0 {
		n.Errorf("the draft is still there: %v, %v", left, err)
	}
	if strings.TrimSpace(n.files()["/data/secrets/gitea-token"]) != initToken {
		n.Errorf("the files are %v", n.files())
	}
}

// A token cannot always be given more rights: another one can be given instead, and what the
// first one lacked is said once for all rights that one scope gives.
func TestInitAnotherToken(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.forge.Missing[forge.Push] = true
	n.before = func(asked int) {
		if asked == 6 { // the second token
			delete(n.forge.Missing, forge.Push)
		}
	}
	lines := []string{"gitea", n.url, initToken, "team/app", "token", initToken, "team/app", "auto", "none", "http://" + n.addr, "no", "no", "yes"}
	if err := n.run(lines); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("✗ it has no permission to push branches: 403 Forbidden", "→ give it the scope push", "the bot cannot work in team/app yet", "write token to give another token", "✓ push branches")
	if n.asked != len(lines) {
		t.Errorf("%d questions were asked, want %d", n.asked, len(lines))
	}
}

// What others say cannot command the terminal.
func TestInitShowsNoEscapes(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	o := setup{Program: site.Program{Stdout: &shown}}
	o.say("  the forge says %s\nnext", "\x1b[2Jgone\r\u202eback")
	if got, want := shown.String(), "  the forge says [2Jgone back\nnext\n"; got != want {
		t.Errorf("shown is %q, want %q", got, want)
	}
}

// A person with all flags is not asked about webhooks.
func TestInitWebhookByFlag(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if err := n.run([]string{"yes"}, n.flags("--webhook", "yes", "--start", "no", "--first-issue", "no")...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	if n.asked != 1 || len(n.forge.HookURLs("team/app")) != 1 { // whether to go ahead
		t.Errorf("%d questions were asked, and the webhooks are %v", n.asked, n.forge.HookURLs("team/app"))
	}
}

// Before a webhook is made, who listens for this machine alone reads what has to be there.
func TestInitThatListensAlone(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if err := n.run(nil, n.flags("--public-url", "http://192.0.2.2:33750", "--dry-run")...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("! For webhooks: the server listens on "+n.addr+" only", "let a reverse proxy pass http://192.0.2.2:33750 on to it")
}

// With --yes nobody is asked, also on a terminal: no server is started, and no issue is opened.
func TestInitYesOnATerminal(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if err := n.run([]string{}, n.flags("--yes")...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("Start the server with an agent: toryo up --config ")
	if n.asked > 0 {
		t.Errorf("%d questions were asked", n.asked)
	}
}

// Where the pull request is waited for, what it would wait for in vain is an error at once.
func TestInitOnceNeedsEverything(t *testing.T) {
	t.Parallel()
	model := scriptedModel(t)
	for name, test := range map[string]struct {
		flags []string
		code  task.Code
		want  string
	}{
		"no issue":   {append(model, "--first-issue", "no"), task.Usage, "--first-issue yes"},
		"not asked":  {model, task.Usage, "--first-issue yes"},
		"no model":   {[]string{"--provider", "none", "--first-issue", "yes"}, task.NotReady, "no model"},
		"no sandbox": {append(model, "--first-issue", "yes", "--sandbox", "docker"), task.NotReady, "no sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNewcomer(t)
			n.write("toryo.yaml", "sandbox:\n  container_engine: unix:///nonexistent/engine.sock\n")
			n.committed()
			before := n.files()
			err := n.run(nil, append([]string{"--forge", "board", "--repository", "team/app", "--sandbox", "auto", "--start", "once"}, test.flags...)...)
			if task.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it ended with %v, want %s with %q", err, test.code, test.want)
			}
			if diff := cmp.Diff(before, n.files()); diff != "" {
				t.Errorf("written: %s", diff)
			}
		})
	}
}

// Where a task is, in words.
func TestProgressText(t *testing.T) {
	t.Parallel()
	for want, is := range map[string]task.Task{
		"the server has not seen the issue yet": {},
		"queued":                                {ID: "1", State: task.Queued},
		"running":                               {ID: "1", State: task.Running},
		"running: " + task.Planning.DisplayName(): {ID: "1", State: task.Running, Phase: task.Planning},
		"done": {ID: "1", State: task.Done, Phase: task.Planning},
	} {
		if got := progressText(is); got != want {
			t.Errorf("%+v is %q, want %q", is, got, want)
		}
	}
	paused := progressText(task.Task{ID: "1", State: task.Paused, Reason: task.ReasonAwaitingAnswer})
	if !strings.HasPrefix(paused, "paused: ") || !strings.Contains(paused, "comments") {
		t.Errorf("a task that waits for an answer is %q", paused)
	}
}

// What a newcomer can get wrong has words that say what to do, and changes nothing.
func TestInitBadInput(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	free, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(n *newcomer)
		flags  []string
		code   task.Code
		want   string
	}{
		"a wrong token":               {change: func(n *newcomer) { n.forge.Token = "another" }, code: task.Unauthorized, want: "/user/settings/applications"},
		"a right is missing":          {change: func(n *newcomer) { n.forge.Missing[forge.Push] = true }, code: task.Forbidden, want: "the scope push"},
		"no such repository":          {flags: []string{"--repository", "team/none"}, code: task.NotFound, want: "no repository team/none that toryo-bot can see"},
		"two owners":                  {change: func(n *newcomer) { n.forge.AddRepository("other/app", forge.Remote{}) }, flags: []string{"--repository", "other/app"}, code: task.Invalid, want: "one owner"},
		"nothing at the address":      {flags: []string{"--url", fmt.Sprint("http://127.0.0.1:", free)}, code: task.Unavailable, want: "nothing listens there"},
		"no address":                  {flags: []string{"--url", "git.example.com"}, code: task.Invalid, want: "http"},
		"the port is in use":          {flags: []string{"--addr", taken.Addr().String()}, code: task.AddressInUse, want: "--addr"},
		"a model without a key":       {flags: []string{"--provider", "anthropic", "--model", "m"}, code: task.Usage, want: "--model-key-file"},
		"a model that is not there":   {flags: []string{"--provider", "openai", "--model", "m", "--yes", "--base-url", fmt.Sprint("http://127.0.0.1:", free)}, code: task.NotReady, want: "the model does not work"},
		"a forge that does not exist": {flags: []string{"--forge", "svn"}, code: task.Usage, want: "--forge"},
		"a file that does not exist":  {flags: []string{"--token-file", "/nonexistent/token"}, code: task.Usage, want: "--token-file"},
		"another forge":               {flags: []string{"--forge", "gitlab"}, code: task.Invalid, want: "not GitLab"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNewcomer(t)
			if test.change != nil {
				test.change(n)
			}
			err := n.run(nil, n.flags(test.flags...)...)
			if task.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it ended with %v (%s), want %s with %q", err, task.CodeOf(err), test.code, test.want)
			}
			if left := n.files(); len(left) > 0 || len(n.forge.Written()) > 0 {
				t.Errorf("written: %v, %v", left, n.forge.Written())
			}
		})
	}
}

// The token can come on standard input, and then goes to a file.
func TestInitTokenOnStandardInput(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if err := n.run(nil, n.flags("--token-file", "-")...); err != nil {
		t.Fatal(err)
	}
	if n.files()["/data/secrets/gitea-token"] != initToken+"\n" {
		t.Errorf("the files are %v", n.files())
	}
}

// The built-in board alone will do: the current folder goes there.
func TestInitBoard(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.git("init", "-q", "-b", "main")
	n.write("README.md", "# App\n")
	n.git("add", ".")
	n.git("-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "first")
	for range 2 {
		if err := n.run(nil, "--forge", "board", "--repository", "team/app", "--provider", "none", "--yes"); err != nil {
			t.Fatalf("%v\n%s", err, n.shown.String())
		}
		if info, err := os.Stat(filepath.Join(n.folder, "data", "board", "team", "app.git")); err != nil || !info.IsDir() {
			t.Errorf("the repository is not on the board: %v", err)
		}
	}
	n.wantShown("= repository team/app on the board")
}

func (n *newcomer) git(args ...string) {
	n.Helper()
	command := exec.CommandContext(n.Context(), "git", args...)
	command.Dir = n.folder
	if said, err := command.CombinedOutput(); err != nil {
		n.Fatalf("git %v: %v: %s", args, err, said)
	}
}

func (n *newcomer) write(name, content string) {
	n.Helper()
	if err := os.WriteFile(filepath.Join(n.folder, name), []byte(content), 0o600); err != nil {
		n.Fatal(err)
	}
}
