package environment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/environment"
)

const (
	testedPackage = `{"main":"x.js","scripts":{"test":"node --test"}}`
	rubyFile      = "gem 'sinatra'\n"
)

// outline is a project on one line: folder, environment, workspace, and how it is set up
// and tested.
func outline(p environment.Project) string {
	text := p.Directory + " " + p.EnvironmentType
	if p.Workspace != "" {
		text += " of " + p.Workspace
	}
	if len(p.SetupCommands) > 0 {
		text += " [" + strings.Join(p.SetupCommands, "; ") + "]"
	}
	if p.TestCommand != "" {
		text += " " + p.TestCommand
	}
	if p.TestsMembers {
		text += " (all)"
	}
	return text
}

func TestAllProjectsOfARepositoryAreFound(t *testing.T) {
	t.Parallel()
	const nested = "module x/y\n\ngo 1.24\n"
	cases := map[string]struct {
		files map[string]string
		want  []string
	}{
		"two folders": {map[string]string{"backend/go.mod": goMod, "frontend/package.json": testedPackage},
			[]string{"backend go [go mod download] go test ./...", "frontend node [npm install] npm test"}},
		"a project at the top and one below": {map[string]string{"go.mod": goMod, "web/package.json": testedPackage, "web/package-lock.json": "{}"},
			[]string{". go [go mod download] go test ./...", "web node [npm ci] npm test"}},
		"two languages in one folder": {map[string]string{"go.mod": goMod, "main.go": "", "package.json": testedPackage, "x.js": ""},
			[]string{". go [go mod download] go test ./...", ". node [npm install] npm test"}},
		"members of npm": {map[string]string{"package.json": `{"workspaces":["packages/*","!packages/old"]}`, "packages/a/package.json": testedPackage, "packages/old/package.json": testedPackage, "tool/package.json": testedPackage},
			[]string{". node of . [npm install] npm test --workspaces --if-present (all)", "tool node [npm install] npm test", "packages/a node of . npm test", "packages/old node [npm install] npm test"}},
		"members of yarn in a table": {map[string]string{"package.json": `{"workspaces":{"packages":["./apps/**"]}}`, "yarn.lock": "", "apps/x/y/package.json": testedPackage},
			[]string{". node of . [corepack yarn install]", "apps/x/y node of . corepack yarn run test"}},
		"members of pnpm": {map[string]string{"package.json": `{"private":true,"scripts":{"build":"x"}}`, "pnpm-workspace.yaml": "packages: ['libs/*']\n", "pnpm-lock.yaml": "", "libs/a/package.json": testedPackage},
			[]string{". node of . [corepack pnpm install --frozen-lockfile] corepack pnpm --recursive --if-present run test (all)", "libs/a node of . corepack pnpm run test"}},
		"members of cargo": {map[string]string{"Cargo.toml": "[workspace]\nmembers=['crates/*']\nexclude=['fuzz']\n", "crates/a/Cargo.toml": "[package]\nname='a'\n", "fuzz/Cargo.toml": "[package]\nname='f'\n"},
			[]string{". rust of . [cargo fetch] cargo test --workspace (all)", "fuzz rust [cargo fetch] cargo test", "crates/a rust of . cargo test"}},
		"a workspace of go": {map[string]string{"go.work": "go 1.24\n\nuse (\n\t./a\n\t./x/y/z/deep\n)\n", "a/go.mod": goMod, "x/y/z/deep/go.mod": nested, "b/go.mod": nested},
			[]string{". go of . [go mod download] go list -f '{{.Dir}}/...' -m | xargs go test (all)", "a go of . go test ./...", "b go [go mod download] go test ./...", "x/y/z/deep go of . go test ./..."}},
		"several modules of go": {map[string]string{"go.mod": goMod, "tools-of-ours/go.mod": nested, "internal/testdata/x/go.mod": nested},
			[]string{". go [go mod download] go test ./...", "tools-of-ours go [go mod download] go test ./..."}},
		"members of uv": {map[string]string{"pyproject.toml": "[project]\nname='x'\n[tool.uv.workspace]\nmembers=['packages/*']\n", "uv.lock": "", "packages/a/pyproject.toml": "[project]\nname='a'\n"},
			[]string{". python of . [command -v uv >/dev/null || python3 -m pip install --user uv; uv sync --all-packages; . .venv/bin/activate] uv run pytest", "packages/a python of . uv run pytest"}},
		"modules of gradle": {map[string]string{"settings.gradle.kts": "include(\":app\", \":libs:core\")\ninclude 'my app'", "gradlew": "", "app/build.gradle.kts": "", "libs/core/build.gradle.kts": "", "my app/build.gradle": "", "buildSrc/build.gradle": "", "other/build.gradle": ""},
			[]string{". java of . [sh ./gradlew --no-daemon assemble] sh ./gradlew --no-daemon test (all)", "app java of . cd .. && sh ./gradlew --no-daemon :app:test",
				"my app java of . cd .. && sh ./gradlew --no-daemon ':my app':test", "libs/core java of . cd ../.. && sh ./gradlew --no-daemon :libs:core:test"}},
		"modules of maven": {map[string]string{"pom.xml": "<project><modules><module>api</module><module>all/pom.xml</module></modules></project>", "api/pom.xml": "<project/>", "all/pom.xml": "<project><modules><module>one</module></modules></project>", "all/one/pom.xml": "<project/>", "src/it/x/pom.xml": "<project/>"},
			[]string{". java of . [mvn -B clean install -DskipTests] mvn -B test (all)", "all java of . cd .. && mvn -B -pl all -am test", "api java of . cd .. && mvn -B -pl api -am test", "all/one java of . cd ../.. && mvn -B -pl all/one -am test"}},
		"parts of a program in C":    {map[string]string{"CMakeLists.txt": "", "src/CMakeLists.txt": "", "lib/x/CMakeLists.txt": ""}, []string{". c [cmake -S . -B build; cmake --build build] ctest --test-dir build"}},
		"packages for pages alone":   {map[string]string{"manage.py": "", "requirements.txt": "django\n", "package.json": `{"devDependencies":{"sass":"1"},"scripts":{"build":"sass"}}`}, []string{". python [python3 -m venv .venv; . .venv/bin/activate; pip install -r requirements.txt] python manage.py test"}},
		"tests of the pages":         {map[string]string{"Gemfile": rubyFile, "config.ru": "", "app.rb": "", "package.json": `{"devDependencies":{"jest":"1"},"scripts":{"test":"jest"}}`}, []string{". ruby [bundle config set --local path vendor/bundle; bundle install] bundle exec rake test", ". node [npm install] npm test"}},
		"examples and documentation": {map[string]string{"go.mod": goMod, "docs/package.json": testedPackage, "examples/a/go.mod": nested, "templates/go.mod": nested}, []string{". go [go mod download] go test ./..."}},
		"conda beside requirements":  {map[string]string{"environment.yml": "dependencies: [numpy]\n", "requirements.txt": "a\n"}, []string{". miniforge [conda env create -f environment.yml -n project-env; conda activate project-env] python -m pytest"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := environment.BuiltIn().Detect(project(test.files), "")
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, p := range got.Projects {
				lines = append(lines, outline(p))
			}
			if diff := cmp.Diff(test.want, lines); diff != "" || len(got.Warnings) > 0 {
				t.Errorf("projects differ:\n%s%v", diff, got.Warnings)
			}
			main := got.Projects[0]
			if main.Directory != got.Directory || main.EnvironmentType != got.EnvironmentType || main.TestCommand != got.TestCommand ||
				main.BuildCommand != got.BuildCommand || !slices.Equal(main.SetupCommands, got.SetupCommands) || len(main.Verification) != len(got.Verification) {
				t.Errorf("the main project is %+v, and the fields say %+v", main, got)
			}
		})
	}
}

