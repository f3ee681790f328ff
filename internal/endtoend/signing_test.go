package endtoend

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// output runs a program of the machine.
func output(t *testing.T, dir, input, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		testkit.LeaveOut(t, name)
	}
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Stdin, command.Env = dir, strings.NewReader(input), append(os.Environ(), "GNUPGHOME="+dir)
	text, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return strings.TrimSpace(string(text))
}

const botAddress = giteaBot + "@example.com"

// sshKeyOnGitea makes a key for the bot and registers it, as an operator does: Gitea
// wants to see that whoever has the account has the key.
func sshKeyOnGitea(t *testing.T, server *testkit.GiteaServer, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "key")
	output(t, dir, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file)
	public, err := os.ReadFile(file + ".pub")
	must(t, err)
	key, _, err := server.Client(t, giteaBot).CreatePublicKey(sdk.CreateKeyOption{Title: "signing", Key: string(public)})
	must(t, err)
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	post := func(path string, form url.Values) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(form.Encode()))
		must(t, err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := browser.Do(request)
		must(t, err)
		must(t, answer.Body.Close())
		if answer.StatusCode != http.StatusSeeOther {
			t.Fatalf("Gitea answers %s to %s", answer.Status, path)
		}
	}
	post("/user/login", url.Values{"user_name": {giteaBot}, "password": {testkit.GiteaPassword}})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/user/gpg_key_token", nil)
	must(t, err)
	request.SetBasicAuth(giteaBot, testkit.GiteaPassword)
	answer, err := new(http.Client).Do(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	token := make([]byte, 64) // the token for keys of both kinds
	_, err = answer.Body.Read(token)
	if err != nil && err.Error() != "EOF" {
		t.Fatal(err)
	}
	signature := output(t, dir, strings.TrimSpace(string(token)), "ssh-keygen", "-Y", "sign", "-n", "gitea", "-f", file)
	post("/user/settings/keys", url.Values{
		"type": {"verify_ssh"}, "title": {"signing"}, "content": {string(public)}, "fingerprint": {key.Fingerprint}, "signature": {signature},
	})
	return file
}

// openPGPKeyOnGitea does the same with a key of GnuPG, which has the bot's address in it.
func openPGPKeyOnGitea(t *testing.T, server *testkit.GiteaServer) (file string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gpg-test-") //nolint:usetesting // a socket in it has to have a short path
	must(t, err)
	t.Cleanup(func() {
		stop := exec.Command("gpgconf", "--kill", "all")
		stop.Env = append(os.Environ(), "GNUPGHOME="+dir)
		_ = stop.Run()
		_ = os.RemoveAll(dir)
	})
	output(t, dir, "", "gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", "Bot <"+botAddress+">", "ed25519", "sign")
	public := output(t, dir, "", "gpg", "--batch", "--armor", "--export")
	_, _, err = server.Client(t, giteaBot).CreateGPGKey(sdk.CreateGPGKeyOption{ArmoredKey: public})
	must(t, err)
	file = filepath.Join(dir, "secret")
	must(t, os.WriteFile(file, []byte(output(t, dir, "", "gpg", "--batch", "--armor", "--export-secret-keys")), 0o600))
	return file
}

// TestOnGiteaSigned has a real Gitea say that what is published is verified: the first
// work, and what is added to it when a reviewer asks.
func TestOnGiteaSigned(t *testing.T) {
	t.Parallel()
	server := testkit.Gitea(t)
	giteaPeople(t, server)
	for format, test := range map[string]struct {
		owner string
		key   func() string
	}{
		"ssh":     {"alice", func() string { return sshKeyOnGitea(t, server, t.TempDir()) }},
		"openpgp": {"carol", func() string { return openPGPKeyOnGitea(t, server) }},
	} {
		file := test.key()
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			h, site := giteaHouse(t, server, test.owner, "", plan{agents: 1, env: []string{
				"TORYO_GIT_NAME=The bot", "TORYO_GIT_EMAIL=" + botAddress, "TORYO_GIT_SIGNING_FORMAT=" + format, "TORYO_GIT_SIGNING_KEY_FILE=" + file,
			}})
			s := h.runStory(t, site, load(t, "testdata/signed/signed.txtar")[0])
			pull := s.read(t).pulls[0]
			first := verified(t, site, s.item.Repository, pull.HeadCommit)
			if want := "Fix add.sh\n\nCo-authored-by: alice <alice@example.com>\n"; first.RepoCommit.Message != want && strings.TrimSpace(first.RepoCommit.Message) != strings.TrimSpace(want) {
				t.Errorf("it says %q, want %q", first.RepoCommit.Message, want)
			}
			_, _, err := server.Client(t, "bob").CreatePullReview(site.owner, site.short(s.item.Repository), pull.Key.Number, sdk.CreatePullReviewOptions{
				State: sdk.ReviewStateRequestChanges, Body: "Say more in notes.txt.",
			})
			must(t, err)
			awaitTask(t, h, pull.Key)
			again, err := site.look().Item(t.Context(), pull.Key)
			must(t, err)
			if again.HeadCommit == pull.HeadCommit {
				t.Fatal("nothing was added")
			}
			second := verified(t, site, s.item.Repository, again.HeadCommit)
			if len(second.Parents) != 1 || second.Parents[0].SHA != pull.HeadCommit || !strings.Contains(second.RepoCommit.Message, "Co-authored-by: bob <bob@example.com>") {
				t.Errorf("what was added is %q on top of %v", second.RepoCommit.Message, second.Parents)
			}
		})
	}
}

// verified reads a commit and fails unless Gitea shows it as verified and as the bot's.
func verified(t *testing.T, g *giteaSite, repository, hash string) *sdk.Commit {
	t.Helper()
	shown, _, err := g.client(g.owner).GetSingleCommit(g.owner, g.short(repository), hash)
	must(t, err)
	if v := shown.RepoCommit.Verification; v == nil || !v.Verified {
		t.Errorf("%s is not verified: %+v", hash, v)
	}
	if shown.Author == nil || shown.Author.UserName != giteaBot || shown.Committer == nil || shown.Committer.UserName != giteaBot {
		t.Errorf("%s is by %+v and %+v", hash, shown.Author, shown.Committer)
	}
	return shown
}

// awaitTask waits until the development task of an item is done.
func awaitTask(t *testing.T, h *house, key task.Key) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		is, err := h.store.TaskOf(ctx, key, task.Development)
		if err == nil && is.State.Terminal() {
			if is.State != task.Done {
				t.Fatalf("the task is %s/%s", is.State, is.Reason)
			}
			return
		}
		if !pause(ctx) {
			t.Fatalf("the task is %+v, %v", is, err)
		}
	}
}
