package environment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/environment"
)

const (
	manyPackages = `{"private": true, "scripts": {"start": "webpack serve"}, "dependencies": {"a":"1","b":"1","c":"1","d":"1","e":"1"}}`
	toolConfig   = "[tool.ruff]\nline-length = 100\n"
)

// The layouts are those of real projects that were told wrong at first.
func TestDetectKnowsTheLayoutsOfRealProjects(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		files   map[string]string
		want    string
		manager string
		folder  string // "." when empty
		test    string
		runs    string // a set-up command that has to be there
		not     string // and one that must not
	}{
		// Pages of a program in another language.
		{name: "django with webpack", files: map[string]string{"manage.py": "", "requirements.txt": "django\n", "package.json": manyPackages}, want: "python", manager: "pip", test: "python manage.py test"},
		{name: "rails with packages", files: map[string]string{"Gemfile": "gem 'rails'\n", "config.ru": "", "bin/rails": "", "package.json": manyPackages}, want: "ruby", manager: "bundler", test: "bin/rails test"},
		{name: "laravel with packages that are not private", files: map[string]string{"artisan": "", "composer.json": `{"require":{"laravel/framework":"11"}}`, "package.json": strings.Replace(manyPackages, "true", "false", 1)}, want: "php", manager: "composer"},
		{name: "java with a private front end", files: map[string]string{"pom.xml": "<project/>", "package.json": manyPackages}, want: "java", manager: "maven"},
		{name: "a published package of Python with its pages", files: map[string]string{"pyproject.toml": "[project]\nname='x'\ndependencies=['a']\n", "package.json": manyPackages}, want: "python", manager: "pip"},
		{name: "an app with a few scripts in Python", files: map[string]string{"requirements.txt": "boto3\n", "package.json": manyPackages}, want: "node", manager: "npm"},
		{name: "an app with tools of Ruby", files: map[string]string{"Gemfile": "gem 'cocoapods'\n", "package.json": manyPackages, "yarn.lock": ""}, want: "node", manager: "yarn"},
		{name: "a monorepo with a package of Python", files: map[string]string{"setup.py": "", "package.json": `{"private":true,"workspaces":["packages/*"],"devDependencies":{"a":"1"}}`}, want: "node", manager: "npm"},

		// Manifests that only configure tools.
		{name: "tools at the top", files: map[string]string{"package.json": `{"devDependencies":{"husky":"9"}}`, "api/go.mod": goMod, "docs/requirements.txt": "sphinx\n"}, want: "go", manager: "go", folder: "api"},
		{name: "tools at the top and nothing but documentation", files: map[string]string{"package.json": `{"devDependencies":{"husky":"9"}}`, "docs/requirements.txt": "sphinx\n"}, want: "node", manager: "npm"},
		{name: "a configuration of tools is not installed", files: map[string]string{"pyproject.toml": toolConfig, "requirements.txt": "flask\n"}, want: "python", manager: "pip", runs: "pip install -r requirements.txt", not: "pip install -e ."},
		{name: "an environment.yml of something else", files: map[string]string{"environment.yml": "stage: production\nregion: eu\n", "package.json": `{"main":"x.js"}`}, want: "node", manager: "npm"},

		// Folders below.
		{name: "the folder that needs most", files: map[string]string{"a-worker/package.json": `{"dependencies":{"a":"1"}}`, "web/package.json": manyPackages, "api/requirements.txt": "flask\n"}, want: "node", manager: "npm", folder: "web"},
		{name: "documentation comes last", files: map[string]string{"docs/package.json": manyPackages, "server/go.mod": goMod}, want: "go", manager: "go", folder: "server"},
		{name: "hidden folders and carried libraries", files: map[string]string{".ci/requirements.txt": "x\n", "deps/lua/CMakeLists.txt": "", "Makefile": "all:\n", "src/a.c": "", "src/b.c": "", "utils/x.py": ""}, want: "c", manager: "make", runs: "make"},
		{name: "sources lie below", files: map[string]string{"README.md": "", "cmd/x/main.go": "", "pkg/y/y.go": "", "run.py": ""}, want: "go", manager: "go"},
		{name: "a library carried deep inside", files: map[string]string{"index.php": "", "load.php": "", "includes/sodium/composer.json": `{"require":{"php":"5"}}`}, want: "php", manager: "composer", not: "composer install --no-interaction"},
		{name: "gradle without a build file at the top", files: map[string]string{"settings.gradle.kts": "include(\"app\")", "gradlew": "", "app/build.gradle.kts": ""}, want: "java", manager: "gradle-wrapper"},
		{name: "ant", files: map[string]string{"build.xml": "<project/>", "src/etc/poms/pom.xml": "<project/>"}, want: "java", manager: "ant"},

		// What set-up installs, and how tests are run.
		{name: "requirements in a folder", files: map[string]string{"requirements/base.txt": "django\n", "requirements/dev.txt": "-r base.txt\npytest\n"}, want: "python", manager: "pip", test: "python -m pytest", runs: "pip install -r requirements/dev.txt"},
		{name: "requirements by another name", files: map[string]string{"requirements.txt": "flask\n", "dev-requirements.txt": "pytest\n"}, want: "python", manager: "pip", test: "python -m pytest", runs: "pip install -r dev-requirements.txt"},
		{name: "the extra that tests need", files: map[string]string{"pyproject.toml": "[project]\nname='x'\n[project.optional-dependencies]\ntest=['pytest']\ndocs=['sphinx']\n"}, want: "python", manager: "pip", test: "python -m pytest", runs: "pip install -e '.[test]'"},
		{name: "the extra in a script", files: map[string]string{"setup.py": "setup(name='x', extras_require={'dev': ['pytest']})"}, want: "python", manager: "pip", runs: "pip install -e '.[dev]'"},
		{name: "the group that tests need", files: map[string]string{"pyproject.toml": "[project]\nname='x'\n[dependency-groups]\ndev=['pytest', {include-group='x'}]\n"}, want: "python", manager: "pip", runs: "pip install --group dev"},
		{name: "pytest that nobody asks for", files: map[string]string{"setup.py": "", "tests/conftest.py": ""}, want: "python", manager: "pip", test: "python -m pytest", runs: "pip install pytest"},
		{name: "tox without pytest", files: map[string]string{"setup.py": "", "tox.ini": "[testenv]\ncommands = python runtests.py\n", "runtests.py": ""}, want: "python", manager: "pip", test: "python runtests.py", not: "pip install pytest"},
		{name: "tools that the image does not have", files: map[string]string{"pyproject.toml": "[project]\nname='x'\n", "uv.lock": ""}, want: "python", manager: "uv", test: "uv run pytest", runs: "command -v uv >/dev/null || python3 -m pip install --user uv"},
		{name: "the script and not the runner of bun", files: map[string]string{"package.json": `{"scripts":{"test":"vitest"}}`, "bun.lock": ""}, want: "node", manager: "bun", test: "bun run test"},
		{name: "another script that tests", files: map[string]string{"package.json": `{"scripts":{"test:unit":"jest"}}`}, want: "node", manager: "npm", test: "npm run test:unit"},
		{name: "tests of workspaces", files: map[string]string{"package.json": `{"workspaces":["a"]}`}, want: "node", manager: "npm", test: "npm test --workspaces --if-present"},
		{name: "a workspace of pnpm without a lock", files: map[string]string{"package.json": `{"private":true}`, "pnpm-workspace.yaml": "packages: ['*']\n"}, want: "node", manager: "pnpm", runs: "corepack pnpm install"},
		{name: "rspec that only helps", files: map[string]string{"Gemfile": "gem 'rspec'\n", "Rakefile": "", "test/a_test.rb": ""}, want: "ruby", manager: "bundler", test: "bundle exec rake test"},
		{name: "a gem", files: map[string]string{"x.gemspec": "s.add_dependency 'rack'\ns.add_development_dependency('rspec', '3')\n", "spec/a_spec.rb": ""}, want: "ruby", manager: "bundler", test: "bundle exec rspec"},
		{name: "a workspace of go without a module at the top", files: map[string]string{"go.work": "go 1.24\n\nuse ./a\n", "a/go.mod": goMod}, want: "go", manager: "go-workspace", test: "go list -f '{{.Dir}}/...' -m | xargs go test", runs: "go mod download"},
		{name: "a task of deno", files: map[string]string{"deno.jsonc": "{\n // tasks\n \"tasks\": {\"test\": \"deno test -A\"},\n}"}, want: "deno", manager: "deno", test: "deno task test"},
		{name: "pages without composer", files: map[string]string{"index.php": "", "a.php": ""}, want: "php", manager: "composer", not: "composer install --no-interaction"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := environment.BuiltIn().Detect(project(test.files), "")
			if err != nil {
				t.Fatal(err)
			}
			folder := test.folder
			if folder == "" {
				folder = "."
			}
			if got.EnvironmentType != test.want || got.PackageManager != test.manager || got.Directory != folder || len(got.Warnings) > 0 {
				t.Errorf("got %s, %s in %s; want %s, %s in %s (%s; %v)", got.EnvironmentType, got.PackageManager, got.Directory, test.want, test.manager, folder, got.Reason, got.Warnings)
			}
			if test.test != "" && got.TestCommand != test.test {
				t.Errorf("tests run with %q, want %q", got.TestCommand, test.test)
			}
			if test.runs != "" && !slices.Contains(got.SetupCommands, test.runs) {
				t.Errorf("commands are %q, want %q among them", got.SetupCommands, test.runs)
			}
			if test.not != "" && slices.Contains(got.SetupCommands, test.not) {
				t.Errorf("commands are %q, with %q among them", got.SetupCommands, test.not)
			}
		})
	}
}

