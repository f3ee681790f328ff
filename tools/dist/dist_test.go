package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// here is this system, for which a program can be run.
var here = target{runtime.GOOS, runtime.GOARCH}

// tinyProgram does what a release asks of the program.
const tinyProgram = `package main

import "os"

func main() {
	if len(os.Args) == 3 && os.Args[1] == "completion" {
		_, _ = os.Stdout.WriteString("# for " + os.Args[2] + "\n")
	}
	if len(os.Args) == 3 && os.Args[1] == "man" {
		_ = os.Mkdir(os.Args[2], 0o755)
		_ = os.WriteFile(os.Args[2]+"/toryo.1", []byte(".TH TORYO 1\n"), 0o644)
	}
}
`

// tinyRepository is a repository with a small program in the place of the real one.
func tinyRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                                 "module github.com/toryo-dev/toryo\n\ngo 1.26.0\n",
		"cmd/toryo/main.go":                      tinyProgram,
		"internal/sandbox/guest/program/main.go": "package main\n\nfunc main() {}\n",
		"LICENSE":                                "the licence\n", "README.md": "# read\n", "README.ja.md": "# 読\n",
		"CHANGELOG.md":                       "# Changelog\n\n## 0.3.0 (unreleased)\n\n- a new thing\n\n## 0.2.0\n\n- an old thing\n",
		"deploy/helm/toryo/Chart.yaml":       "apiVersion: v2\nname: toryo\nversion: 0.1.0\nappVersion: 0.1.0\n",
		"deploy/helm/toryo/templates/a.yaml": "a: 1\n",
	} {
		if err := writeFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	git(t, root, "init", "--quiet")
	git(t, root, "add", "--all")
	git(t, root, "commit", "--quiet", "--message", "first")
	git(t, root, "tag", "v0.3.0")
	return root
}

func git(t *testing.T, dir string, arguments ...string) {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, arguments...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-01-02T03:04:05+09:00", "GIT_CONFIG_GLOBAL=/dev/null")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, said)
	}
}

func tinyOptions(t *testing.T, root string) options {
	t.Helper()
	targets := []target{{"windows", "amd64"}}
	if slices.Contains(allTargets, here) {
		targets = append(targets, here)
	}
	return options{root: root, out: filepath.Join(t.TempDir(), "out"), commit: "HEAD", targets: targets, image: imageProgramOnly, builder: builderID, level: gzip.BestSpeed, log: t.Output()}
}

func fileOf(t *testing.T, r *release, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Two builds of a commit, in two folders, are the same files; and what is not committed is
// in neither.
func TestReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	root := tinyRepository(t)
	first, err := build(t.Context(), tinyOptions(t, root))
	if err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(t.TempDir(), "another folder")
	git(t, root, "clone", "--quiet", root, clone)
	if err := os.WriteFile(filepath.Join(clone, "LICENSE"), []byte("not committed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := build(t.Context(), tinyOptions(t, clone))
	if err != nil {
		t.Fatal(err)
	}
	if err := compare(first, second); err != nil {
		t.Error(err)
	}
	second.files[0].digest = "another"
	if err := compare(first, second); err == nil || !strings.Contains(err.Error(), second.files[0].name) {
		t.Errorf("a file that differs: %v", err)
	}
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		checkFiles(t, first)
	})
	t.Run("archives", func(t *testing.T) {
		t.Parallel()
		checkArchives(t, first)
	})
	t.Run("chart", func(t *testing.T) {
		t.Parallel()
		checkChart(t, first)
	})
	t.Run("bills", func(t *testing.T) {
		t.Parallel()
		checkBills(t, first)
	})
	t.Run("provenance", func(t *testing.T) {
		t.Parallel()
		checkProvenance(t, first)
	})
}

// checkFiles looks at what is in the folder: all files, with their checksums, and the notes.
func checkFiles(t *testing.T, r *release) {
	t.Helper()
	if r.version != "0.3.0" {
		t.Errorf("the version of the tag v0.3.0 is %s", r.version)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "--quiet", checksumFile)
	check.Dir = r.out
	if said, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	found, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Count(string(fileOf(t, r, checksumFile)), "\n")
	if len(found) != listed+1 || len(found) != len(r.files) {
		t.Errorf("there are %d files, %d are listed and %d were made", len(found), listed, len(r.files))
	}
	if notes := string(fileOf(t, r, "toryo_0.3.0_notes.md")); !strings.Contains(notes, "a new thing") || strings.Contains(notes, "an old thing") {
		t.Errorf("the notes are %q", notes)
	}
}

