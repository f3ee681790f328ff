//go:build bare

package program

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/testkit"
)

// The places of the package.
const (
	packagedProgram = "/usr/bin/toryo"
	packagedConfig  = "/etc/toryo/toryo.yaml"
	packagedScript  = "/etc/toryo/script.yaml"
	packagedData    = "/var/lib/toryo"
)

// The project of the first day, and what becomes of it.
const (
	readmeBefore = "# Hello\n\nIt greets.\n"
	readmeAfter  = "# Hello\n\nIt greets.\n\n## Tests\n\nWith Go installed: `go test ./...`\n"
)

var project = map[string]string{
	"go.mod":        "module example.com/hello\n\ngo 1.24\n",
	"hello.go":      "package hello\n\n// Greeting greets somebody.\nfunc Greeting(name string) string { return \"Hello, \" + name }\n",
	"hello_test.go": "package hello\n\nimport \"testing\"\n\nfunc TestGreeting(t *testing.T) {\n\tif got := Greeting(\"Ann\"); got != \"Hello, Ann\" {\n\t\tt.Error(got)\n\t}\n}\n",
}

// packageScript is what the model says about the README.
var packageScript = strings.NewReplacer(
	editCall, `{name: edit, arguments: {command: create, path: README.md, overwrite: true, new: "`+strings.ReplaceAll(readmeAfter, "\n", `\n`)+`"}}`,
	`"name": "python"`, `"name": "go"`, "Greet people", "Say how the tests are run",
).Replace(firstDayScript)

// installed is a machine with the package, on which root connects a Gitea.
type installed struct {
	*testing.T
	on    *giteaPlace
	owner uint32 // of the data
	token string // of the bot
	file  string // in which it is
	addr  string
}

// run runs a program as it is called by root, with nothing else in its environment.
func (m *installed) run(program string, arguments ...string) []byte {
	m.Helper()
	command := exec.CommandContext(m.Context(), program, arguments...)
	command.Dir = filepath.Dir(m.file)
	command.Env = []string{"HOME=/root", "PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		m.Fatalf("%s %v: %v\n%s%s", program, arguments, err, out, complaint.String())
	}
	return out
}

// packageSummary is what toryo init --json prints.
type packageSummary struct {
	Config string `json:"config"`
	Data   string `json:"data"`
	Bot    string `json:"bot"`
	Issue  string `json:"issue"`
	Pull   string `json:"pull"`
	Steps  []struct {
		What  string `json:"what"`
		State string `json:"state"`
	} `json:"steps"`
}

func (m *installed) setUp(flags ...string) (said packageSummary) {
	m.Helper()
	if err := json.Unmarshal(m.run(packagedProgram, append([]string{"init", "--yes", "--json"}, flags...)...), &said); err != nil {
		m.Fatal(err)
	}
	return said
}

// Who installs the package on a bare system and connects a Gitea by flags alone has a pull request
// for a first issue, and can take everything back. scripts/fresh runs this, in the bare system.
func TestOnGiteaPackage(t *testing.T) {
	t.Parallel()
	began := time.Now()
	m := &installed{T: t, file: filepath.Join(t.TempDir(), "token")}
	m.install(os.Getenv("TORYO_TEST_PACKAGE"))
	installation := time.Since(began)
	flags := m.prepare()
	began = time.Now()
	said := m.setUp(append(flags, "--first-issue", "yes", "--start", "once")...)
	answers := len(flags)/2 + 3 // each flag has a value; --yes, --first-issue and --start
	t.Logf("installing took %.1f s, and toryo init with %d answers %.1f s, from nothing to the pull request", installation.Seconds(), answers, time.Since(began).Seconds())
	if answers >= 15 {
		t.Errorf("%d answers are needed: %q", answers, flags)
	}
	if said.Config != packagedConfig || said.Data != packagedData || said.Bot != m.on.bot {
		t.Errorf("the summary is %+v", said)
	}
	m.wantIssueAndPull(said)
	hook := m.wantHook()
	m.wantOwners()
	m.wantNoSecretElsewhere()
	m.run("runuser", "--user", "toryo", "--", packagedProgram, "doctor") // the service can read everything
	m.wantUnchanged(flags)
	if again := m.wantHook(); again.ID != hook.ID {
		t.Errorf("the webhook was %d and is %d", hook.ID, again.ID)
	}
	m.wantRemoved()
}

