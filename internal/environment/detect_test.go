package environment_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/task"
)

func project(files map[string]string) fstest.MapFS {
	made := fstest.MapFS{}
	for name, content := range files {
		made[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return made
}

const goMod = "module x\n\ngo 1.24\n\nrequire (\n\tgithub.com/a/b v1.0.0\n\tgithub.com/c/d v1.0.0 // indirect\n)\n"

func TestDetectFollowsTheSpecification(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		files    map[string]string
		language string
		want     string
		manager  string
		version  string
		commands []string
		test     string
	}{
		{name: "requirements without conda", files: map[string]string{"requirements.txt": "requests==2.31 # http\nflask\n-r other.txt\n"},
			want: "python", manager: "pip", commands: []string{"python3 -m venv .venv", ". .venv/bin/activate", "pip install -r requirements.txt"}, test: "python -m unittest discover"},
		{name: "conda wins over requirements", files: map[string]string{"requirements.txt": "a\nb\nc\nd", "environment.yml": "dependencies:\n  - python=3.11\n  - pip:\n    - numpy\n"},
			want: "miniforge", manager: "conda", version: "3.11"},
		{name: "condaenv.yaml", files: map[string]string{"condaenv.yaml": "dependencies: [numpy]\n"}, want: "miniforge", manager: "conda"},
		{name: "package.json", files: map[string]string{"package.json": `{"engines":{"node":">=20"},"scripts":{"test":"jest"},"dependencies":{"express":"4"}}`},
			want: "node", manager: "npm", version: ">=20", commands: []string{"npm install"}, test: "npm test"},
		{name: "package-lock.json", files: map[string]string{"package.json": `{}`, "package-lock.json": "{}"}, want: "node", manager: "npm", commands: []string{"npm ci"}},
		{name: "yarn", files: map[string]string{"package.json": `{}`, "yarn.lock": ""}, want: "node", manager: "yarn"},
		{name: "pnpm", files: map[string]string{"package.json": `{}`, "pnpm-lock.yaml": ""}, want: "node", manager: "pnpm"},
		{name: "bun", files: map[string]string{"package.json": `{}`, "bun.lock": ""}, want: "node", manager: "bun"},
		{name: "the named manager without a lock", files: map[string]string{"package.json": `{"packageManager":"pnpm@9.0.0"}`}, want: "node", manager: "pnpm"},
		{name: "no test specified", files: map[string]string{"package.json": `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`}, want: "node", manager: "npm"},
		{name: "maven", files: map[string]string{"pom.xml": "<project><properties><maven.compiler.release>21</maven.compiler.release></properties></project>"},
			want: "java", manager: "maven", version: "21", commands: []string{"mvn -B clean install -DskipTests"}, test: "mvn -B test"},
		{name: "maven wrapper", files: map[string]string{"pom.xml": "<project/>", "mvnw": ""}, want: "java", manager: "maven-wrapper"},
		{name: "gradle", files: map[string]string{"build.gradle": "implementation 'a:b:1'\nsourceCompatibility = '17'\n"}, want: "java", manager: "gradle", version: "17"},
		{name: "gradle in kotlin with wrapper", files: map[string]string{"build.gradle.kts": "implementation(\"a:b:1\")", "gradlew": ""}, want: "java", manager: "gradle-wrapper"},
		{name: "go", files: map[string]string{"go.mod": goMod}, want: "go", manager: "go", version: "1.24", commands: []string{"go mod download"}, test: "go test ./..."},
		{name: "go workspace", files: map[string]string{"go.work": "go 1.24\n\nuse ./a\n", "a/go.mod": goMod}, want: "go", manager: "go-workspace", version: "1.24"},
		{name: "poetry by lock", files: map[string]string{"pyproject.toml": "[project]\nname='x'\n", "poetry.lock": ""}, want: "python", manager: "poetry"},
		{name: "poetry by section", files: map[string]string{"pyproject.toml": "[tool.poetry.dependencies]\npython='^3.11'\nflask='*'\n"}, want: "python", manager: "poetry", version: "^3.11"},
		{name: "uv", files: map[string]string{"pyproject.toml": "[project]\nrequires-python='>=3.12'\n", "uv.lock": ""}, want: "python", manager: "uv", version: ">=3.12"},
		{name: "pipenv", files: map[string]string{"Pipfile": "[packages]\nflask='*'\n[requires]\npython_version='3.10'\n"}, want: "python", manager: "pipenv", version: "3.10"},
		{name: "pytest", files: map[string]string{"pyproject.toml": "[project]\ndependencies=['a']\n[tool.pytest.ini_options]\n"}, want: "python", manager: "pip", test: "python -m pytest"},
		{name: "nothing", files: map[string]string{"README.md": "hello"}, want: "python", manager: "pip"},
		{name: "most dependencies", files: map[string]string{"go.mod": goMod, "package.json": `{"dependencies":{"a":"1","b":"1","c":"1"}}`}, want: "node", manager: "npm"},
		{name: "the language of the task", language: "Go", files: map[string]string{"go.mod": goMod, "package.json": `{"dependencies":{"a":"1","b":"1","c":"1"}}`}, want: "go", manager: "go", version: "1.24"},
		{name: "tools in another language", files: map[string]string{"composer.json": `{"require":{"php":">=8.1","a/b":"1"}}`, "package.json": `{"devDependencies":{"vite":"1","b":"1","c":"1"}}`}, want: "php", manager: "composer", version: ">=8.1"},
		{name: "rust", files: map[string]string{"Cargo.toml": "[package]\nname='x'\nrust-version='1.80'\n[dependencies]\nserde='1'\n"}, want: "rust", manager: "cargo", version: "1.80"},
		{name: "ruby", files: map[string]string{"Gemfile": "source 'x'\nruby '3.3.0'\ngem 'rspec'\n"}, want: "ruby", manager: "bundler", version: "3.3.0", test: "bundle exec rspec"},
		{name: "dotnet", files: map[string]string{"App.csproj": "<Project><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>"}, want: "dotnet", manager: "nuget", version: "net8.0"},
		{name: "elixir", files: map[string]string{"mix.exs": "elixir: \"~> 1.15\"\n{:plug, \"~> 1.0\"}"}, want: "elixir", manager: "mix", version: "~> 1.15"},
		{name: "deno", files: map[string]string{"deno.json": "{}"}, want: "deno", manager: "deno"},
		{name: "swift", files: map[string]string{"Package.swift": "// swift-tools-version:5.9"}, want: "swift", manager: "swiftpm", version: "5.9"},
		{name: "cmake", files: map[string]string{"CMakeLists.txt": "project(x)"}, want: "c", manager: "cmake"},
		{name: "sources only", files: map[string]string{"main.go": "package main", "util.go": "package main"}, want: "go", manager: "go"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := environment.BuiltIn().Detect(project(test.files), test.language)
			if err != nil {
				t.Fatal(err)
			}
			if got.EnvironmentType != test.want || got.PackageManager != test.manager || got.LanguageVersion != test.version {
				t.Errorf("got %s, %s, version %q; want %s, %s, version %q (%s; %v)", got.EnvironmentType, got.PackageManager, got.LanguageVersion, test.want, test.manager, test.version, got.Reason, got.Warnings)
			}
			if test.commands != nil && !slices.Equal(got.SetupCommands, test.commands) {
				t.Errorf("commands are %q, want %q", got.SetupCommands, test.commands)
			}
			if test.test != "" && got.TestCommand != test.test {
				t.Errorf("tests run with %q, want %q", got.TestCommand, test.test)
			}
			for name := range got.DetectedFiles {
				if test.files[name] == "" && got.DetectedFiles[name] != "" {
					t.Errorf("detected file %q is not in the project", name)
				}
			}
		})
	}
}