func TestTooManyProjectsAreCountedAndSaid(t *testing.T) {
	t.Parallel()
	files := map[string]string{"go.mod": goMod}
	for i := range 60 {
		files[fmt.Sprintf("service%02d/go.mod", i)] = goMod
	}
	got, err := environment.BuiltIn().Detect(project(files), "")
	if err != nil || len(got.Projects) != 20 || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "more than 20 projects") {
		t.Errorf("got %d projects, %v, %v", len(got.Projects), got.Warnings, err)
	}
}

func TestTouched(t *testing.T) {
	t.Parallel()
	find := func(files map[string]string) []environment.Project {
		got, err := environment.BuiltIn().Detect(project(files), "")
		if err != nil {
			t.Fatal(err)
		}
		return got.Projects
	}
	apart := find(map[string]string{"backend/go.mod": goMod, "backend/tools/x/go.mod": goMod, "backend/plugin/go.mod": goMod, "frontend/package.json": testedPackage})
	together := find(map[string]string{"package.json": `{"workspaces":["packages/*"]}`, "packages/a/package.json": testedPackage, "packages/b/package.json": testedPackage, "api/go.mod": goMod})
	mixed := find(map[string]string{"go.mod": goMod, "main.go": "", "package.json": testedPackage, "x.js": ""})
	cases := map[string]struct {
		projects []environment.Project
		changed  []string
		want     []string
	}{
		"one folder":                    {apart, []string{"frontend/src/x.js"}, []string{"frontend node"}},
		"the deepest folder":            {apart, []string{"backend/plugin/x.go"}, []string{"backend/plugin go"}},
		"a name that only begins alike": {apart, []string{"backend/pluginless/x.go"}, []string{"backend go"}},
		"two folders":                   {apart, []string{"frontend/x.js", "./backend/main.go"}, []string{"backend go", "frontend node"}},
		"no project above it":           {apart, []string{"compose.yaml"}, []string{"backend go", "frontend node", "backend/plugin go"}},
		"nothing":                       {apart, nil, nil},
		"a member":                      {together, []string{"packages/a/x.js"}, []string{"packages/a node"}},
		"the lock of a workspace":       {together, []string{"package-lock.json"}, []string{". node", "packages/a node", "packages/b node"}},
		"a file of the root's own":      {together, []string{"scripts/x.js"}, []string{". node"}},
		"another language below":        {together, []string{"api/go.sum"}, []string{"api go"}},
		"two languages in one folder":   {mixed, []string{"main.go"}, []string{". go", ". node"}},
	}
	for name, test := range cases {
		var got []string
		for _, p := range environment.Touched(test.projects, test.changed) {
			got = append(got, p.Directory+" "+p.EnvironmentType)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	var left []string
	for _, p := range environment.WithoutCovered(environment.Touched(together, []string{"package-lock.json", "api/main.go"})) {
		left = append(left, p.Directory)
	}
	if diff := cmp.Diff([]string{".", "api"}, left); diff != "" {
		t.Errorf("what the root tests too is not left out:\n%s", diff)
	}
}

func TestAGuessIsCalledAGuess(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		files  map[string]string
		want   string
		guess  bool
		reason string
	}{
		"nothing":               {map[string]string{"README": ""}, "python", true, "the default is taken"},
		"gleam":                 {map[string]string{"gleam.toml": "name='x'\n", "src/x.gleam": "", "test/x_test.gleam": ""}, "python", true, ".gleam"},
		"cobol":                 {map[string]string{"index.cbl": ""}, "python", true, ".cbl"},
		"scheme":                {map[string]string{"haunt.scm": "", "init.scm": ""}, "python", true, ".scm"},
		"shell":                 {map[string]string{"start.sh": "echo hello"}, "python", true, ".sh"},
		"a site":                {map[string]string{"index.html": "", "style.css": ""}, "python", true, ".css, .html"},
		"python":                {map[string]string{"main.py": ""}, "python", false, "source files exist"},
		"deno without manifest": {map[string]string{"src/index.ts": `import * as o from "https://deno.land/x/cowsay/mod.ts";`}, "deno", false, "source files exist"},
		"deno by its interface": {map[string]string{"main.ts": "Deno.serve(() => new Response('x'));"}, "deno", false, "source files exist"},
		"node without manifest": {map[string]string{"main.ts": `import x from "x"; // not from "jsr"`}, "node", false, "source files exist"},
		"deno beside packages":  {map[string]string{"deno.json": `{"tasks":{"test":"deno test"}}`, "deno.lock": "{}", "package.json": `{"private":true,"dependencies":{"a":"1","b":"1"}}`, "main.ts": ""}, "deno", false, "deno.json"},
		"ruby beside packages":  {map[string]string{"Gemfile": rubyFile, "app.rb": "", "package.json": `{"main":"index.js","dependencies":{"lodash":"4","webpack-cli":"4"}}`}, "ruby", false, "Gemfile"},
		"packages beside gems":  {map[string]string{"Gemfile": "gem 'fastlane'\ngem 'cocoapods'\ngem 'danger'\n", "index.js": "", "ios/App/x.swift": "", "package.json": `{"scripts":{"start":"x"},"dependencies":{"react-native":"1"}}`}, "node", false, "package.json"},
		"java deep below":       {map[string]string{"pom.xml": "<project/>", "src/main/java/org/example/app/Main.java": "", "webpack.config.js": "", "package.json": manyPackages}, "java", false, "pom.xml"},
		"both are written for":  {map[string]string{"Gemfile": rubyFile, "app.rb": "", "src/x.js": "", "package.json": `{"main":"src/x.js","dependencies":{"a":"4","b":"4"}}`}, "node", false, "package.json"},
	}
	for name, test := range cases {
		got, err := environment.BuiltIn().Detect(project(test.files), "")
		if err != nil || got.EnvironmentType != test.want || got.Guess != test.guess || !strings.Contains(got.Reason, test.reason) {
			t.Errorf("%s: %s, guess %v (%s), %v; want %s, %v (%s)", name, got.EnvironmentType, got.Guess, got.Reason, err, test.want, test.guess, test.reason)
		}
	}
}
