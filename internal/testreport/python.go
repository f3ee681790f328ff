package testreport

import (
	_ "embed" // the drivers
	"encoding/json"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

//go:embed drivers/changes.py
var pythonChanges string

//go:embed drivers/unittest.py
var unittestDriver string

//go:embed drivers/pytest.py
var pytestPlugin string

var pythonProgram = lazyregexp.New(`^(?:.*/)?(?:python[0-9.]*|pypy[0-9.]*)$`)

// pythonModule is the module that a command of Python runs, and which word it is.
func pythonModule(words []string) (string, int) {
	if !pythonProgram.MatchString(words[0]) && words[0] != "-m" { // after coverage run
		return "", 0
	}
	at := slices.Index(words, "-m")
	if at < 0 || at+1 >= len(words) {
		return "", 0
	}
	for _, flag := range words[min(1, at):at] {
		if !strings.HasPrefix(flag, "-") || flag == "-I" || flag == "-E" { // those leave PYTHONPATH out
			return "", 0
		}
	}
	return words[at+1], at + 1
}

// pythonFiles are a driver and what it needs: the names of the tests to run may be one.
func pythonFiles(driver driverFile, only []string) []driverFile {
	files := []driverFile{driver, {"toryo_changes.py", pythonChanges}}
	data, err := json.Marshal(only)
	if len(only) == 0 || err != nil { // strings always can be encoded
		return files
	}
	return append(files, driverFile{"only.json", string(data)})
}

func pythonPath(dir string) string {
	return "export PYTHONPATH=" + quote(dir) + "${PYTHONPATH:+:$PYTHONPATH}\n"
}

// unittest is the runner of the standard library. It reports as text only, in which
// a test can print what it likes: it is run by a driver.
type unittest struct{}

func (unittest) name() string { return "unittest" }

func (unittest) matches(words []string) bool {
	module, _ := pythonModule(words)
	return module == "unittest" && !slices.Contains(words, "-h")
}

func (unittest) command(c call, dir string, only []string) (string, bool) {
	if c.script {
		return "", false
	}
	_, at := pythonModule(texts(c.words))
	module := c.words[at]
	line := c.line[:module.start] + "toryo_unittest " + quote(dir) + c.line[module.end:]
	files := pythonFiles(driverFile{"toryo_unittest.py", unittestDriver}, only)
	return shellScript(dir, files, pythonPath(dir)+line), true
}

func (unittest) read(_ call, r run) Report {
	b := newBuilder()
	r.readDriver(b)
	return b.report()
}

// pytest reports to a plugin, which any command that leads to pytest loads.
type pytest struct{}

func (pytest) name() string { return "pytest" }

func (pytest) matches(words []string) bool {
	module, _ := pythonModule(words)
	program := words[0][strings.LastIndexByte(words[0], '/')+1:]
	return (module == "pytest" || program == "pytest" || program == "py.test") && !slices.Contains(words, "--collect-only") && !slices.Contains(words, "--co")
}

func (pytest) command(c call, dir string, only []string) (string, bool) {
	files := pythonFiles(driverFile{"toryo_pytest.py", pytestPlugin}, only)
	return shellScript(dir, files, pythonPath(dir)+`export PYTEST_ADDOPTS="${PYTEST_ADDOPTS:+$PYTEST_ADDOPTS }-p toryo_pytest"`+"\n"+c.line), true
}

func (pytest) read(_ call, r run) Report {
	b := newBuilder()
	r.readDriver(b)
	return b.report()
}
