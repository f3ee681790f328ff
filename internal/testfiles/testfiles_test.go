package testfiles_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/testfiles"
)

func TestKind(t *testing.T) {
	t.Parallel()
	content := map[string]string{
		"test.sh": ". ./check_all.sh\nsh add.sh 1 2\n",
		"add.sh":  "", "check_all.sh": "", "web/package.json": `{"scripts": {"test": "node ci.js"}}`, "web/ci.js": "", "web/app.js": "",
		"Makefile": "test:\n\t./run.sh app.py\n", "run.sh": "", "app.py": "",
	}
	var files []string
	for name := range content {
		files = append(files, name)
	}
	set := testfiles.New([]testfiles.Project{{Folder: ".", Command: "sh test.sh && make test"}, {Folder: "web", Command: "npm test"}, {Folder: "api", Command: "pytest"}},
		files, func(name string) []byte { return []byte(content[name]) })
	for kind, names := range map[testfiles.Kind][]string{
		testfiles.Test: {
			"test.sh", "check_all.sh", "run.sh", "web/ci.js", // named by a command, a script or a Makefile
			"a_test.go", "pkg/testdata/golden.txt", "test_a.py", "tests/helper.py", "conftest.py", "src/a.test.ts", "src/a.spec.js", "src/__tests__/a.js",
			"src/__snapshots__/a.js.snap", "src/test/java/AppTest.java", "src/AppTests.cs", "TestApp.java", "spec/a_spec.rb", "tests", "test", "e2e/login.ts",
			"internal/testutil/assert.go", "features/login.feature", "features/steps/login.py", "My.Tests/A.cs", "expected_output.txt", "cases/a.expected", "t/basic.t", "all.bats",
			"a.golden.json", "src/AppIT.java", "src/AppSpec.scala", "__pycache__/a.pyc", "testing/a.py", "spec-helpers/a.rb",
		},
		testfiles.Configuration: {
			"pytest.ini", "tox.ini", "jest.config.js", "vitest.config.mts", ".mocharc.yml", "tsconfig.json", "tsconfig.build.json", ".npmrc", "web/.npmrc", ".env", ".env.local",
			"Makefile", "GNUmakefile", "rules.mk", ".github/workflows/ci.yml", ".gitlab-ci.yml", ".gitattributes", ".cargo/config.toml", "go.work", "sitecustomize.py",
			"unittest.py", "unittest/__init__.py", "api/pytest.py", "api/json/__init__.py", "src/traceback.py", "babel.config.js", "phpunit.xml.dist", ".rspec",
			"a.egg-info/entry_points.txt", "src/a-1.dist-info/METADATA",
		},
		testfiles.Shared:  {"package.json", "web/package.json", "pyproject.toml", "setup.cfg"},
		testfiles.Library: {"vendor/github.com/stretchr/testify/assert/assertions.go", "node_modules/chai/index.js", "web/node_modules/chai/tests/a.js"},
		testfiles.Program: {
			"add.sh", "app.py", "web/app.js", "main.go", "latest.go", "contest/main.go", "app/json/encode.py", "pkg/types.py", "src/attest.rs", "README.md", "docs/testimonials.md",
			"go.mod", "Cargo.toml", "inspector.go", "src/Contest.java",
			"unexpected.py", "src/unexpected-token.js", "goldenrod.css", "src/PodSpec.java", "src/SpecReader.java", "EXIT.md", "lib/main.t", "src/features/cart/cart.ts",
			"spec-parser/parse.go", "src/__generated__/api.ts",
		},
	} {
		for _, name := range names {
			if got := set.Kind(name); got != kind {
				t.Errorf("%s is %q, want %q", name, got, kind)
			}
		}
	}
}

// Some files may be tests or parts of the program. Only those that are tests for sure are
// taken to run new tests without the rest of a change.
func TestCertain(t *testing.T) {
	t.Parallel()
	set := testfiles.New([]testfiles.Project{{Folder: ".", Command: "sh run.sh"}}, []string{"run.sh"}, func(string) []byte { return nil })
	for _, name := range []string{
		"run.sh", "a_test.go", "test_a.py", "conftest.py", "src/a.test.ts", "src/a.spec.js", "spec/a_spec.rb", "src/__tests__/a.js", "src/__snapshots__/a.js.snap", "pkg/testdata/in.txt",
		"tests/helper.py", "tests/fixtures/a.json", "src/test/java/AppTest.java", "src/AppTests.cs", "My.Tests/A.cs", "e2e/login.ts", "internal/testutil/assert.go", "t/basic.t", "all.bats",
		"TestApp.java", "src/AppIT.java", "src/AppSpec.scala", "login.feature", "features/steps/login.py",
	} {
		if !set.Certain(name) {
			t.Errorf("%s is not certain to be a test", name)
		}
	}
	for _, name := range []string{
		"src/features/cart.ts", "src/__generated__/api.ts", "testing/clock.go", "spec-parser/parse.go", "unexpected.py", "src/PodSpec.java", "fixtures/seed.sql", "expected/a.txt",
		"src/snapshots/store.go", "openapi-spec/api.yaml", "main.go", "package.json", "conftest/main.go", "vendor/x/test/a.go",
	} {
		if set.Certain(name) {
			t.Errorf("%s is certain to be a test", name)
		}
	}
}