func TestDetectNamesCandidatesAndDependencies(t *testing.T) {
	t.Parallel()
	got, err := environment.BuiltIn().Detect(project(map[string]string{
		"requirements.txt": "requests>=2\nflask[async]==3 ; python_version > '3'\n", "package.json": `{"dependencies":{"left-pad":"1"}}`, "Makefile": "all:\n",
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"requests", "flask"}, got.Dependencies); diff != "" {
		t.Errorf("dependencies differ:\n%s", diff)
	}
	var names []string
	for _, candidate := range got.Candidates {
		names = append(names, candidate.Environment)
		if candidate.Reason == "" {
			t.Errorf("candidate %s has no reason", candidate.Environment)
		}
	}
	if diff := cmp.Diff([]string{"python", "node"}, names); diff != "" {
		t.Errorf("candidates differ:\n%s", diff)
	}
	if _, found := got.DetectedFiles["Makefile"]; !found {
		t.Error("the Makefile is not among the detected files")
	}
}

func TestDetectLooksIntoFoldersWhenTheTopHasNoManifest(t *testing.T) {
	t.Parallel()
	got, err := environment.BuiltIn().Detect(project(map[string]string{
		"README.md": "", "node_modules/x/package.json": "{}", "services/it's api/go.mod": goMod,
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	if got.EnvironmentType != "go" || got.Directory != "services/it's api" {
		t.Fatalf("got %s in %q", got.EnvironmentType, got.Directory)
	}
	if diff := cmp.Diff([]string{"go mod download"}, got.SetupCommands); diff != "" {
		t.Errorf("commands differ:\n%s", diff)
	}
}

func TestDetectReportsBrokenManifestsAndGoesOn(t *testing.T) {
	t.Parallel()
	broken := map[string]string{"package.json": "{", "pyproject.toml": "[", "pom.xml": "<project", "go.mod": "modul x y z", "Cargo.toml": "[[[",
		"environment.yml": "a: b: c", "composer.json": "nope", "App.csproj": "<Project", "pubspec.yaml": "\t: x"}
	for name, content := range broken {
		got, err := environment.BuiltIn().Detect(project(map[string]string{name: content}), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got.Warnings) == 0 || !strings.Contains(got.Warnings[0], name) {
			t.Errorf("%s is broken, and the warnings are %q", name, got.Warnings)
		}
	}
}

func TestDetectCapsContents(t *testing.T) {
	t.Parallel()
	got, err := environment.BuiltIn().Detect(project(map[string]string{
		"requirements.txt": strings.Repeat("x\n", 1<<20), "Makefile": "\xff\xfe" + strings.Repeat("y", 1<<20)}), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range got.DetectedFiles {
		if len(content) > 17<<10 || len(content) == 0 {
			t.Errorf("%s has %d bytes", name, len(content))
		}
	}
}

func TestDetectDoesNotFollowAManifestOutOfTheProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/secret", []byte("requests\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/project", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", dir+"/project/requirements.txt"); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir + "/project")
	if err != nil {
		t.Fatal(err)
	}
	got, err := environment.BuiltIn().Detect(root.FS(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Dependencies) != 0 || got.DetectedFiles["requirements.txt"] != "" || len(got.Warnings) == 0 {
		t.Errorf("a link out of the project was followed: %+v", got)
	}
}

func TestConfigurationChangesAndAddsEnvironments(t *testing.T) {
	t.Parallel()
	table, err := environment.BuiltIn().With([]byte(`
- name: python
  image: registry.internal/python:3.12
- name: cobol
  image: cobol:1
  markers: ["*.cbl"]
  build: ["*.cbl"]
  managers: [{name: none, setup: [{run: "cobc -x main.cbl"}], test: ./test.sh}]
`))
	if err != nil {
		t.Fatal(err)
	}
	python, _ := table.Find("python")
	if python.Image != "registry.internal/python:3.12" || len(python.Managers) == 0 {
		t.Errorf("python became %+v", python)
	}
	got, err := table.Detect(project(map[string]string{"main.cbl": ""}), "")
	if err != nil {
		t.Fatal(err)
	}
	if got.EnvironmentType != "cobol" || !slices.Equal(got.SetupCommands, []string{"cobc -x main.cbl"}) {
		t.Errorf("got %+v", got)
	}
	if before, _ := environment.BuiltIn().Find("python"); before.Image == python.Image {
		t.Error("the built-in table was changed")
	}
	for _, bad := range []string{"- image: x", "{", "- name: [1]"} {
		if _, err := environment.BuiltIn().With([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// An installation chooses images and the default, and adds names for plans.
func TestImagesAndDefaultOfAnInstallation(t *testing.T) {
	t.Parallel()
	built := environment.BuiltIn()
	table, err := built.WithImages(map[string]string{"python": "internal/python:3.12", "cobol": "cobol:1"}).WithDefault("cobol")
	if err != nil {
		t.Fatal(err)
	}
	python, _ := table.Find("python")
	if python.Image != "internal/python:3.12" || len(python.Managers) == 0 {
		t.Errorf("python became %+v", python)
	}
	if table.Names()[0] != "python" || table.Default().Name != "cobol" || table.Default().Image != "cobol:1" {
		t.Errorf("the default is %+v of %v", table.Default(), table.Names())
	}
	got, err := table.Detect(project(map[string]string{"README": ""}), "")
	if err != nil || got.EnvironmentType != "cobol" || len(got.SetupCommands) != 0 {
		t.Errorf("nothing tells: %+v, %v", got, err)
	}
	selected, entry, warnings := table.Complete(environment.Selection{Name: "nonsense"}, got)
	if selected.Name != "cobol" || entry.Image != "cobol:1" || len(warnings) == 0 {
		t.Errorf("an unknown name became %+v with %v", selected, warnings)
	}
	if before, _ := built.Find("python"); before.Image == python.Image || built.Default().Name != "python" {
		t.Error("the built-in table was changed")
	}
	if _, err := built.WithDefault("nonsense"); task.CodeOf(err) != task.NotFound {
		t.Errorf("an unknown default: %v", err)
	}
}

// What an installation does not allow is neither offered nor detected nor taken.
func TestOnlyAllowedEnvironmentsAreOffered(t *testing.T) {
	t.Parallel()
	table, err := environment.BuiltIn().Only([]string{"node", "python"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"python", "node"}, table.Names()); diff != "" {
		t.Error(diff)
	}
	got, err := table.Detect(project(map[string]string{"go.mod": goMod, "main.go": ""}), "")
	if err != nil || got.EnvironmentType != "python" || !got.Guess || len(got.Projects) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	prompt, err := table.SelectionPrompt(got)
	if err != nil || !strings.Contains(prompt, "\n- node: ") || strings.Contains(prompt, "go.mod exists\n") || strings.Contains(prompt, "go mod download\"], \"verification") || strings.Contains(prompt, "- ruby:") {
		t.Errorf("the prompt is %s, %v", prompt, err)
	}
	if selected, _, warnings := table.Complete(environment.Selection{Name: "go"}, got); selected.Name != "python" || len(warnings) == 0 {
		t.Errorf("a plan may select %s, %v", selected.Name, warnings)
	}
	if all, err := environment.BuiltIn().Only(nil); err != nil || len(all.Names()) != len(environment.BuiltIn().Names()) {
		t.Errorf("without names there are %v, %v", all.Names(), err)
	}
	if _, err := environment.BuiltIn().Only([]string{"nonsense"}); task.CodeOf(err) != task.NotFound {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestTheFirstFiveAreTheSpecifications(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"python", "miniforge", "node", "java", "go"}, environment.BuiltIn().Names()[:5]); diff != "" {
		t.Error(diff)
	}
	for _, entry := range environment.BuiltIn().All() {
		if entry.Image == "" || entry.Title == "" || len(entry.Managers) == 0 || len(entry.Verify) == 0 || len(entry.Build) == 0 {
			t.Errorf("%s is not complete", entry.Name)
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	files := project(map[string]string{"go.mod": goMod, "go.sum": "", "package.json": `{"dependencies":{"a":"1"}}`, "Makefile": "all:", "main.go": ""})
	table := environment.BuiltIn()
	for b.Loop() {
		if _, err := table.Detect(files, ""); err != nil {
			b.Fatal(err)
		}
	}
}