// install installs the package as docs/releases.md says.
func (m *installed) install(file string) {
	m.Helper()
	if file == "" {
		m.Fatal("TORYO_TEST_PACKAGE does not name the package: scripts/fresh package builds one and runs this test")
	}
	if _, err := os.Stat(packagedProgram); err == nil {
		m.Fatalf("%s is there already: this is for a bare system", packagedProgram)
	}
	m.run("apt-get", "install", "--yes", file)
	account, err := user.Lookup("toryo")
	if err != nil {
		m.Fatal(err)
	}
	id, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil || id == 0 {
		m.Fatalf("the user toryo is %s: %v", account.Uid, err)
	}
	m.owner = uint32(id)
}

// prepare starts a Gitea with a project, and returns the flags that connect it.
func (m *installed) prepare() []string {
	m.Helper()
	server := testkit.Gitea(m)
	m.on = newGiteaPlace(m.T, server)
	access := sdk.AccessModeAdmin
	if _, err := m.on.client.AddCollaborator(m.on.owner, m.on.name, m.on.bot, sdk.AddCollaboratorOption{Permission: &access}); err != nil {
		m.Fatal(err)
	}
	for name, content := range project {
		if _, _, err := m.on.client.CreateFile(m.on.owner, m.on.name, name, sdk.CreateFileOptions{Content: encoded(content)}); err != nil {
			m.Fatal(err)
		}
	}
	first, _, err := m.on.client.GetContents(m.on.owner, m.on.name, "main", "README.md")
	if err != nil {
		m.Fatal(err)
	}
	if _, _, err := m.on.client.UpdateFile(m.on.owner, m.on.name, "README.md", sdk.UpdateFileOptions{SHA: first.SHA, Content: encoded(readmeBefore)}); err != nil {
		m.Fatal(err)
	}
	m.token = server.ScopedToken(m, m.on.bot, "write:repository", "write:issue", "read:user")
	for file, one := range map[string]struct {
		content string
		mode    fs.FileMode
	}{m.file: {m.token + "\n", 0o600}, packagedScript: {packageScript, 0o644}} {
		if err := os.WriteFile(file, []byte(one.content), one.mode); err != nil {
			m.Fatal(err)
		}
	}
	port, err := testkit.FreePort()
	if err != nil {
		m.Fatal(err)
	}
	m.addr = "127.0.0.1:" + strconv.Itoa(port)
	return []string{
		"--forge", "gitea", "--url", server.URL, "--token-file", m.file, "--repository", m.on.owner + "/" + m.on.name,
		"--provider", "script", "--script", packagedScript, "--addr", m.addr,
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// wantIssueAndPull looks for the issue and its pull request where people do.
func (m *installed) wantIssueAndPull(said packageSummary) {
	m.Helper()
	on := m.on
	issue, _, err := on.client.GetIssue(on.owner, on.name, 1)
	if err != nil {
		m.Fatal(err)
	}
	var labels []string
	for _, label := range issue.Labels {
		labels = append(labels, label.Name)
	}
	if issue.HTMLURL != said.Issue || issue.Title != "Say in the README.md how to run the tests" || len(issue.Assignees) != 1 || issue.Assignees[0].UserName != on.bot {
		m.Errorf("the issue is %+v; the summary is %+v", issue, said)
	}
	if diff := cmp.Diff([]string{"coding agent done"}, labels); diff != "" {
		m.Errorf("the labels of the issue: %s", diff)
	}
	pull, _, err := on.client.GetPullRequest(on.owner, on.name, 2)
	if err != nil {
		m.Fatal(err)
	}
	if pull.HTMLURL != said.Pull || pull.State != sdk.StateOpen || pull.Title != "Say how the tests are run" || pull.Poster.UserName != on.bot ||
		pull.Base.Ref != "main" || !strings.HasPrefix(pull.Head.Ref, "toryo/1-") || !strings.Contains(pull.Body, "`go test ./...`: passed") {
		m.Errorf("the pull request is %+v; the summary is %+v", pull, said)
	}
	files, _, err := on.client.ListPullRequestFiles(on.owner, on.name, 2, sdk.ListPullRequestFilesOptions{})
	if err != nil || len(files) != 1 || files[0].Filename != "README.md" {
		m.Errorf("%v: the pull request changes %+v", err, files)
	}
	text, _, err := on.client.GetFile(on.owner, on.name, pull.Head.Ref, "README.md")
	if err != nil || string(text) != readmeAfter {
		m.Errorf("%v: the README is %q", err, text)
	}
}

// wantHook is the one webhook that there is.
func (m *installed) wantHook() *sdk.Hook {
	m.Helper()
	hooks, _, err := m.on.client.ListRepoHooks(m.on.owner, m.on.name, sdk.ListHooksOptions{})
	if err != nil || len(hooks) != 1 || !hooks[0].Active || hooks[0].Config["url"] != "http://"+m.addr+"/webhooks/gitea" {
		m.Fatalf("%v: the webhooks are %+v", err, hooks)
	}
	return hooks[0]
}

// wantOwners checks that the data are the server's and nobody else's, and that the server cannot
// change its configuration.
func (m *installed) wantOwners() {
	m.Helper()
	err := filepath.WalkDir(packagedData, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if is := info.Sys().(*syscall.Stat_t); is.Uid != m.owner {
			m.Errorf("%s belongs to %d", path, is.Uid)
		}
		private := path == packagedData || strings.HasPrefix(path, packagedData+"/secrets")
		if private && info.Mode().Perm()&0o077 != 0 {
			m.Errorf("%s is %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		m.Error(err)
	}
	info, err := os.Stat(packagedConfig)
	if err != nil {
		m.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); is.Uid != 0 || info.Mode().Perm() != 0o644 {
		m.Errorf("%s belongs to %d and is %s", packagedConfig, is.Uid, info.Mode())
	}
}

// wantNoSecretElsewhere looks for the secrets in all files but their own.
func (m *installed) wantNoSecretElsewhere() {
	m.Helper()
	secrets := [][]byte{[]byte(m.token)}
	made, err := os.ReadFile(filepath.Join(packagedData, "secrets", "gitea-webhook-secret"))
	if err != nil || len(bytes.TrimSpace(made)) < 32 {
		m.Fatalf("%v: the secret of the webhook has %d bytes", err, len(made))
	}
	secrets = append(secrets, bytes.TrimSpace(made))
	for _, folder := range []string{packagedData, filepath.Dir(packagedConfig)} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(path, packagedData+"/secrets/") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, secret := range secrets {
				if bytes.Contains(content, secret) {
					m.Errorf("%s has a secret in it", path)
				}
			}
			return err
		})
		if err != nil {
			m.Error(err)
		}
	}
}

// written is what toryo init writes: mode, time and content by path.
func (m *installed) written() map[string]string {
	m.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"/etc/toryo/*", packagedData + "/init.json", packagedData + "/secrets/*", packagedData + "/secrets/.*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			m.Fatal(err)
		}
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				m.Fatal(err)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				m.Fatal(err)
			}
			found[path] = info.Mode().String() + " " + info.ModTime().String() + " " + string(content)
		}
	}
	return found
}

