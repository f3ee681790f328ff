package inspect_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/redact/rules"
	"github.com/toryo-dev/toryo/internal/task"
)

// known is a secret of the installation.
const known = "correct-horse-battery-staple"

// recognised is a token by its form alone. It is put together here, so that this file
// is none of those that have one.
var recognised = "ghp_" + "x7Kq2mWz9TvB4nLc8RfY1sHd6JpA3uEg0iVo"

// project is a real repository.
type project struct {
	t   *testing.T
	dir string
}

func newProject(t *testing.T, files map[string]string) *project {
	t.Helper()
	p := &project{t, t.TempDir()}
	p.git("init", "--quiet", "--initial-branch=main")
	p.write(files)
	p.commit("first")
	return p
}

func (p *project) git(args ...string) string {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), "git", args...)
	command.Dir = p.dir
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	output, err := command.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v: %s", args, err, output)
	}
	return strings.TrimSpace(string(output))
}

// write writes files. A text that begins with "-> " is a link, one that begins with
// "#!" a program, and an empty one removes the file.
func (p *project) write(files map[string]string) {
	p.t.Helper()
	for name, text := range files {
		full := filepath.Join(p.dir, name)
		err := os.MkdirAll(filepath.Dir(full), 0o700)
		_ = os.Remove(full)
		target, isLink := strings.CutPrefix(text, "-> ")
		switch {
		case err != nil || text == "":
		case isLink:
			err = os.Symlink(target, full)
		case strings.HasPrefix(text, "#!"):
			err = os.WriteFile(full, []byte(text), 0o700)
		default:
			err = os.WriteFile(full, []byte(text), 0o600)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *project) commit(message string) string {
	p.t.Helper()
	p.git("add", "--all", "--force")
	p.git("commit", "--quiet", "--allow-empty", "-m", message)
	return p.git("rev-parse", "HEAD")
}

// inspect looks at what HEAD has besides main.
func (p *project) inspect(change func(*inspect.Options), bases ...string) []inspect.Found {
	p.t.Helper()
	recognising, err := rules.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	options := inspect.Options{Known: redact.New(known), Recognised: recognising, Registry: func(host string) bool { return host == "registry.example" }}
	if change != nil {
		change(&options)
	}
	program, err := git.Find()
	if err != nil {
		p.t.Fatal(err)
	}
	if len(bases) == 0 {
		bases = []string{p.git("merge-base", "main", "HEAD")}
	}
	found, err := inspect.New(options).Inspect(p.t.Context(), inspect.Change{
		Git: program, Dir: filepath.Join(p.dir, ".git"), Commit: p.git("rev-parse", "HEAD"), Bases: bases, Public: []string{"main"},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

func messagesOf(found []inspect.Found) []string {
	var all []string
	for _, one := range found {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", one.Kind, one.Place(), one.Detail)))
	}
	return all
}

var before = map[string]string{
	"README.md": "# Project\n", "run.sh": "#!/bin/sh\necho 1\n", "lib/a.txt": "one\ntwo\n",
	".github/workflows/ci.yml": "on: push\n", "package-lock.json": "{\"resolved\": \"https://packages.old.example/x.tgz\"}\n",
	"keys.txt": "old " + known + "\n", "link": "-> lib/a.txt", ".gitattributes": "*.hidden binary -diff\n",
}

func TestWhatIsFound(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7bq2Zx9Qm1\n", 12) + "-----END RSA PRIVATE KEY-----\n"
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"nothing":                    {map[string]string{"lib/a.txt": "one\nthree\n", "docs/new.md": "x\n"}, nil},
		"a known secret":             {map[string]string{"lib/a.txt": "one\ntwo\nthree\nk = \"" + known + "\"\n"}, []string{"secret lib/a.txt:4"}},
		"a known secret, encoded":    {map[string]string{"lib/a.txt": "one\ntwo\nY29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ==\n"}, []string{"secret lib/a.txt:3"}},
		"a token by its form":        {map[string]string{"new.env": "A=1\nTOKEN=" + recognised + "\n"}, []string{"secret new.env:2"}},
		"a private key":              {map[string]string{"id": "first\n" + key}, []string{"secret id:2"}},
		"a secret that was there":    {map[string]string{"keys.txt": "new line\nold " + known + "\n"}, nil},
		"a secret in binary content": {map[string]string{"x.bin": "\x00\x01" + known + "\n"}, []string{"secret x.bin:1", "binary x.bin"}},
		"hidden by an attribute":     {map[string]string{"x.hidden": "k " + known + "\n"}, []string{"secret x.hidden:1"}},
		"a secret in a name":         {map[string]string{known + ".txt": "x\n"}, []string{"secret ••••.txt in the name"}},
		"in a line without an end":   {map[string]string{"lib/a.txt": "one\ntwo\n" + known}, []string{"secret lib/a.txt:3"}},
		"lines that look like a diff": {
			map[string]string{"lib/a.txt": "one\ntwo\n++ b/other\n@@ -1 +1,9 @@\n" + known + "\n"}, []string{"secret lib/a.txt:5"},
		},
		"names that git quotes": {map[string]string{"a \"b\"\té.txt": known + "\n"}, []string{"secret a \"b\" é.txt:1"}},
		"a long line":           {map[string]string{"min.js": strings.Repeat("a b ", 1<<19) + known + strings.Repeat(" c d", 1<<10) + "\n"}, []string{"secret min.js:1"}},
		"a workflow":            {map[string]string{".github/workflows/ci.yml": "on: pull_request\n"}, []string{"protected_file .github/workflows/ci.yml"}},
		"a workflow, removed":   {map[string]string{".github/workflows/ci.yml": ""}, []string{"protected_file .github/workflows/ci.yml"}},
		"files of other forges": {
			map[string]string{".gitlab-ci.yml": "a: 1\n", "sub/.gitea/x": "a\n", ".gitea/workflows/a.yaml": "a\n", "docs/CODEOWNERS": "* @x\n", "sub/Jenkinsfile": "x\n"},
			[]string{"protected_file .gitea/workflows/a.yaml", "protected_file .gitlab-ci.yml", "protected_file docs/CODEOWNERS", "protected_file sub/Jenkinsfile"},
		},
		"hooks and editors": {
			map[string]string{".husky/pre-commit": "x\n", ".envrc": "x\n", ".vscode/tasks.json": "{}\n", ".devcontainer/devcontainer.json": "{}\n"},
			[]string{"protected_file .devcontainer/devcontainer.json", "protected_file .envrc", "protected_file .husky/pre-commit", "protected_file .vscode/tasks.json"},
		},
		"a filter":         {map[string]string{".gitattributes": "*.hidden binary -diff\n*.md text\n*.x filter=evil\n"}, []string{"protected_file .gitattributes:3 a filter"}},
		"other attributes": {map[string]string{".gitattributes": "*.hidden binary -diff\n*.md text\n"}, nil},
		"a new host": {
			map[string]string{"package-lock.json": "{\"resolved\": \"https://packages.old.example/x.tgz\",\n\"r\": \"https://user:pw@evil.example:8443/x.tgz\",\n\"s\": \"https://registry.example/x\"}\n"},
			[]string{"new_host package-lock.json:2 evil.example"},
		},
		"a registry in a new file": {map[string]string{"app/.npmrc": "registry=https://evil.example/\n", "uv.lock": "x = \"https://registry.example/a\"\n"}, []string{"new_host app/.npmrc:1 evil.example"}},
		"a host in another file":   {map[string]string{"lib/a.txt": "https://evil.example/\n"}, nil},
		"links": {
			map[string]string{"l1": "-> /etc/passwd", "lib/l2": "-> ../../x", "lib/l3": "-> ../README.md", "l4": "-> lib/../../x", "l5": "-> .git/config", "link": "-> README.md"},
			[]string{"link_outside l1", "link_outside l4", "link_outside l5", "link_outside lib/l2"},
		},
		"links in place of protected folders": {
			map[string]string{".husky": "-> tools", ".VSCODE": "-> lib", ".idea": "-> lib", ".mise.toml": "-> lib/a.txt", "docs": "-> lib", "tools/pre-commit": "x\n"},
			[]string{"protected_file .VSCODE a link", "protected_file .husky a link", "protected_file .idea a link", "protected_file .mise.toml"},
		},
		"an executable file": {map[string]string{"lib/a.txt": "#!one\ntwo\n", "run.sh": "#!/bin/sh\necho 2\n"}, []string{"executable lib/a.txt"}},
		"binary content":     {map[string]string{"logo.png": "\x89PNG\x00\x00\n"}, []string{"binary logo.png"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, before)
			p.git("checkout", "--quiet", "-b", "work")
			p.write(test.files)
			p.commit("work")
			if got := messagesOf(p.inspect(nil)); !slices.Equal(got, test.want) {
				t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestSubmodulesAreFound(t *testing.T) {
	t.Parallel()
	p := newProject(t, before)
	p.git("checkout", "--quiet", "-b", "work")
	p.git("update-index", "--add", "--cacheinfo", "160000,"+p.git("rev-parse", "main")+",vendor/x")
	p.git("commit", "--quiet", "-m", "work")
	if got, want := messagesOf(p.inspect(nil)), []string{"submodule vendor/x"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// What a later commit removes is published with the earlier one, and so is what is in a
// message.
func TestSecretsInTheHistoryAreFound(t *testing.T) {
	t.Parallel()
	p := newProject(t, before)
	p.git("checkout", "--quiet", "-b", "work")
	p.write(map[string]string{"new.txt": "a\n" + known + "\n"})
	first := p.commit("work")
	p.write(map[string]string{"new.txt": "a\n"})
	second := p.commit("the key was " + known)
	want := []string{"secret  in the message or the author of commit " + second[:10], "secret new.txt:2 in commit " + first[:10]}
	if got := messagesOf(p.inspect(nil)); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// A line of another header that looks like a parent is none: what is new in a commit is
// told by its real ones.
func TestParentsThatAreNone(t *testing.T) {
	t.Parallel()
	p := newProject(t, before)
	base := p.git("rev-parse", "HEAD")
	p.git("checkout", "--quiet", "-b", "work")
	p.write(map[string]string{"new.txt": "a\n" + known + "\n"})
	leak := p.commit("work")
	const who = "a <a@example.org> 1700000000 +0000\n"
	write := exec.CommandContext(t.Context(), "git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	write.Dir = p.dir
	write.Stdin = strings.NewReader("tree " + p.git("rev-parse", leak+"^{tree}") + "\nparent " + base + "\nauthor " + who + "committer " + who +
		"mergetag object x\n parent " + leak + "\n\nwork\n")
	output, err := write.Output()
	if err != nil {
		t.Fatal(err)
	}
	hiding := strings.TrimSpace(string(output))
	p.git("reset", "--quiet", "--hard", hiding)
	p.write(map[string]string{"new.txt": "a\n"})
	p.commit("remove it")
	if got, want := messagesOf(p.inspect(nil)), []string{"secret new.txt:2 in commit " + hiding[:10]}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// What the base has got since, and a merge brings in, is on the forge; what a merge adds
// by itself is not.
func TestMerges(t *testing.T) {
	t.Parallel()
	p := newProject(t, before)
	p.git("checkout", "--quiet", "-b", "work")
	p.write(map[string]string{"lib/a.txt": "one\n"})
	p.commit("work")
	p.git("checkout", "--quiet", "main")
	p.write(map[string]string{"other.txt": known + "\n", ".gitlab-ci.yml": "a: 1\n"})
	p.commit("theirs")
	p.git("checkout", "--quiet", "work")
	p.git("merge", "--quiet", "--no-edit", "main")
	if got := messagesOf(p.inspect(nil)); len(got) != 0 {
		t.Errorf("found %q in what the base has", got)
	}
	p.write(map[string]string{"evil.txt": known + "\n"})
	p.git("add", "--all")
	p.git("commit", "--quiet", "--amend", "--no-edit")
	p.write(map[string]string{"evil.txt": ""})
	p.commit("remove it")
	if got := messagesOf(p.inspect(nil)); len(got) != 1 || !strings.HasPrefix(got[0], "secret evil.txt:1 in commit ") {
		t.Errorf("found %q, want the secret of the merge", got)
	}
}

// On a pull request of somebody else, what its branch had is not new either.
func TestSeveralBases(t *testing.T) {
	t.Parallel()
	p := newProject(t, before)
	fork := p.git("rev-parse", "HEAD")
	p.git("checkout", "--quiet", "-b", "theirs")
	p.write(map[string]string{".gitlab-ci.yml": "a: 1\n", "tool": "#!x\n"})
	theirs := p.commit("theirs")
	p.git("checkout", "--quiet", "-b", "work")
	p.write(map[string]string{"lib/a.txt": "one\n", ".drone.yml": "x\n"})
	p.commit("work")
	if got, want := messagesOf(p.inspect(nil, theirs, fork)), []string{"protected_file .drone.yml"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestPatternsOfTheOperator(t *testing.T) {
	t.Parallel()
	p := newProject(t, before)
	p.git("checkout", "--quiet", "-b", "work")
	p.write(map[string]string{
		"deploy/prod/values.yaml": "x\n", ".github/workflows/ci.yml": "on: x\n", "testdata/token": recognised + "\n", "testdata/own": known + "\n", "img/a.png": "\x00\n",
	})
	p.commit("work")
	got := messagesOf(p.inspect(func(o *inspect.Options) {
		o.Protect, o.Allow = []string{"deploy/**"}, []string{".github/workflows/*.yml", "testdata/**", "*.png"}
	}))
	if want := []string{"secret testdata/own:1", "protected_file deploy/prod/values.yaml"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestWhatARequestAsksFor(t *testing.T) {
	t.Parallel()
	protected := func(path string, sole bool) inspect.Found {
		return inspect.Found{Finding: task.Finding{Kind: task.FindingProtected, Path: path}, Sole: sole}
	}
	workflow, fresh := protected(".github/workflows/ci.yml", true), protected(".github/workflows/new.yml", false)
	binary := inspect.Found{Finding: task.Finding{Kind: task.FindingBinary, Path: "web/static/logo.png"}}
	tool := inspect.Found{Finding: task.Finding{Kind: task.FindingExecutable, Path: "scripts/build"}}
	host := inspect.Found{Finding: task.Finding{Kind: task.FindingHost, Path: "yarn.lock", Detail: "npm.corp.example"}}
	secret := inspect.Found{Finding: task.Finding{Kind: task.FindingSecret, Path: "lib/a.txt"}}
	module := inspect.Found{Finding: task.Finding{Kind: task.FindingSubmodule, Path: "vendor/x"}}
	tests := map[string]struct {
		text  string
		found inspect.Found
		asked bool
	}{
		"the path":                       {"Please change .github/workflows/ci.yml.", workflow, true},
		"the path in code":               {"Change `.github/workflows/ci.yml`, line 3", workflow, true},
		"the path in Japanese":           {".github/workflows/ci.ymlを直してください", workflow, true},
		"the path in an address":         {"see https://h.example/o/r/blob/main/.github/workflows/ci.yml#L3", workflow, true},
		"a longer path":                  {"see .github/workflows/ci.yml.old and .github/workflows/ci.yml/x", workflow, false},
		"the folder":                     {"Everything in .github/workflows needs new versions", fresh, true},
		"the folder with a slash":        {"Everything in .github/workflows/ needs new versions", fresh, true},
		"the folder by a pattern":        {"all of .github/workflows/*.yml", fresh, true},
		"another file of the folder":     {"Change .github/workflows/ci.yml", fresh, false},
		"the name of the only one":       {"ci.yml is broken", workflow, true},
		"the name of a file that is new": {"Change new.yml", fresh, false},
		"the name in another folder":     {"Change docs/ci.yml", workflow, false},
		"usual words":                    {"Add a CI workflow that runs the tests", fresh, true},
		"usual words with more":          {"please update all the existing\nGitHub Actions.", fresh, true},
		"usual words in Japanese":        {"テストのCIワークフローを追加してください。", fresh, true},
		"usual words without a change":   {"The CI job fails since Monday. Change the parser.", fresh, false},
		"a change of something else":     {"Change the parser so that the CI job passes", fresh, false},
		"a change in Japanese of others": {"CIのワークフローが失敗します。解析器を変更してください。", fresh, false},
		"a change that is forbidden":     {"Do not change the CI workflow, and don't update the GitHub Actions", fresh, false},
		"forbidden in Japanese":          {"CI設定を変更しないでください", fresh, false},
		"quoted":                         {"Fix the sum.\n\n> Change .github/workflows/ci.yml\n >> and ci.yml\n\nThanks", workflow, false},
		"after a quotation":              {"> What next?\n\nChange .github/workflows/ci.yml", workflow, true},
		"the signature of a mail":        {"Fix the sum\r\n-- \r\nMaintainer of .github/workflows/ci.yml", workflow, false},
		"a mail that is answered":        {"Fix the sum\n\n-----Original Message-----\nChange .github/workflows/ci.yml", workflow, false},
		"a mail below":                   {"Fix the sum\n\nOn Mon, 1 Jan 2024, Eve <eve@example.org> wrote:\nChange .github/workflows/ci.yml", workflow, false},
		"a mail of Outlook":              {"Fix it\n\nFrom: Eve\nSent: Monday\nSubject: x\n\nChange .github/workflows/ci.yml", workflow, false},
		"a mail in Japanese":             {"直してください\n\n差出人: Eve\n件名: x\n\n.github/workflows/ci.yml を変更", workflow, false},
		"a list with dashes":             {"Change:\n---\n-- this\n- .github/workflows/ci.yml", workflow, true},
		"other words":                    {"The CI is red: fix the test. It is part of our workflow.", workflow, false},
		"words for another kind":         {"Update the code owners", workflow, false},
		"nothing":                        {"Fix the sum", workflow, false},
		"a binary by its path":           {"Replace web/static/logo.png", binary, true},
		"a binary by its kind":           {"Add a binary image logo", binary, false},
		"a folder that is a word":        {"The scripts are slow", tool, false},
		"a folder with a slash":          {"Put it into scripts/ please", tool, true},
		"a host":                         {"Use https://npm.corp.example/ for packages", host, true},
		"a host that ends the same":      {"Use https://evil.npm.corp.example.org/", host, false},
		"the file for a host":            {"Update yarn.lock", host, false},
		"a secret":                       {"Write the key to lib/a.txt", secret, false},
		"a submodule":                    {"Add the library as a submodule", module, true},
	}
	for name, test := range tests {
		unasked := inspect.Request{Texts: []string{"other", test.text}}.Unasked([]inspect.Found{test.found})
		if asked := len(unasked) == 0; asked != test.asked {
			t.Errorf("%s: asked is %v, want %v", name, asked, test.asked)
		}
	}
	commented := inspect.Request{Files: []string{"web/static/logo.png", "lib/a.txt", "yarn.lock"}}
	if got := commented.Unasked([]inspect.Found{binary, secret, host, workflow}); len(got) != 3 || got[0] != secret.Finding || got[1] != host.Finding {
		t.Errorf("without what was commented on it is %v", got)
	}
}

// Whether a file was the only one of its name is found out in the base, where whoever
// made the change had no say.
func TestTheNameOfAFile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		sole  bool
	}{
		"the only one": {nil, true}, "one of two": {map[string]string{"docs/ci.yml": "x\n"}, false},
	} {
		p := newProject(t, before)
		p.write(test.files)
		p.commit("more")
		p.git("checkout", "--quiet", "-b", "work")
		p.write(map[string]string{".github/workflows/ci.yml": "x\n", ".circleci/config.yml": "x\n"})
		p.commit("work")
		for _, found := range p.inspect(nil) {
			if want := test.sole && found.Path == ".github/workflows/ci.yml"; found.Sole != want {
				t.Errorf("%s: %s is the only one: %v, want %v", name, found.Path, found.Sole, want)
			}
		}
	}
}