// A module of Python that tests get from elsewhere is replaced by a new one of that name.
func TestReplacedModules(t *testing.T) {
	t.Parallel()
	content := map[string]string{
		"test_a.py":        "import unittest\nfrom sure import same\nimport numpy as np, attr.validators\nfrom calc import add\nfrom later import x\nfrom helpers import check\nfrom . import near\nimport fast\n",
		"ext/fast.pyx":     "",
		"tests/helpers.py": "import deep\n", "lib/calc.py": "", "app.py": "import requests\n", "api/tests/test_b.py": "def test():\n    import inner\n",
	}
	var files []string
	for name := range content {
		files = append(files, name)
	}
	set := testfiles.New([]testfiles.Project{{Folder: ".", Command: "pytest", Failures: "ModuleNotFoundError: No module named 'later'"}, {Folder: "api", Command: "pytest"}},
		files, func(name string) []byte { return []byte(content[name]) })
	for _, name := range []string{"sure.py", "numpy/__init__.py", "numpy/testing.py", "src/attr.py", "helpers.py", "deep.py", "api/sure.py"} {
		if got := set.Kind(name); got == testfiles.Program {
			t.Errorf("%s is %q", name, got)
		}
	}
	// In the repository before, missing before, used by the program only, or out of reach.
	for _, name := range []string{"calc.py", "fast.py", "later.py", "later/x.py", "requests.py", "inner.py", "near.py", "web/sure.py", "sure.js"} {
		if got := set.Kind(name); got != testfiles.Program {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// Packages that are kept in the repository are as they were, unless new ones come with a
// changed list of packages.
func TestLibraryStays(t *testing.T) {
	t.Parallel()
	set := testfiles.New(nil, []string{"go.mod", "vendor/modules.txt", "vendor/example.com/a/a.go", "web/package.json"}, func(string) []byte { return nil })
	for _, one := range []struct {
		why, name string
		changed   []string
		want      bool
	}{
		{"a new package with its entry", "vendor/example.com/b/b.go", []string{"go.mod"}, true},
		{"the list of packages", "vendor/modules.txt", []string{"go.mod"}, true},
		{"a new package without an entry", "vendor/example.com/b/b.go", []string{"main.go", "web/package.json"}, false},
		{"the list of packages alone", "vendor/modules.txt", nil, false},
		{"a new file of a package that was there", "vendor/example.com/a/init.go", []string{"go.mod"}, false},
		{"a package that was there", "vendor/example.com/a/a.go", []string{"go.mod"}, false},
		{"the first packages", "web/node_modules/chai/index.js", []string{"web/package.json"}, false},
	} {
		if got := set.Stays(one.name, one.changed); got != one.want {
			t.Errorf("%s: %v, want %v", one.why, got, one.want)
		}
	}
}

func TestDiffers(t *testing.T) {
	t.Parallel()
	const manifest = `{"name": "a", "scripts": {"test": "jest", "build": "tsc"}, "dependencies": {"x": "1"}}`
	const project = "[project]\nname = \"a\"\ndependencies = [\"x\"]\n\n[tool.pytest.ini_options]\naddopts = \"-q\"\n"
	for _, one := range []struct {
		why, name, before, after string
		want                     bool
	}{
		{"a dependency and a script of no consequence", "package.json", manifest, `{"name": "a", "scripts": {"lint": "eslint", "test": "jest", "build": "tsc"}, "dependencies": {"x": "1", "y": "2"}}`, false},
		{"the test script", "package.json", manifest, `{"scripts": {"test": "true", "build": "tsc"}}`, true},
		{"a script that goes", "package.json", manifest, `{"scripts": {"test": "jest"}}`, true},
		{"a script before the tests", "web/package.json", manifest, `{"scripts": {"pretest": "cp good.js a.js", "test": "jest", "build": "tsc"}}`, true},
		{"a script at installation", "package.json", manifest, `{"scripts": {"postinstall": "x", "test": "jest", "build": "tsc"}}`, true},
		{"configuration of the runner", "package.json", manifest, `{"scripts": {"test": "jest", "build": "tsc"}, "jest": {"testMatch": []}}`, true},
		{"another package under a name", "package.json", manifest, `{"scripts": {"test": "jest", "build": "tsc"}, "overrides": {"chai": "file:fake"}}`, true},
		{"no JSON", "package.json", manifest, `{`, true},
		{"a test script where there was none", "package.json", `{"name": "a"}`, `{"name": "a", "scripts": {"test": "true"}}`, true},
		{"a dependency", "pyproject.toml", project, "[project]\nname = \"a\"\ndependencies = [\"x\", \"y\"]\n\n[tool.pytest.ini_options]\naddopts = \"-q\"\n[tool.ruff]\nline-length = 100\n", false},
		{"options of pytest", "pyproject.toml", project, "[project]\nname = \"a\"\ndependencies = [\"x\"]\n[tool.pytest.ini_options]\naddopts = \"-q -k nothing\"\n", true},
		{"the same in another form", "pyproject.toml", project, "tool.\"pytest\".ini_options.addopts = \"-k nothing\"\n", true},
		{"a replaced package", "pyproject.toml", project, project + "[tool.uv.sources]\npytest = { path = \"fake\" }\n", true},
		{"a plugin of pytest", "pyproject.toml", project, project + "[project.entry-points.pytest11]\nx = \"x\"\n", true},
		{"a plugin of pytest", "pyproject.toml", project, project + "[tool.poetry.plugins.pytest11]\nx = \"x\"\n", true},
		{"who builds it", "pyproject.toml", project, project + "[build-system]\nrequires = []\nbuild-backend = \"x\"\nbackend-path = [\".\"]\n", true},
		{"a program", "pyproject.toml", project, project + "[project.scripts]\na = \"a:main\"\n", false},
		{"a name", "setup.cfg", "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n", "[metadata]\nname = b\n[tool:pytest]\naddopts = -q\n", false},
		{"options of pytest", "setup.cfg", "[metadata]\nname = a\n", "[metadata]\nname = a\n[tool:pytest]\naddopts = -k nothing\n", true},
	} {
		if got := testfiles.Differs(one.name, []byte(one.before), []byte(one.after)); got != one.want {
			t.Errorf("%s of %s: %v, want %v", one.why, one.name, got, one.want)
		}
	}
}

// A file of several purposes is as the change has it, apart from what it says about tests.
func TestSpliced(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ name, before, after, want string }{
		{"package.json", `{"name": "a", "scripts": {"test": "jest"}, "jest": {"bail": 1}}`,
			`{"name": "a", "scripts": {"test": "true"}, "mocha": {}, "exports": {"import": "./a.mjs", "default": "./a.js"}, "dependencies": {"x": "1"}}`,
			`{"dependencies":{"x":"1"},"exports":{"import":"./a.mjs","default":"./a.js"},"jest":{"bail":1},"name":"a","scripts":{"test":"jest"}}`},
		{"package.json", `{"name": "a"}`, `{"name": "b", "scripts": {"test": "true"}}`, `{"name":"b"}`},
		{"composer.json", `{"autoload-dev": {}}`, `{"require": {}, "autoload-dev": {"files": ["x"]}}`, `{"autoload-dev":{},"require":{}}`},
		{"pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-q'\n", "[project]\nname = 'a'\n[project.entry-points.pytest11]\nx = 'x'\n[tool.pytest.ini_options]\naddopts = '-k x'\n[tool.uv.sources]\ny = { path = 'y' }\n[tool.uv]\npackage = true\n",
			"[project]\nname = 'a'\n\n[tool]\n[tool.pytest]\n[tool.pytest.ini_options]\naddopts = '-q'\n\n[tool.uv]\npackage = true\n"},
		{"setup.cfg", "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n", "[tool:pytest]\naddopts = -k x\n[metadata]\nname = b\n", "[metadata]\nname = b\n[tool:pytest]\naddopts = -q\n"},
	} {
		got, ok := testfiles.Spliced(one.name, []byte(one.before), []byte(one.after))
		if !ok || string(got) != one.want {
			t.Errorf("%s is %v\n%s\nwant\n%s", one.name, ok, got, one.want)
		}
	}
	for _, name := range []string{"package.json", "pyproject.toml"} {
		for _, bad := range []string{"{", "[", "= 1"} {
			if got, ok := testfiles.Spliced(name, []byte(bad), []byte("")); ok {
				t.Errorf("%s of %q is %q", name, bad, got)
			}
		}
	}
}

func TestBuildLines(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name        string
		lines, want []string
	}{
		{"go.mod", []string{"require example.com/x v1.0.0", "replace github.com/stretchr/testify => ./fake"}, []string{"replace github.com/stretchr/testify => ./fake"}},
		{"sub/Cargo.toml", []string{`serde = "1"`, "[patch.crates-io]", "test = false"}, []string{"[patch.crates-io]", "test = false"}},
		{"pom.xml", []string{"<artifactId>x</artifactId>", "  <skipTests>true</skipTests>"}, []string{"<skipTests>true</skipTests>"}},
		{"build.gradle.kts", []string{"implementation(\"x\")", "test { ignoreFailures = true }"}, []string{"test { ignoreFailures = true }"}},
		{"package.json", []string{`"chai": "file:./fake"`, `"x": "^1.0.0"`}, []string{`"chai": "file:./fake"`}},
		{"requirements-dev.txt", []string{"pytest @ file:///fake", "requests==2"}, []string{"pytest @ file:///fake"}},
		{"requirements.txt", []string{"./fake", "-e lib", "--editable=lib", "x @ file:fake", "file:fake", "../fake[x]", "lib/fake", "requests==2", "-r other.txt", "--find-links ./wheels", "fake-1.0-py3-none-any.whl", "# ./x"},
			[]string{"./fake", "-e lib", "--editable=lib", "x @ file:fake", "file:fake", "../fake[x]", "lib/fake", "--find-links ./wheels", "fake-1.0-py3-none-any.whl"}},
		{"setup.py", []string{"    name='a',", "    entry_points={'pytest11': ['x = x']},", "cmdclass=dict(install=Install)", "version='2'"},
			[]string{"entry_points={'pytest11': ['x = x']},", "cmdclass=dict(install=Install)"}},
		{"main.go", []string{"replace => skip"}, nil},
	} {
		if diff := cmp.Diff(one.want, testfiles.ChangedBuildLines(one.name, []byte("kept: skip\n"), []byte("kept: skip\n"+strings.Join(one.lines, "\n")))); diff != "" {
			t.Errorf("%s: %s", one.name, diff)
		}
		if testfiles.IsBuildFile(one.name) != (one.want != nil) {
			t.Errorf("%s", one.name)
		}
	}
}

// Tests are found by how they are declared.
func TestDeclared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a_test.go":     {"func TestA(t *testing.T) {\n\tt.Run(\"one\", f)\n}\nfunc helper() {}\nfunc FuzzB(f *testing.F) {}\n// func TestC(", []string{"FuzzB", "TestA", "one"}},
		"test_a.py":     {"class TestX:\n    async def test_one(self):\n        pass\ndef test_two(): pass\ndef other(): pass\n", []string{"TestX", "test_one", "test_two"}},
		"lib.rs":        {"#[test]\nfn adds() {}\n#[tokio::test(flavor = \"x\")]\n#[ignore]\nasync fn waits() {}\nfn no() {}\n", []string{"adds", "waits"}},
		"ATest.java":    {"@Test\n@DisplayName(\"x\")\npublic void adds() throws Exception {\n}\nvoid no() {}\n", []string{"adds"}},
		"A.kt":          {"@Test\nfun `adds two`() {}\n@Test fun one() = 1\n", []string{"`adds two`", "one"}},
		"A.cs":          {"[Fact]\npublic async Task Adds()\n{\n}\n", []string{"Adds"}},
		"a_spec.rb":     {"it 'adds' do\nend\ndef test_x\nend\n", []string{"adds", "test_x"}},
		"ATest.php":     {"public function testAdds(): void {}\n", []string{"testAdds"}},
		"a.test.tsx":    {"describe(\"sum\", () => {\n  it.each([1])('adds %s', f)\n  test(`more`, f)\n  it(\"isn't\", f)\n})\n", []string{"isn't", "more", "sum"}},
		"a.bats":        {"@test \"adds\" {\n}\n", []string{"adds"}},
		"test.sh":       {"test_add() {\n\tcheck test_sum 1 >test_output\n}\nfunction test_sub () { :; }\n  test_zero() (true)\ntest_add\nmy_test_x() { :; }\n", []string{"test_add", "test_sub", "test_zero"}},
		"a_test.cc":     {"TEST_F(Sum,  Adds) {}\n", []string{"Sum, Adds"}},
		"notes.md":      {"func TestA(", nil},
		"empty_test.go": {"", nil},
	} {
		if got := testfiles.Declared(name, []byte(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s declares %q, want %q", name, got, c.want)
		}
	}
}
