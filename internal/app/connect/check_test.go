package connect_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgesetup"
)

func TestRightsOneByOne(t *testing.T) {
	t.Parallel()
	kind, address := connect.KindOf(task.Gitea), "https://git.example.com"
	f := forgesetup.New(bot, "team/app")
	check, err := connect.CheckRepository(t.Context(), f, kind, address, bot, "team/app")
	if err != nil || !check.Usable() || len(check.Problems) > 0 || len(check.Rights) != len(forge.NeededRights) {
		t.Errorf("with all rights: %+v, %v", check, err)
	}
	for _, needed := range forge.NeededRights {
		f.Missing = map[forge.Right]bool{needed.Right: true}
		check, err := connect.CheckRepository(t.Context(), f, kind, address, bot, "team/app")
		if err != nil || len(check.Problems) != 1 || check.Usable() == needed.Required || check.Has(needed.Right) {
			t.Fatalf("without %s: %+v, %v", needed.Right, check, err)
		}
		problem := check.Problems[0]
		if !strings.Contains(problem.What, connect.RightText(needed.Right)) || !strings.Contains(problem.Fix, "the scope "+string(needed.Right)) || !strings.Contains(problem.Fix, address) {
			t.Errorf("without %s: %+v", needed.Right, problem)
		}
	}
	_, err = connect.CheckRepository(t.Context(), f, kind, address, bot, "team/none")
	if task.CodeOf(err) != task.NotFound || !strings.Contains(err.Error(), bot) {
		t.Errorf("a repository that is not there: %v", err)
	}
}

// Each way in which a forge cannot be reached has words of its own.
func TestExplain(t *testing.T) {
	t.Parallel()
	kind, address := connect.KindOf(task.Gitea), "https://git.example.com"
	request := func(err error) error {
		return task.Wrap(task.Unavailable, &url.Error{Op: "Get", URL: address, Err: err}, "cannot ask")
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"a wrong token":         {&forge.Error{Err: task.Errorf(task.Unauthorized, "401"), Status: 401}, "https://git.example.com/user/settings/applications"},
		"an expired token":      {&forge.Error{Err: task.Errorf(task.Unauthorized, "Token is expired"), Status: 401}, "Token is expired"},
		"a right is missing":    {&forge.Error{Err: task.Errorf(task.Forbidden, "403"), Status: 403}, "write:issue"},
		"a name":                {request(&net.OpError{Op: "dial", Err: &net.DNSError{Name: "git.example.com", IsNotFound: true}}), `"git.example.com" cannot be resolved`},
		"a port":                {request(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), "nothing listens there"},
		"a proxy":               {request(&net.OpError{Op: "proxyconnect", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), "the proxy in HTTPS_PROXY"},
		"a proxy with password": {request(errors.New("Proxy Authentication Required")), "user and password into HTTPS_PROXY"},
		"a private authority":   {request(x509.UnknownAuthorityError{}), "SSL_CERT_FILE"},
		"another name":          {request(x509.HostnameError{Certificate: new(x509.Certificate), Host: "git.example.com"}), "not for git.example.com"},
		"an old certificate":    {request(x509.CertificateInvalidError{Reason: x509.Expired}), "expired"},
		"silence":               {request(context.DeadlineExceeded), "no answer in time"},
		"no HTTPS":              {request(errors.New("http: server gave HTTP response to HTTPS client")), "http://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := connect.Explain(test.err, kind, address); got == nil || !strings.Contains(got.Error(), test.want) {
				t.Errorf("it says %v, want %q", got, test.want)
			}
		})
	}
}

func TestRecognise(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
	}
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   task.Forge
		fails  string
	}{
		"Gitea": {want: task.Gitea, answer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/version" {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, `{"version":"1.26.2"}`)
		}},
		"Gitea for members only": {want: task.Gitea, answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message":"Only signed in user is allowed to call APIs.","url":"http://git.example.com/api/swagger"}`)
		}},
		"GitLab": {want: task.GitLab, answer: func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/api/v4/") {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("X-Gitlab-Meta", `{"version":"1"}`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"message":"401 Unauthorized"}`)
		}},
		"GitHub": {want: task.GitHub, answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Github-Request-Id", "1")
			http.NotFound(w, r)
		}},
		"a proxy with a password": {fails: "the proxy requires a user and a password", answer: status(http.StatusProxyAuthRequired)},
		"too many requests":       {fails: "allows no more requests for now", answer: status(http.StatusTooManyRequests)},
		"a forge that is down":    {fails: "answers with status 503", answer: status(http.StatusServiceUnavailable)},
		"something else":          {fails: "neither GitHub nor GitLab nor Gitea", answer: http.NotFound},
		"another address": {fails: "https://git.example.com", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://git.example.com"+r.URL.Path, http.StatusMovedPermanently)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(http.HandlerFunc(test.answer))
			defer web.Close()
			found, err := connect.Recognise(t.Context(), forge.HTTPClient(web.Client().Transport), web.URL)
			if found.Forge != test.want || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}

