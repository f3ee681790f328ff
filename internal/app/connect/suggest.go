package connect

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Suggestion is a good first task in a repository: small, and easy to check.
type Suggestion struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	// Why is what was found in the repository, for the person who is asked.
	Why string `json:"why"`
}

// The limits of the search.
const (
	maxSearched = 3000      // files
	maxSource   = 256 << 10 // bytes of one file
	maxDepth    = 8         // folders
)

// Suggest looks through the files of a repository for a first task. The issue may quote them, so
// the folder has to be one of [Fetch] or [FetchFolder], without files that are not in git. False
// means that nothing was found that would be honest to ask for.
func Suggest(table *environment.Table, folder string) (Suggestion, bool, error) {
	files, err := workdir.Open(folder)
	if err != nil {
		return Suggestion{}, false, task.Wrap(task.NotFound, err, "the repository cannot be looked through")
	}
	defer func() { _ = files.Close() }()
	found, err := table.Detect(files.FS(), "")
	if err != nil {
		return Suggestion{}, false, err
	}
	for _, look := range []func(fs.FS, environment.Detection) (Suggestion, bool){testsInReadme, ignoredFiles, markedPlace, missingTest, missingReadme} {
		if made, is := look(files.FS(), found); is {
			made.Body += "\n\nKeep the change small: nothing else has to change.\n\n_Proposed by `toryo init` from what it found in this repository._"
			return made, true, nil
		}
	}
	return Suggestion{}, false, nil
}

// readme is the name and the text of the README, if there is one.
func readme(files fs.FS) (name, text string) {
	for _, name := range []string{"README.md", "README", "README.rst", "README.txt", "Readme.md", "readme.md", "README.adoc"} {
		if content, err := workdir.ReadFile(files, name, maxSource); err == nil {
			return name, string(content)
		}
	}
	return "", ""
}

// testsInReadme asks for a section on the tests, if there are tests and it says nothing of them.
func testsInReadme(files fs.FS, found environment.Detection) (Suggestion, bool) {
	name, text := readme(files)
	command := found.TestCommand
	if name == "" || command == "" || found.Guess || strings.Contains(text, command) {
		return Suggestion{}, false
	}
	where := ""
	if found.Directory != "." && found.Directory != "" {
		where = " in the folder `" + found.Directory + "`"
	}
	return Suggestion{
		Title: "Say in the " + name + " how to run the tests",
		Why:   fmt.Sprintf("the tests are run by %q, and %s does not say so", command, name),
		Body: fmt.Sprintf("`%s` does not say how the tests are run. Add a short section that does: what has to be installed, and the command, which seems to be `%s`%s.\n\n"+
			"Done when\n- the section names the command, and the command works as it is written there.", name, command, where),
	}, true
}

// ignores are what a project leaves behind, by its environment.
var ignores = map[string][]string{
	"python": {"__pycache__/", ".venv/"}, "miniforge": {"__pycache__/"}, "node": {"node_modules/"}, "rust": {"target/"},
}

// ignoredFiles asks for entries of .gitignore.
func ignoredFiles(files fs.FS, found environment.Detection) (Suggestion, bool) {
	if found.Guess {
		return Suggestion{}, false
	}
	content, err := workdir.ReadFile(files, ".gitignore", maxSource)
	if err != nil {
		content = nil
	}
	var missing []string
	for _, entry := range ignores[found.EnvironmentType] {
		if !bytes.Contains(content, []byte(strings.TrimSuffix(entry, "/"))) {
			missing = append(missing, "`"+entry+"`")
		}
	}
	if len(missing) == 0 {
		return Suggestion{}, false
	}
	list := strings.Join(missing, " and ")
	return Suggestion{
		Title: "Ignore " + strings.ReplaceAll(list, "`", "") + " in git",
		Why:   ".gitignore lacks " + strings.ReplaceAll(list, "`", ""),
		Body:  "Working on this project leaves " + list + " behind, and `.gitignore` does not name it. Add it, and make the file if there is none.\n\nDone when\n- git status shows nothing new after the tests were run.",
	}, true
}

// markPattern is how people mark places that they mean to come back to.
var markPattern = lazyregexp.New(`(?:^|\s)(?://|#|/\*|--|;)\s*(TODO|FIXME)\b[:( ]?(.*)$`)

// markedPlace asks to see to a place that is marked.
func markedPlace(files fs.FS, _ environment.Detection) (Suggestion, bool) {
	var made Suggestion
	searchSources(files, func(name string, content []byte) bool {
		for number, line := range bytes.Split(content, []byte("\n")) {
			parts := markPattern.FindSubmatch(line)
			if parts == nil {
				continue
			}
			said := textfmt.Shorten(textfmt.OneLine(forge.Clean(string(parts[2]))), 120)
			if len(strings.Fields(said)) < 3 {
				continue // nobody could know what is meant
			}
			made = Suggestion{
				Title: fmt.Sprintf("See to the %s in %s", parts[1], name),
				Why:   fmt.Sprintf("%s:%d is marked %s", name, number+1, parts[1]),
				Body: fmt.Sprintf("Line %d of `%s` is marked:\n\n%s\n\nDo what it asks for and remove the mark. If it turns out to be more than a small change, do the first useful part and say in the pull request what is left.\n\n"+
					"Done when\n- the mark is gone or says what is left, and the tests pass.", number+1, name, fenced(line)),
			}
			return true
		}
		return false
	})
	return made, made.Title != ""
}