// wantUnchanged runs toryo init again, with the same flags and with none.
func (m *installed) wantUnchanged(flags []string) {
	m.Helper()
	before := m.written()
	for _, flags := range [][]string{flags, nil} {
		for _, step := range m.setUp(flags...).Steps {
			if step.State != "unchanged" {
				m.Errorf("%s is %s", step.What, step.State)
			}
		}
		if diff := cmp.Diff(before, m.written()); diff != "" {
			m.Errorf("after toryo init %v: %s", flags, diff)
		}
	}
}

// wantRemoved takes everything back. What was there before and what tasks have made stays, also
// when the package goes.
func (m *installed) wantRemoved() {
	m.Helper()
	m.setUp("--remove")
	hooks, _, err := m.on.client.ListRepoHooks(m.on.owner, m.on.name, sdk.ListHooksOptions{})
	if err != nil || len(hooks) != 0 {
		m.Errorf("%v: the webhooks are %+v", err, hooks)
	}
	m.run("apt-get", "remove", "--yes", "toryo")
	for path, want := range map[string]bool{
		packagedConfig: false, packagedData + "/secrets": false, packagedData + "/init.json": false, packagedProgram: false,
		m.file: true, packagedScript: true, packagedData + "/toryo.db": true,
	} {
		if _, err := os.Lstat(path); err == nil != want {
			m.Errorf("%s is there: %t", path, !want)
		}
	}
	if _, err := user.Lookup("toryo"); err != nil {
		m.Error(err)
	}
}