// checkArchives looks into the archives: names, rights, times, and that each is what its
// system opens.
func checkArchives(t *testing.T, r *release) {
	t.Helper()
	when := time.Date(2026, 1, 1, 18, 4, 5, 0, time.UTC)
	packed := fileOf(t, r, "toryo_0.3.0_windows_amd64.zip")
	opened, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range opened.File {
		names = append(names, strings.TrimPrefix(one.Name, "toryo_0.3.0_windows_amd64/"))
		if !one.Modified.Equal(when) {
			t.Errorf("%s is of %s", one.Name, one.Modified)
		}
	}
	if want := []string{"LICENSE", "README.ja.md", "README.md", thirdPartyFile, "completions/_toryo", "completions/toryo.bash", "completions/toryo.fish", "completions/toryo.ps1", "man/toryo.1", "toryo-guest", "toryo.exe"}; !slices.Equal(names, want) {
		t.Errorf("the archive for Windows has %v, want %v", names, want)
	}
	if here.os != "linux" {
		return
	}
	for _, header := range headers(t, fileOf(t, r, r.named(here.String())+".tar.gz")) {
		want := int64(0o644)
		if strings.HasSuffix(header.Name, "/toryo") || strings.HasSuffix(header.Name, "/"+guestName) {
			want = 0o755
		}
		if header.Mode != want || header.Uid != 0 || header.Uname != "" || !header.ModTime.Equal(when) {
			t.Errorf("%s has mode %o, owner %d %q and is of %s", header.Name, header.Mode, header.Uid, header.Uname, header.ModTime)
		}
	}
}

// headers are those of a compressed tar archive.
func headers(t *testing.T, packed []byte) []*tar.Header {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if plain.Name != "" || !plain.ModTime.IsZero() {
		t.Errorf("the compressed file says %q of %s", plain.Name, plain.ModTime)
	}
	var all []*tar.Header
	archive := tar.NewReader(plain)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, header)
	}
}

// checkChart: the chart has the version of the release.
func checkChart(t *testing.T, r *release) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(fileOf(t, r, "toryo-chart-0.3.0.tgz")))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(plain)
	header, err := archive.Next()
	if err != nil || header.Name != "toryo/Chart.yaml" {
		t.Fatalf("the chart begins with %v, %v", header, err)
	}
	text, err := io.ReadAll(archive)
	if err != nil || !strings.Contains(string(text), "\nversion: \"0.3.0\"\nappVersion: \"0.3.0\"\n") {
		t.Errorf("Chart.yaml is %s, %v", text, err)
	}
}

// checkBills: a bill of materials says what it is and which bytes it is about.
func checkBills(t *testing.T, r *release) {
	t.Helper()
	var made bill
	if err := json.Unmarshal(fileOf(t, r, "toryo_0.3.0_windows_amd64.cdx.json"), &made); err != nil {
		t.Fatal(err)
	}
	if made.Format != "CycloneDX" || made.Spec != "1.6" || !strings.HasPrefix(made.Serial, "urn:uuid:") || made.Metadata.Timestamp != "2026-01-01T18:04:05Z" {
		t.Errorf("the bill begins with %+v", made)
	}
	want := digestOf(r.programs[target{"windows", "amd64"}].content)
	if main := made.Metadata.Component; main.Version != "0.3.0" || len(main.Hashes) != 1 || main.Hashes[0].Content != want {
		t.Errorf("it is about %+v", main)
	}
	if len(made.Components) != 1 || made.Components[0].Name != "std" || len(made.Dependencies) != 2 {
		t.Errorf("a program of the standard library alone has %+v, %+v", made.Components, made.Dependencies)
	}
}

// checkProvenance: its subjects are the files, with their digests.
func checkProvenance(t *testing.T, r *release) {
	t.Helper()
	const name = "toryo_0.3.0_provenance.json"
	var made statement
	if err := json.Unmarshal(fileOf(t, r, name), &made); err != nil {
		t.Fatal(err)
	}
	about := map[string]string{}
	for _, one := range made.Subject {
		about[one.Name] = one.Digest["sha256"]
	}
	for file, digest := range r.digests() {
		itself := file == name || file == checksumFile
		if itself == (about[file] != "") || !itself && about[file] != digest {
			t.Errorf("of %s it says %q", file, about[file])
		}
	}
	definition := made.Predicate.Definition
	if made.Type != statementType || made.PredicateType != predicateType || definition.External["commit"] != r.commit ||
		definition.Internal["go"] != r.golang || made.Predicate.Details.Builder.ID != builderID {
		t.Errorf("it says %+v", made)
	}
	if len(definition.Dependencies) == 0 || definition.Dependencies[0].Digest["gitCommit"] != r.commit {
		t.Errorf("it was made from %+v", definition.Dependencies)
	}
}