func TestDetectReadsVersionsWhereProjectsKeepThem(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		files map[string]string
		want  string
	}{
		"tool versions":      {map[string]string{"package.json": "{}", ".tool-versions": "ruby 3.3.0\nnodejs 22.1.0\n"}, "22.1.0"},
		"any long-term node": {map[string]string{"package.json": `{"engines":{"node":">=20"}}`, ".nvmrc": "lts/*\n"}, ">=20"},
		"runtime":            {map[string]string{"requirements.txt": "flask\n", "runtime.txt": "python-3.9.1\n"}, "3.9.1"},
		"toolchain of rust":  {map[string]string{"Cargo.toml": "[package]\nname='x'\n", "rust-toolchain.toml": "[toolchain]\nchannel = '1.80'\n"}, "1.80"},
		"workspace of rust":  {map[string]string{"Cargo.toml": "[workspace.package]\nrust-version='1.75'\n"}, "1.75"},
		"toolchain of java":  {map[string]string{"build.gradle.kts": "kotlin {\n jvmToolchain(17)\n}\ndependencies {\n implementation(libs.okio)\n}"}, "17"},
		"sdk":                {map[string]string{"App.sln": "", "global.json": `{"sdk":{"version":"8.0.100"}}`}, "8.0.100"},
		"gem":                {map[string]string{"x.gemspec": "s.required_ruby_version = '>= 3.1'\n"}, ">= 3.1"},
	}
	for name, test := range cases {
		got, err := environment.BuiltIn().Detect(project(test.files), "")
		if err != nil || got.LanguageVersion != test.want {
			t.Errorf("%s: version is %q, want %q (%v)", name, got.LanguageVersion, test.want, err)
		}
	}
}

// The task's language decides also between folders.
func TestTheLanguageOfTheTaskDecidesBetweenFolders(t *testing.T) {
	t.Parallel()
	files := project(map[string]string{"web/package.json": manyPackages, "api/requirements.txt": "flask\n"})
	got, err := environment.BuiltIn().Detect(files, "Python")
	if err != nil || got.EnvironmentType != "python" || got.Directory != "api" || len(got.Candidates) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, known := got.DetectedFiles["web/package.json"]; !known {
		t.Errorf("the other candidate's manifest is not among %v", got.DetectedFiles)
	}
}