// fenced is a line of a file as code: what it says is neither a mention nor a command to the
// forge.
func fenced(line []byte) string {
	text := textfmt.Shorten(forge.Clean(strings.TrimSpace(string(line))), 200)
	fence := textfmt.Fence(text)
	return fence + "\n" + text + "\n" + fence
}

// missingTest asks for one test, where there is a way to run tests.
func missingTest(_ fs.FS, found environment.Detection) (Suggestion, bool) {
	if found.TestCommand == "" || found.Guess {
		return Suggestion{}, false
	}
	return Suggestion{
		Title: "Add a test for one function that has none",
		Why:   fmt.Sprintf("the tests are run by %q", found.TestCommand),
		Body: fmt.Sprintf("Choose one small function of this project that no test calls, and add a test for what it promises: the usual case and one odd one. Change nothing but tests.\n\n"+
			"Done when\n- the test runs with `%s` and passes,\n- the pull request says which function was chosen and why.", found.TestCommand),
	}, true
}

// missingReadme asks for a README.
func missingReadme(files fs.FS, _ environment.Detection) (Suggestion, bool) {
	if name, _ := readme(files); name != "" {
		return Suggestion{}, false
	}
	return Suggestion{
		Title: "Write a short README",
		Why:   "there is no README",
		Body:  "There is no README. Write a short `README.md`: what this project is, how it is built and run, and where its main parts are, as far as the files tell.\n\nDone when\n- every command in it was tried or is marked as not tried.",
	}, true
}

// sourceEndings are the ends of names of files that people write comments in.
var sourceEndings = []string{".go", ".py", ".js", ".ts", ".tsx", ".jsx", ".java", ".kt", ".rb", ".rs", ".c", ".h", ".cc", ".cpp", ".cs", ".php", ".sh", ".swift", ".scala", ".lua", ".sql"}

// skippedFolders have the code of others, or none.
var skippedFolders = []string{"node_modules", "vendor", "third_party", "dist", "build", "target", "testdata", "__pycache__"}

// sourceSearch shows source files in the order of their names until one is enough.
type sourceSearch struct {
	files  fs.FS
	enough func(name string, content []byte) bool
	left   int // how many files and folders may be looked at
}

func searchSources(files fs.FS, enough func(name string, content []byte) bool) {
	search := sourceSearch{files, enough, maxSearched}
	search.folder(".", 0)
}

// folder looks through a folder, and reports whether it was enough.
func (s *sourceSearch) folder(at string, depth int) bool {
	entries, err := fs.ReadDir(s.files, at)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if s.left--; s.left < 0 || s.entry(path.Join(at, entry.Name()), entry, depth) {
			return true
		}
	}
	return false
}

func (s *sourceSearch) entry(name string, entry fs.DirEntry, depth int) bool {
	if entry.IsDir() {
		skipped := strings.HasPrefix(entry.Name(), ".") || slices.Contains(skippedFolders, entry.Name())
		return depth < maxDepth && !skipped && s.folder(name, depth+1)
	}
	if !slices.Contains(sourceEndings, path.Ext(name)) || !plainName(name) {
		return false
	}
	content, err := workdir.ReadFile(s.files, name, maxSource)
	return err == nil && s.enough(name, content)
}

// plainName reports whether a name can stand in the text of an issue as it is.
func plainName(name string) bool {
	return name == textfmt.OneLine(forge.Clean(name)) && !strings.ContainsAny(name, "`@")
}

// fetching is how long a copy of a repository may take.
const fetching = 2 * time.Minute

// maxFetched is the largest file that git may write while it makes a copy.
const maxFetched = 1 << 30

// Fetch makes a copy of a repository's files, without its history, in a new folder. The caller
// removes it with [Discard].
func Fetch(ctx context.Context, f Forge, repository string) (folder string, err error) {
	at, err := f.Remote(ctx, repository)
	if err != nil {
		return "", err
	}
	return fetchFrom(ctx, git.Remote{URL: at.URL, Username: at.Username, Password: at.Password}, repository)
}

// FetchFolder is [Fetch] for a git repository on this machine: what is committed at its HEAD. What
// is in the folder besides is nobody else's business.
func FetchFolder(ctx context.Context, from string) (folder string, err error) {
	full, err := filepath.Abs(from)
	if err != nil {
		return "", task.Wrap(task.NotFound, err, "the repository cannot be found")
	}
	return fetchFrom(ctx, git.Remote{URL: full}, full)
}

func fetchFrom(ctx context.Context, remote git.Remote, name string) (folder string, err error) {
	program, err := git.Find()
	if err != nil {
		return "", err
	}
	program.MaxFile = maxFetched
	parent, err := os.MkdirTemp("", "toryo-init-")
	if err != nil {
		return "", task.Wrap(task.DataDir, err, "no folder for a copy of the repository can be made")
	}
	ctx, cancel := context.WithTimeout(ctx, fetching)
	defer cancel()
	folder = filepath.Join(parent, "files")
	_, err = program.Run(ctx, git.Command{Remote: &remote, Args: []string{
		"clone", "--quiet", "--no-local", "--depth=1", "--no-tags", "--single-branch", "--template=", "--end-of-options", remote.URL, folder,
	}})
	if err != nil {
		_ = os.RemoveAll(parent)
		return "", task.Wrap(task.Unavailable, err, "cannot fetch "+name)
	}
	return folder, nil
}

// Discard removes what [Fetch] or [FetchFolder] has made.
func Discard(folder string) error { return os.RemoveAll(filepath.Dir(folder)) }
