package ignore_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/phase/ignore"
)

// tree is a repository with files and directories of few letters, and their names;
// those of directories end in a slash.
func tree(t *testing.T) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	dirs := []string{"a", "ab", "-a", "[a]", "a b"}
	files := []string{"b", "a.b", "A1", "b ", `a\`}
	places := []string{"."}
	for _, first := range dirs {
		places = append(places, first, path.Join(first, "a"), path.Join(first, "ab"))
	}
	for _, place := range places {
		if err := os.MkdirAll(filepath.Join(dir, place), 0o750); err != nil {
			t.Fatal(err)
		}
		if place != "." {
			names = append(names, place+"/")
		}
		for _, file := range files {
			names = append(names, path.Join(place, file))
			if err := os.WriteFile(filepath.Join(dir, place, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir, names
}

// gitIgnores asks git which of the paths are excluded.
func gitIgnores(t rapid.TB, dir, top, below string, names []string) map[string]bool {
	t.Helper()
	for place, text := range map[string]string{".": top, "a": below} {
		if err := os.WriteFile(filepath.Join(dir, place, ".gitignore"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var asked strings.Builder
	for _, name := range names {
		asked.WriteString(strings.TrimSuffix(name, "/") + "\x00")
	}
	command := exec.Command("git", "-C", dir, "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin")
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	command.Stdin = strings.NewReader(asked.String())
	out, err := command.Output()
	if err != nil && command.ProcessState.ExitCode() != 1 { // 1: none of them
		t.Fatalf("git check-ignore: %v", err)
	}
	ignored := map[string]bool{}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		ignored[string(name)] = true
	}
	return ignored
}

// ignored asks the rules for a path and everything above it, as a walk does.
func ignored(rules ignore.Rules, name string, isDir bool) bool {
	for i, c := range name {
		if c == '/' && rules.Ignored(name[:i], true) {
			return true
		}
	}
	return rules.Ignored(name, isDir)
}

func compare(t rapid.TB, dir, top, below string, names []string) {
	t.Helper()
	want := gitIgnores(t, dir, top, below, names)
	rules := ignore.Rules(nil).Add(".", top).Add("a", below)
	for _, name := range names {
		name, isDir := strings.CutSuffix(name, "/")
		if got := ignored(rules, name, isDir); got != want[name] {
			t.Errorf("%q is ignored: %v; git says %v, for the patterns\n%q and in a/\n%q", name, got, want[name], top, below)
		}
	}
}

// stars are those next to other characters. Two of them are left out: git before
// 2.53 took "a**/b" for "a" and then any depth, against its own documentation.
var stars = regexp.MustCompile(`\*+`)

// The patterns are put together from pieces that mean something to git.
func TestAsGit(t *testing.T) {
	t.Parallel()
	dir, names := tree(t)
	segment := rapid.Custom(func(t *rapid.T) string {
		piece := rapid.SampledFrom([]string{
			"a", "b", "A", "1", ".", "*", "?", "-", " ", `\a`, `\*`, `\ `, `\`, "[ab]", "[!b]", "[^a]", "[a-c]", "[]a]", "[a",
			"[[:alpha:]]", "[[:digit:]]", "[[:upper:]a]", "[[:nope:]]", "[[:]", `[\]a]`, "[a-]", "[-a]", "[a/b]", "[z-a]", "[!]]", "[ -~]",
		})
		return stars.ReplaceAllString(strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(t, "pieces"), ""), "*")
	})
	part := rapid.OneOf(segment, rapid.SampledFrom([]string{"**", "**", "*", "a", "b", "ab"}))
	line := rapid.Custom(func(t *rapid.T) string {
		before := rapid.SampledFrom([]string{"", "", "", "/", "!", "!/", "#", `\!`, `\#`, "**/", " "}).Draw(t, "before")
		after := rapid.SampledFrom([]string{"", "", "", "/", "/**", "/*", " ", "  ", "//", "\r", "\t"}).Draw(t, "after")
		return before + strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), "/") + after
	})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 5).Draw(t, "lines"), "\n") + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		compare(t, dir, text.Draw(t, "top"), text.Draw(t, "below"), names)
	})
}

func TestKnownPatternsAsGit(t *testing.T) {
	t.Parallel()
	dir, names := tree(t)
	for _, text := range []string{
		"", "\n\n", "a", "/a", "a/", "a/b", "/a/b/", "a/*", "a/**", "**/b", "a/**/b", "**", "*", "*\n!a", "*\n!*/\n!b", "!a", "a\n!a/b",
		"a.b", "*.b", "a?b", `\a`, `a\`, "[", "[]", "[!]", "a/[!b]", "a b", "b\\ ", "b ", "***", "a/***/b", "***/b", "**/**/b", "/**", "/", "//", "!", "#a", `\#a`,
		"\ufeffa", "a\r\nb\r\n", "[[:space:]]", "a[[:space:]]b", `\[a\]`, "a\\/b", "/*/b", "*/", "!*/", "a/\n!a/b/", "*a*b*", "**a",
	} {
		compare(t, dir, text, "!b\n/ab\n", names)
	}
}

// A pattern that would make a matcher with naive backtracking try for years.
func TestPatternsCannotExplode(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("a/", 200) + "b"
	rules := ignore.Rules(nil).Add(".", strings.Repeat("**/a/", 100)+"c\n"+strings.Repeat("*a", 500)+"c\n")
	if rules.Ignored(deep, false) || rules.Ignored(strings.Repeat("a", 2000), false) {
		t.Error("it is ignored")
	}
	if long := strings.Repeat("a", 5000); ignore.Rules(nil).Add(".", long).Ignored(long, false) {
		t.Error("a pattern of 5000 bytes is used")
	}
}

func ExampleRules() {
	rules := ignore.Rules(nil).Add(".", "*.log\n!keep.log\n/build/\n")
	fmt.Println(rules.Ignored("src/a.log", false), rules.Ignored("src/keep.log", false), rules.Ignored("build", true), rules.Ignored("src/build", true))
	// Output: true false true false
}
