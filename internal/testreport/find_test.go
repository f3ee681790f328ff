package testreport_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toryo-dev/toryo/internal/testreport"
)

func TestFind(t *testing.T) {
	t.Parallel()
	project := fstest.MapFS{
		"package.json": {Data: []byte(`{"scripts": {"test": "cross-env CI=1 jest --coverage", "unit": "npm run test", "v": "tsc && vitest", "m": "nyc mocha -r x", "n": "node --test tests/", "esm": "node --experimental-vm-modules node_modules/jest/bin/jest.js", "lint": "eslint .", "piped": "jest | tee log", "masked": "jest || true", "loop": "npm run loop", "make": "make test", "go": "go test ./...", "bun": "bun test", "py": "python -m unittest"}}`)},
		"Makefile": {Data: []byte("SHELL := /bin/bash\n.DEFAULT_GOAL = all\nexport A = $(GO) b\nGO ?= go\nPY := python3 -B\nTESTS = tests # all\nFLAGS = $(OTHER)\nOTHER=-q\n.PHONY: unit all check\nall: unit\n\nunit: build lint\n\t@echo \\\n\t  testing\n\n\t$(PY) -m pytest ${TESTS} $(FLAGS)\n" +
			"check:\n\tnpm test\nbuild lint:\n\techo $@\ngo:\n\t# all of them\n\t+@$(GO) test ./... \nignored:\n\t-pytest\npiped:\n\tpytest | tee log\nshell:\n\tpytest $(shell ls)\nunset:\n\tpytest $(ARGS)\nstate:\n\tcd tests\n\tpytest\nmade: $(wildcard x)\n\tpytest\nself: self\n\nlater:\n\tpytest\n\techo done\nfile:\n\tpytest\n")},
		"deno.json":        {Data: []byte(`{"tasks": {"unit": "deno test -A"}}`)},
		"file":             {Data: []byte("x")},
		"web/Makefile":     {Data: []byte("check:\n\tcd . && npm test\n")},
		"web/package.json": {Data: []byte(`{"scripts": {"test": "vitest run"}}`)},
	}
	for command, want := range map[string]string{
		"make unit": "pytest", "make -s unit": "pytest", "cd web && make -s check": "vitest", "make all": "pytest", "make check": "jest", "make go": "go test", "make lint": "", "make ignored": "", "make piped": "", "make missing": "", "make shell": "", "make unset": "", "make state": "", "make made": "", "make unit V=1": "", "make unit go": "",
		"X=1 make unit": "", "make -C web check": "", "make self": "", "make later": "", "make file": "", "make": "",
		"go test ./...": "go test", "GOFLAGS=-mod=mod go test -race ./...": "go test", "go list -f '{{.Dir}}/...' -m | xargs go test": "go test", "go test -c": "", "go build ./...": "",
		"python -m unittest discover": "unittest", "python3 -m unittest": "unittest", ".venv/bin/python3.12 -m unittest": "unittest", "uv run python -m unittest": "unittest", "coverage run -m unittest discover": "unittest", "python manage.py test": "", "python runtests.py": "",
		"pytest": "pytest", "uv run pytest -x": "pytest", "poetry run pytest": "pytest", "python -m pytest tests": "pytest", "coverage run --branch -m pytest": "pytest", "pytest --collect-only": "",
		"npm test": "jest", "npm run unit": "jest", "npm run v": "vitest", "npm run m": "mocha", "npm run n": "node --test", "npm run esm": "jest", "npm run lint": "", "npm run piped": "", "npm run masked": "", "npm run loop": "", "npm run make": "", "npm run go": "", "npm run py": "", "npm run missing": "",
		"corepack pnpm run test": "jest", "pnpm test": "jest", "corepack yarn run test": "jest", "yarn test": "jest", "yarn mocha": "mocha", "pnpm exec vitest run": "vitest", "bun run test": "jest", "bun test": "bun test", "bun test --watch": "", "deno test -A": "deno test", "deno test -- x": "", "npm run bun": "bun test",
		"cd web && npm test": "vitest", "cd missing && npm test": "", "npm test --workspaces --if-present": "",
		"npx jest": "jest", "./node_modules/.bin/vitest": "vitest", "node --test": "node --test", "node test.js": "", "npx jest --watch": "", "vitest watch": "",
		"cargo test": "cargo test", "cargo +nightly test --workspace": "cargo test", "cargo test -q": "", "cargo nextest run": "",
		"mvn -B test": "maven", "sh ./mvnw -B test": "maven", "mvn -B compile": "", "sh ./gradlew --no-daemon test": "gradle", "gradle :app:test": "gradle", "gradle assemble": "",
		"bundle exec rspec": "rspec", "vendor/bin/phpunit": "phpunit", "php vendor/bin/phpunit": "phpunit", "dotnet test": "dotnet test",
		"make test": "", "deno task unit": "deno test", "deno task missing": "", "pytest > log": "", "pytest &": "", "pytest; echo done": "", "pytest || true": "", "(pytest)": "", "pytest $(cat files)": "", "echo 'unterminated": "", "": "", "true && pytest": "pytest", "pytest | tail": "",
	} {
		runner, ok := testreport.Find(command, project)
		switch {
		case ok != (want != ""):
			t.Errorf("%q: found %v", command, ok)
		case ok && runner.Name() != want:
			t.Errorf("%q is %s, want %s", command, runner.Name(), want)
		}
	}
}

// Arguments reach the runner through package managers, each in its way.
func TestArgumentsThroughScripts(t *testing.T) {
	t.Parallel()
	project := fstest.MapFS{"package.json": {Data: []byte(`{"scripts": {"test": "jest", "all": "npm test", "more": "jest"}}`)}}
	for command, want := range map[string]string{
		"npm test": "\nnpm test -- --json ", "npm run all": "\nnpm run all -- -- --json ", "pnpm test": "\npnpm test --json ", "yarn run test": "\nyarn run test --json ",
		"npm test -- --ci": "\nnpm test -- --ci --json ", "npx jest": "\nnpx jest --json ",
	} {
		runner, ok := testreport.Find(command, project)
		if !ok || !strings.Contains(runner.Command("/r"), want) {
			t.Errorf("%q becomes %q", command, runner.Command("/r"))
		}
	}
}

// The fallback reads lines as people would.
func TestFailingTests(t *testing.T) {
	t.Parallel()
	got := testreport.FailingTests([]string{"noise", "--- FAIL: TestAdd (0.00s)", "--- FAIL: TestAdd (0.00s)", "FAILED tests/test_a.py::test_b - assert"})
	if strings.Join(got, "|") != "TestAdd|tests/test_a.py::test_b" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyThatCannotBe(t *testing.T) {
	t.Parallel()
	for command, names := range map[string][]string{"gradle test": {"C.a"}, "go test ./...": {"example.com/broken"}, "npx jest": {"a.test.js"}, "mvn test": {"what is this"}, "pytest": nil} {
		runner, ok := testreport.Find(command, nil)
		if !ok {
			t.Fatal(command)
		}
		if line, ok := runner.Only("/r", names); ok {
			t.Errorf("%s selects %q by %q", command, names, line)
		}
	}
}