func TestParseRemote(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]connect.Remote{
		"https://github.com/team/app.git":            {URL: "https://github.com", Repository: "team/app"},
		"git@git.example.com:team/app.git":           {URL: "https://git.example.com", Repository: "team/app"},
		"ssh://git@git.example.com:2222/team/app":    {URL: "https://git.example.com", Repository: "team/app"},
		"https://user:pass@git.example.com/team/app": {URL: "https://git.example.com", Repository: "team/app"},
		"http://127.0.0.1:3000/git/team/app/":        {URL: "http://127.0.0.1:3000/git", Repository: "team/app"},
		"http://github.com/team/app":                 {URL: "https://github.com", Repository: "team/app"},
		"https://www.GitHub.com/team/app.git":        {URL: "https://github.com", Repository: "team/app"},
		"ssh://git@ssh.github.com:443/team/app.git":  {URL: "https://github.com", Repository: "team/app"},
		"http://codeberg.org/team/app":               {URL: "https://codeberg.org", Repository: "team/app"},
		"/srv/git/app.git":                           {},
		"../app":                                     {},
		"https://git.example.com/app":                {},
	} {
		got, is := connect.ParseRemote("origin", address)
		if is {
			got = got.On(task.Gitea)
		}
		if is != (want.URL != "") || got.URL != want.URL || got.Repository != want.Repository {
			t.Errorf("%s is %+v, %t", address, got, is)
		}
	}
	if got, _ := connect.ParseRemote("origin", "https://gitlab.com/group/sub/app.git"); got.On(task.GitLab).Repository != "group/sub/app" {
		t.Errorf("a group in a group: %+v", got)
	}
}

