package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// traps is what runs inside. Each of them makes a git that trusts the workspace
// run a program, which leaves a mark where only the host can.
const traps = `set -e
cd "$1"
printf '#!/bin/sh\necho "$0 $*" >> "%s"\ncat 2>/dev/null\n' "$2" > trap.sh
chmod +x trap.sh
evil="$1/trap.sh"

# The inside has a repository to work with.
git log --oneline | grep -q first
git status --short > /dev/null
echo changed > a.txt
git commit --quiet --all -m 'inside'

for repository in .git nested/.git lib/.git; do
	if [ ! -d "$repository" ]; then git init --quiet "$(dirname "$repository")"; fi
	mkdir -p "$repository/hooks"
	for hook in pre-commit post-checkout pre-push post-index-change reference-transaction post-merge fsmonitor-watchman; do
		cp trap.sh "$repository/hooks/$hook"
	done
	for setting in core.fsmonitor core.sshCommand core.editor core.pager core.askPass diff.external filter.evil.clean filter.evil.smudge filter.evil.process \
		diff.evil.textconv diff.evil.command merge.evil.driver credential.helper gpg.program uploadpack.packObjectsHook; do
		git config --file "$repository/config" "$setting" "$evil"
	done
	git config --file "$repository/config" core.hooksPath "$1/$repository/hooks"
	git config --file "$repository/config" filter.evil.required true
	git config --file "$repository/config" commit.gpgSign true
	git config --file "$repository/config" include.path "$1/more.config"
done
printf '[core]\n\tfsmonitor = %s\n' "$evil" > more.config
printf '* filter=evil diff=evil merge=evil\n' > .gitattributes
printf '[submodule "lib"]\n\tpath = lib\n\turl = https://example.org/lib\n' > .gitmodules
echo new > nested/file.txt
ln -s "$1/../git/config" link-to-config
`

// Nothing that a sandbox writes into the workspace makes the host's git run a
// program.
func TestTheHostTrustsNothingFromInside(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	s := newSite(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n", "lib/x": "x\n"})
	w := s.prepare(t, nil)
	dir := w.Workspace()
	mark := filepath.Join(t.TempDir(), "mark")
	cmd := exec.Command("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
		"--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", dir, dir, "--chdir", dir,
		"--clearenv", "--setenv", "PATH", "/usr/bin", "--setenv", "HOME", "/tmp", "--setenv", "GIT_CONFIG_COUNT", "1",
		"--setenv", "GIT_CONFIG_KEY_0", "safe.directory", "--setenv", "GIT_CONFIG_VALUE_0", "*",
		"sh", "-c", traps, "sh", dir, mark)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	before := read(t, filepath.Dir(dir), "git/config")
	save(t, w)
	if _, err := w.Diff(t.Context(), ""); err != nil {
		t.Error(err)
	}
	s.Commit(t, "main", "theirs", map[string]string{"b.txt": "theirs\n"})
	s.Seed(t)
	if _, err := w.Merge(t.Context()); err != nil {
		t.Error(err)
	}
	commit := commitAll(t, w)
	if text, err := os.ReadFile(mark); err == nil {
		t.Errorf("the host ran:\n%s", text)
	}
	if after := read(t, filepath.Dir(dir), "git/config"); after != before {
		t.Errorf("git's own configuration was changed:\n%s", after)
	}
	names := strings.Join(s.names(t, commit), "\n") + "\n"
	for _, name := range []string{"a.txt", "b.txt", "nested/file.txt", "link-to-config", ".gitattributes", "trap.sh"} {
		if !strings.Contains(names, name+"\n") {
			t.Errorf("%s is not in the commit:\n%s", name, names)
		}
	}
	if strings.Contains(names, ".git/") || strings.Contains(s.Mirrored(t, "ls-tree", "-r", commit), "160000") {
		t.Errorf("a repository is in the commit:\n%s", names)
	}
	// The traps are good: a git that trusts the workspace runs into them.
	_, _ = try(t, dir, "-c", "safe.directory=*", "status")
	if _, err := os.Stat(mark); err != nil {
		t.Error("the traps do not work, so that this shows nothing")
	}
}

// The server checks what is pushed, and what it does not take is said.
func TestWhatTheServerDoesNotTake(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n"})
	w := s.prepare(t, nil)
	put(t, w.Workspace(), ".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = https://example.org/lib\n\tupdate = !touch /tmp/x\n")
	if _, err := w.Save(t.Context(), "x"); task.CodeOf(err) != task.Invalid || !strings.Contains(err.Error(), "gitmodulesUpdate") {
		t.Errorf("it was saved: %v", err)
	}
	put(t, w.Workspace(), ".gitmodules", "")
	put(t, w.Workspace(), "a.txt", "b\n")
	save(t, w)
}

// Other things that take the place of the repository inside.
func TestWhatTakesThePlaceOfDotGit(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(dir string) error{
		"nothing":           func(string) error { return nil },
		"a file":            func(dir string) error { return os.WriteFile(dir, []byte("gitdir: /nonexistent\n"), 0o600) },
		"a link out":        func(dir string) error { return os.Symlink("/etc", dir) },
		"a link to our own": func(dir string) error { return os.Symlink("../git", dir) },
		"an empty folder":   func(dir string) error { return os.Mkdir(dir, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, map[string]string{"a.txt": "a\n"})
			w := s.prepare(t, nil)
			dir := filepath.Join(w.Workspace(), ".git")
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			put(t, w.Workspace(), "b.txt", "b\n")
			if got := strings.Join(s.names(t, commitAll(t, w)), " "); got != "a.txt b.txt" {
				t.Errorf("the commit has %q", got)
			}
			if err := w.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
}
