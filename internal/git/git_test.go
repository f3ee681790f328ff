package git_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

func find(t *testing.T) *git.Program {
	t.Helper()
	program, err := git.Find()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Git is told the credential for the one address, and for no other.
func TestTheCredentialIsForOneAddress(t *testing.T) {
	t.Parallel()
	remote := git.Remote{URL: "https://git.example.org/a.git", Username: "agent", Password: "s3cret 'quoted'"}
	for address, want := range map[string]bool{
		"protocol=https\nhost=git.example.org\n":       true,
		"protocol=https\nhost=elsewhere.example.org\n": false,
		"protocol=http\nhost=git.example.org\n":        false,
	} {
		output, err := find(t).Run(t.Context(), git.Command{Args: []string{"credential", "fill"}, Remote: &remote, Input: strings.NewReader(address + "\n")})
		if got := err == nil && strings.Contains(output, "password="+remote.Password+"\n"); got != want {
			t.Errorf("for %q: %v, %v", address, output, err)
		}
	}
}

// What the processes show to others does not have it.
func TestTheCredentialIsNotShown(t *testing.T) {
	t.Parallel()
	remote := git.Remote{URL: "https://git.example.org/a.git", Username: "agent", Password: "s3cret-password"}
	output, err := find(t).Run(t.Context(), git.Command{
		Remote: &remote, Args: []string{"-c", "alias.look=!tr '\\0' '\\n' < /proc/$PPID/cmdline; tr '\\0' '\\n' < /proc/$PPID/environ; env", "look"},
	})
	if err != nil || !strings.Contains(output, "GIT_CONFIG_NOSYSTEM=1") || strings.Contains(output, remote.Password) {
		t.Errorf("%v\n%s", err, output)
	}
	_, err = find(t).Run(t.Context(), git.Command{Remote: &remote, Args: []string{"no-such-command-" + remote.Password}})
	if failed, is := errors.AsType[*git.RunError](err); !is || strings.Contains(failed.Stderr, remote.Password) {
		t.Errorf("the error says %v", err)
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]task.Code{
		"ssh://git@example.org/a.git": task.Unsupported, "ext::sh -c id": task.Unsupported, "git://example.org/a": task.Unsupported,
		"https://user:password@example.org/a.git": task.Invalid, "-upload-pack=x": task.Invalid, "https://exa mple.org/%zz": task.Invalid,
	} {
		if _, err := find(t).Run(t.Context(), git.Command{Args: []string{"ls-remote", address}, Remote: &git.Remote{URL: address}}); task.CodeOf(err) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	// Without a remote git talks to nobody.
	if _, err := find(t).Run(t.Context(), git.Command{Args: []string{"ls-remote", "file:///"}}); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("a command without a remote: %v", err)
	}
}

// Git, which does not read HTTP_PROXY, uses the proxy that everything else uses.
func TestTheProxyForHTTP(t *testing.T) {
	t.Setenv("http_proxy", "")
	t.Setenv("HTTP_PROXY", "http://proxy.example.com:3128")
	used := ""
	for _, variable := range find(t).Environment() {
		if value, is := strings.CutPrefix(variable, "http_proxy="); is {
			used = value // the last one counts
		}
	}
	if used != "http://proxy.example.com:3128" {
		t.Errorf("git uses %q", used)
	}
}

// What is on this machine is not asked through a proxy.
func TestNoProxyToThisMachine(t *testing.T) {
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	for _, without := range []string{"", "example.com"} {
		for _, name := range []string{"http_proxy", "HTTP_PROXY"} {
			t.Run(name+" "+without, func(t *testing.T) {
				for _, one := range []string{"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy"} {
					t.Setenv(one, "")
				}
				t.Setenv(name, "http://127.0.0.1:1") // nobody listens there
				t.Setenv("NO_PROXY", without)
				_, err := find(t).Run(t.Context(), git.Command{Args: []string{"ls-remote", server.URL + "/team/app.git"}, Remote: &git.Remote{URL: server.URL + "/team/app.git"}})
				select {
				case <-asked:
				default:
					t.Errorf("the server was not asked: %v", err)
				}
			})
		}
	}
}

// Neither the user's settings nor a limit on files is in force by chance.
func TestNothingElseHasASay(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[alias]\n\tx = !touch "+home+"/ran\n[user]\n\tname = me\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "user.name")
	t.Setenv("GIT_CONFIG_VALUE_0", "me")
	if output, err := find(t).Run(t.Context(), git.Command{Args: []string{"config", "user.name"}}); err == nil {
		t.Errorf("the user's configuration is read: %s", output)
	}
	program := find(t)
	program.MaxFile = 1024
	dir := filepath.Join(home, "r")
	if _, err := program.Run(t.Context(), git.Command{Args: []string{"init", "--quiet", "--bare", "--template=", dir}}); err != nil {
		t.Fatal(err)
	}
	_, err := program.Run(t.Context(), git.Command{Dir: dir, Args: []string{"-c", "core.compression=0", "hash-object", "-w", "--stdin"}, Input: strings.NewReader(strings.Repeat("x", 10_000))})
	if err == nil {
		t.Error("a file over the limit was written")
	}
}

func TestTheEndOfTheContextIsTheCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("stopped by a person")
	started := filepath.Join(t.TempDir(), "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = os.ReadFile(started) // until the command has begun
		cancel(cause)
	}()
	_, err := find(t).Run(ctx, git.Command{Args: []string{"-c", "alias.wait=!echo > " + started + "; sleep 600", "wait"}})
	if failed, is := errors.AsType[*git.RunError](err); !is || !failed.Ended || !errors.Is(err, cause) {
		t.Errorf("it ended with %v", err)
	}
}

// Only a line of the remote has the server's code: what else git writes may quote
// names that others chose.
func TestTheCodeThatTheServerGives(t *testing.T) {
	t.Parallel()
	line := git.ErrorLine(task.LeaseLost, "the run\nis over")
	for stderr, want := range map[string]task.Code{
		"remote: " + line + "        \nTo http://server/git\n ! [remote rejected]": task.LeaseLost,
		"remote: toryo-error: data_dir: the disk of the server is full\n":          task.Unavailable,
		"warning: x\nremote: toryo-error: too_large: it is large":                  task.TooLarge,
		"fatal: bad name '" + line + "'":                                           "",
		"remote: the name is toryo-error: too_large: x":                            "",
		"remote: toryo-error: from_a_newer_server: x":                              "",
		"remote: toryo-error: too_large":                                           "",
		"":                                                                         "",
	} {
		failed := &git.RunError{What: "push", Stderr: stderr, Err: errors.New("exit status 1")}
		if code, given := failed.ServerCode(); code != want || given != (want != "") {
			t.Errorf("%q: %q, %v", stderr, code, given)
		}
	}
}

// What is a name for a ref is the same for git.
func TestRefNamesAreThoseOfGit(t *testing.T) {
	t.Parallel()
	var names []string
	parts := []string{"a", "/", ".", "..", "@", "{", "@{", "-", "lock", ".lock", " ", "~", "^", ":", "?", "*", "[", "\\", "\x01", "\x7f", "\t", "\n", "機能　追加", "\xff", "refs/"}
	for _, one := range parts {
		for _, two := range parts {
			names = append(names, "refs/heads/"+one+two, one+"/"+two)
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "-") { // git takes it for an option
			continue
		}
		err := exec.CommandContext(t.Context(), "git", "check-ref-format", name).Run()
		if _, refused := errors.AsType[*exec.ExitError](err); err != nil && !refused {
			t.Fatal(err)
		}
		if is := git.IsRefName(name); is != (err == nil) {
			t.Errorf("%q: %v, git says %v", name, is, err)
		}
	}
}
