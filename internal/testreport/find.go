package testreport

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// Runner is a test runner and the command line that it was found in.
type Runner struct {
	kind kind
	call call
}

// kind is what is known about the runners of one name.
type kind interface {
	name() string
	// matches says whether words, which begin with a program, run this runner in a
	// way in which it can be asked for a report.
	matches(words []string) bool
	// command is the command line that makes the runner report below dir. With
	// names, only those tests run; false if that cannot be said.
	command(c call, dir string, only []string) (string, bool)
	read(c call, r run) Report
}

func kinds() []kind {
	return []kind{goTest{}, pytest{}, unittest{}, nodeTest{}, jest{}, vitest{}, mocha{}, bun{}, deno{}, cargo{}, maven{}, gradle{}, rspec{}, phpunit{}, dotnet{}}
}

// call is a command line that runs tests.
type call struct {
	line  string
	words []word // of the runner itself. Their places are in line unless via is a script.
	// script says that the words are from a script of package.json: arguments can be
	// added at the end of the line only, after dashes.
	script bool
	dashes string
	// project are the files where the runner starts; nil if that is not known.
	project fs.FS
	// functions are the test functions of a Go project, as they were before the run;
	// nil if they are not known. unread is why they could not be read.
	functions map[string]bool
	unread    error
	// control has the names of the tests that have to fail, of a Go project.
	control goControl
}

// texts are the words from a word on.
func texts(words []word) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = w.text
	}
	return all
}

// with is the line with arguments at its end.
func (c call) with(arguments ...string) string {
	if len(arguments) == 0 {
		return c.line
	}
	return strings.TrimRight(c.line, " \t\n;") + c.dashes + " " + quoteAll(arguments)
}

// Find says how the tests that a command line runs are run so that their runner
// reports. The project's files are those of the folder in which the command line
// starts: package.json says what npm test means, and the Makefile what make test does. False means that the runner is not
// known, or that what the command line does is not plain enough to be changed.
func Find(command string, project fs.FS) (Runner, bool) {
	return find(call{line: command, project: project}, command, 0)
}

// find looks at the text, which is the line itself or a script that it leads to.
func find(c call, text string, depth int) (Runner, bool) {
	const deepest = 5
	commands, ok := parseLine(text)
	if !ok || depth > deepest {
		return Runner{}, false
	}
	last := commands[len(commands)-1]
	words := last.words
	switch last.operator {
	case "||":
		return Runner{}, false
	case "|":
		if words[0].text != "xargs" {
			return Runner{}, false
		}
		words = words[1:]
	}
	start := c.project
	if !c.script {
		c.project = folderOf(commands[:len(commands)-1], c.project)
	}
	words = unwrap(words)
	if len(words) == 0 {
		return Runner{}, false
	}
	if line, ok := makeLine(texts(words), c.project); ok && !c.script && len(words) == len(last.words) {
		c.line, c.project = c.line[:words[0].start]+line, start
		return find(c, c.line, depth+1)
	}
	if script, level, ok := packageScript(texts(words), c.project); ok {
		c.script = true
		c.dashes += level
		return find(c, script, depth+1)
	}
	for len(words) > 1 && slices.Contains([]string{"yarn", "pnpm"}, words[0].text) { // they run programs by name too
		words = unwrap(words[1:])
	}
	if len(words) == 0 {
		return Runner{}, false
	}
	c.words = words
	return c.runner()
}

// runner is the one that the words run.
func (c call) runner() (Runner, bool) {
	for _, k := range kinds() {
		if !k.matches(texts(c.words)) {
			continue
		}
		if k == (goTest{}) {
			c.functions, c.unread = goFunctions(c.project)
			c.control = newGoControl(c)
		}
		_, ok := k.command(c, "/", nil) // some cannot be changed through a script
		return Runner{kind: k, call: c}, ok
	}
	return Runner{}, false
}

// folderOf follows the cd commands before the last command.
func folderOf(before []simpleCommand, project fs.FS) fs.FS {
	for _, c := range before {
		if c.words[0].text != "cd" || project == nil {
			continue
		}
		if len(c.words) != 2 || !fs.ValidPath(path.Clean(c.words[1].text)) {
			return nil
		}
		below, err := fs.Sub(project, path.Clean(c.words[1].text))
		if err != nil {
			return nil
		}
		project = below
	}
	return project
}

var assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)