// The provenance names the repository that was looked at, and no other.
func TestOriginInProvenance(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"": "", "/a/folder": "", "git@example.com:team/fork.git": "", "http://example.com/team/fork": "",
		"https://example.com/team/fork.git":                "https://example.com/team/fork",
		"https://ann:not-a-secret@example.com/team/fork?x": "https://example.com/team/fork",
	} {
		root := tinyRepository(t)
		if remote != "" {
			git(t, root, "remote", "add", "origin", remote)
		}
		r := &release{options: options{root: root, commit: "HEAD", log: t.Output()}}
		if err := r.identify(t.Context()); err != nil {
			t.Fatal(err)
		}
		made, err := r.materials()
		if err != nil || len(made) != 1 || made[0].Digest["gitCommit"] != r.commit {
			t.Fatalf("%v: it was made from %+v", err, made)
		}
		if want != "" {
			want = "git+" + want + "@" + r.commit
		}
		if made[0].URI != want {
			t.Errorf("with the remote %q it was made from %q, want %q", remote, made[0].URI, want)
		}
	}
}

// Releases are not compiled with a Go that lacks fixes, and those that forges build neither.
func TestOldGoIsRefused(t *testing.T) {
	t.Parallel()
	for golang, old := range map[string]bool{"go1.26.0": true, "go1.26rc1": true, oldestGo: false, oldestGo + " X:nothing": false, "go1.27.0": false, "devel +1234": false} {
		if err := newEnough(golang); (err != nil) != old {
			t.Errorf("%s: %v", golang, err)
		}
	}
	for _, name := range []string{".github/workflows/ci.yml", ".github/workflows/release.yml", ".gitlab-ci.yml"} {
		text, err := os.ReadFile(filepath.Join(repository(t), filepath.FromSlash(name)))
		if err != nil || !strings.Contains(string(text), "GOTOOLCHAIN: "+oldestGo+" ") {
			t.Errorf("%s does not set GOTOOLCHAIN to %s: %v", name, oldestGo, err)
		}
	}
}

// Images are made from one version of Debian with its fixes, from a mirror that is named.
func TestSourcesOfDebian(t *testing.T) {
	t.Parallel()
	text, err := options{mirror: "http://mirror.example.com/debian/"}.debianSources(t.Context())
	want := "deb [signed-by=" + debianKeyring + "] http://mirror.example.com/debian/ trixie main\n" +
		"deb [signed-by=" + debianKeyring + "] http://mirror.example.com/debian-security trixie-security main\n"
	if err != nil || text != want {
		t.Errorf("%v: the sources are\n%s", err, text)
	}
}

// A folder with something else in it is not replaced, and neither is a file.
func TestOtherFoldersAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &release{options: options{out: filepath.Join(dir, "out")}, making: filepath.Join(dir, "making")}
	if err := errors.Join(writeFile(filepath.Join(r.making, checksumFile), nil), writeFile(filepath.Join(r.out, "thesis.txt"), []byte("years"))); err != nil {
		t.Fatal(err)
	}
	if err := r.place(); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("it was placed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.out, "thesis.txt")); err != nil {
		t.Error(err)
	}
	r.out = filepath.Join(r.out, "thesis.txt")
	if err := r.place(); err == nil || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("it was placed: %v", err)
	}
	if text, err := os.ReadFile(r.out); err != nil || string(text) != "years" {
		t.Errorf("%v: the file is %q", err, text)
	}
}

func TestVersionWithoutATag(t *testing.T) {
	t.Parallel()
	root := tinyRepository(t)
	git(t, root, "commit", "--quiet", "--allow-empty", "--message", "second")
	r := &release{options: options{root: root, commit: "HEAD", log: t.Output()}}
	if err := r.identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "0.3.0-dev.g" + r.commit[:12]; r.version != want {
		t.Errorf("the version is %s, want %s", r.version, want)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for text, arguments := range map[string][]string{
		"no command": {"publish"}, "-image is": {"-image", "all"}, "there is no system": {"-targets", "plan9/386"}, "not defined": {"-what"},
		"is no version": {"-root", tinyRepository(t), "-version", "one"},
	} {
		if err := run(t.Context(), arguments, io.Discard); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("dist %v: %v", arguments, err)
		}
	}
}