// The hosts of all remotes are asked at the same time, each once: here none answers before all are
// asked.
func TestRecogniseRemotes(t *testing.T) {
	t.Parallel()
	const hosts = 3
	var remotes []connect.Remote
	var asked sync.WaitGroup
	asked.Add(hosts)
	for number := range hosts {
		var once sync.Once
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			once.Do(asked.Done)
			asked.Wait()
			if number == 0 || r.URL.Path != "/api/v1/version" {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, `{"version":"1.26.2"}`)
		}))
		t.Cleanup(web.Close)
		for _, name := range []string{"one", "two"} {
			remote, is := connect.ParseRemote(name, web.URL+"/team/"+name)
			if !is {
				t.Fatal("it is no remote")
			}
			remotes = append(remotes, remote)
		}
	}
	for at, remote := range connect.RecogniseRemotes(t.Context(), forge.HTTPClient(nil), remotes) {
		want := task.Gitea
		if at < 2 {
			want = ""
		}
		if remote.Forge != want || !strings.HasPrefix(remote.Repository, "team/") {
			t.Errorf("remote %d is %+v", at, remote)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"http://github.com/":            "https://github.com",
		"https://www.github.com":        "https://github.com",
		"http://gitlab.com":             "https://gitlab.com",
		"http://git.example.com/forge/": "http://git.example.com/forge",
		"http://127.0.0.1:3000":         "http://127.0.0.1:3000",
	} {
		if got := connect.Address(given); got != want {
			t.Errorf("%s is %s, want %s", given, got, want)
		}
	}
	for address, want := range map[string]bool{"http://git.example.com": true, "https://git.example.com": false, "http://localhost:3000": false} {
		if got := connect.Unencrypted(address); got != want {
			t.Errorf("%s is unencrypted: %t", address, got)
		}
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"remote", "add", "origin", "git@github.com:me/app.git"}, {"remote", "add", "upstream", "https://github.com/team/app"}} {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = folder
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	below := filepath.Join(folder, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	found, err := connect.Detect(t.Context(), connect.Surroundings{
		Folder: below, Environ: []string{"OPENAI_API_KEY=k", "GITHUB_TOKEN=t", "GITEA_TOKEN="},
		Sandboxes: []doctor.Check{func(context.Context) doctor.Finding { return doctor.Finding{Name: "box", Status: doctor.OK} }},
		Choose:    func(context.Context) (string, error) { return "box", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Remotes) != 2 || found.Remotes[0].Repository != "team/app" || found.Remotes[0].Forge != task.GitHub || filepath.Base(found.Folder) != filepath.Base(folder) {
		t.Errorf("the remotes are %+v in %s", found.Remotes, found.Folder)
	}
	if len(found.Keys) != 1 || found.Keys[0].Variable != "OPENAI_API_KEY" || len(found.Tokens) != 1 || found.Tokens[0].Forge != task.GitHub || found.Sandbox.Status != doctor.OK {
		t.Errorf("found %+v", found)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		server, forge string
		name          task.Forge
		reachable     bool
	}{
		{"http://127.0.0.1:8750", "https://git.example.com", task.Gitea, false},
		{"http://127.0.0.1:8750", "http://localhost:3000", task.Gitea, true},
		{"http://192.168.1.2:8750", "https://github.com", task.GitHub, false},
		{"http://toryo:8750", "https://gitlab.com", task.GitLab, false},
		{"http://192.168.1.2:8750", "https://git.example.com", task.Gitea, true},
		{"https://toryo.example.com", "https://github.com", task.GitHub, true},
		{"", "https://github.com", task.GitHub, false},
	} {
		if why := connect.Unreachable(test.server, connect.KindOf(test.name), test.forge); (why == "") != test.reachable {
			t.Errorf("%s from %s: %q", test.server, test.forge, why)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	module := "module example.com/app\n\ngo 1.26\n"
	source := "package app\n\nfunc One() int { return 1 }\n"
	test := "package app\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {}\n"
	for name, one := range map[string]struct {
		files map[string]string
		want  string // in the title
	}{
		"tests that the README does not name": {map[string]string{"go.mod": module, "a.go": source, "a_test.go": test, "README.md": "# App\n"}, "how to run the tests"},
		"a folder that is not ignored":        {map[string]string{"package.json": `{"name":"app","version":"1.0.0"}`, "index.js": "x\n"}, "node_modules"},
		"a marked place":                      {map[string]string{"a.sh": "#!/bin/sh\n# TODO: check the exit code of tar\n", "README.md": "# App\n"}, "TODO in a.sh"},
		"a name that mentions somebody":       {map[string]string{"@all.sh": "# TODO: check the exit code of tar\n", "b.sh": "# TODO: check the exit code of tar\n", "README.md": "# App\n"}, "TODO in b.sh"},
		"nothing at all":                      {map[string]string{"notes.txt": "x\n"}, "README"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for file, content := range one.files {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			made, found, err := connect.Suggest(environment.BuiltIn(), folder)
			if err != nil || !found || !strings.Contains(made.Title, one.want) || !strings.Contains(made.Body, "Done when") || made.Why == "" {
				t.Errorf("suggested %+v, %t, %v", made, found, err)
			}
		})
	}
}

// An issue may quote files: only those that are committed are looked at, as they are committed.
func TestSuggestWhatIsCommitted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = folder
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	write("README.md", "# App\n")
	write("b.sh", "# TODO: greet everybody who comes\n")
	write(".gitignore", "c.sh\n")
	run("init", "-q")
	run("add", ".")
	run("-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "first")
	write("a.sh", "# TODO: the password is hunter2 until May\n")                                    // untracked
	write("c.sh", "# TODO: the password is hunter2 until May\n")                                    // ignored
	write("b.sh", "# TODO: the password is hunter2 until May\n# TODO: greet everybody who comes\n") // changed
	copied, err := connect.FetchFolder(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	made, found, err := connect.Suggest(environment.BuiltIn(), copied)
	if err != nil || !found || made.Title != "See to the TODO in b.sh" || !strings.Contains(made.Body, "greet everybody") || strings.Contains(made.Body, "hunter2") {
		t.Errorf("suggested %+v, %t, %v", made, found, err)
	}
	if err := connect.Discard(copied); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(copied); !os.IsNotExist(err) {
		t.Errorf("the copy stays: %v", err)
	}
}

// The first issue is opened once, also when the answer was lost. The forge has its title without
// what would mention people.
func TestFirstIssueOnce(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	suggested := connect.Suggestion{Title: "Write a short README, as @ann asked for", Body: "x"}
	h.forge.After = func(number int, _ string) error {
		if number == 1 {
			return task.Errorf(task.Unavailable, "lost")
		}
		return nil
	}
	f := h.forge.As(token)
	if _, _, err := h.installer().FirstIssue(t.Context(), f, task.Gitea, "team/app", bot, suggested); err == nil {
		t.Fatal("the answer was not lost")
	}
	item, opened, err := h.installer().FirstIssue(t.Context(), f, task.Gitea, "team/app", bot, suggested)
	if err != nil || opened || item.Key.Number != 1 || len(h.forge.Written()) != 1 {
		t.Errorf("got %+v, %t, %v after %v", item, opened, err, h.forge.Written())
	}
	if had, err := h.installer().HadFirstIssue(task.Gitea, "team/app"); err != nil || !had {
		t.Errorf("had %t, %v", had, err)
	}
}