// wrappers run the program that follows, and how many words they have themselves.
// Their options, if they have any, have no values.
var wrappers = map[string]int{
	"env": 1, "cross-env": 1, "npx": 1, "bunx": 1, "exec": 1, "time": 1, "nice": 1, "c8": 1, "nyc": 1, "corepack": 1, "timeout": 2,
	"uv run": 2, "poetry run": 2, "pdm run": 2, "pipenv run": 2, "hatch run": 2, "rye run": 2,
	"bundle exec": 2, "pnpm exec": 2, "yarn exec": 2, "npm exec": 2, "coverage run": 2,
}

// unwrap leaves out what stands before the program that runs.
func unwrap(words []word) []word {
	for len(words) > 0 {
		name := path.Base(words[0].text)
		count := wrappers[name]
		if count == 0 && len(words) > 1 {
			count = wrappers[name+" "+words[1].text]
		}
		if len(words) > 1 && (name == "sh" || name == "bash") && isBuildScript(words[1].text) {
			count = 1
		}
		switch {
		case assignment.MatchString(words[0].text):
			words = words[1:]
			continue
		case count == 0 || count > len(words):
			return words
		}
		coverage := name == "coverage"
		words = words[count:]
		for len(words) > 0 && strings.HasPrefix(words[0].text, "-") && (!coverage || words[0].text != "-m") {
			words = words[1:]
		}
	}
	return words
}

func isBuildScript(name string) bool {
	return slices.Contains([]string{"mvnw", "gradlew"}, path.Base(name))
}

// packageScript is the script of package.json that a command of a package manager
// runs, and what goes between its arguments and those of the script.
func packageScript(words []string, project fs.FS) (script, dashes string, ok bool) {
	file := "package.json"
	name, arguments, ok := scriptName(words)
	if len(words) == 3 && words[0] == "deno" && words[1] == "task" {
		file, name, ok = "deno.json", words[2], true
	}
	if !ok || project == nil {
		return "", "", false
	}
	if words[0] == "npm" { // what is added must come last, and be the script's
		if len(arguments) > 0 && arguments[0] != "--" {
			return "", "", false
		}
		if len(arguments) == 0 {
			dashes = " --"
		}
	}
	data, err := readFile(project, file, maxProject)
	if err != nil {
		return "", "", false
	}
	var manifest struct {
		Scripts map[string]string `json:"scripts"`
		Tasks   map[string]any    `json:"tasks"` // of deno
	}
	if json.Unmarshal(data, &manifest) != nil {
		return "", "", false
	}
	script = manifest.Scripts[name]
	if words[0] == "deno" {
		script, _ = manifest.Tasks[name].(string)
	}
	return script, dashes, script != ""
}

// scriptName is the name of the script that a command of a package manager runs, and
// the arguments after it. pnpm and yarn need no "run", npm has it left out for tests.
func scriptName(words []string) (name string, arguments []string, ok bool) {
	manager, rest := words[0], words[1:]
	if !slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, manager) {
		return "", nil, false
	}
	run := len(rest) > 0 && (rest[0] == "run" || rest[0] == "run-script")
	if run {
		rest = rest[1:]
	}
	switch {
	case len(rest) == 0 || manager == "bun" && !run:
		return "", nil, false
	case manager == "npm" && !run && !slices.Contains([]string{"test", "t", "tst"}, rest[0]):
		return "", nil, false
	case manager == "npm" && !run:
		return "test", rest[1:], true
	}
	return rest[0], rest[1:], true
}

// Name is what the runner is called.
func (r Runner) Name() string { return r.kind.name() }

// Command is the command line that runs the tests and writes a report below dir, a
// folder in the sandbox that belongs to this run alone and whose name nobody can
// guess. It is for a POSIX shell, starts in the folder that Find was given, and ends
// with the runner's exit code.
func (r Runner) Command(dir string) string {
	command, _ := r.kind.command(r.call, dir, nil)
	return command
}

// Only is the same for some tests by [Case.Name]. Other tests may run or be reported
// as skipped beside them where a runner selects less finely: see docs/verification.md.
// False means that the runner cannot select these tests.
func (r Runner) Only(dir string, names []string) (string, bool) {
	if len(names) == 0 {
		return "", false
	}
	return r.kind.command(r.call, dir, names)
}

// Read reads what the runner reported: what it printed, its exit code, and the files
// in the folder that the command line was made for. The files are the sandbox's:
// hand in a file system that opens regular files only, without waiting.
func (r Runner) Read(output []byte, exit int, files fs.FS) Report {
	report := r.kind.read(r.call, run{output: output, exit: exit, files: files})
	report.Runner, report.ExitCode = r.kind.name(), exit
	if _, _, failed, _ := report.Counts(); report.Complete && (failed == 0) != (exit == 0) {
		report.Note = fmt.Sprintf("%d tests failed, and the exit code is %d", failed, exit)
	}
	return report
}
