package environment_test

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/environment"
)

// How a project is built after a change is known of every language that builds.
func TestBuildCommands(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  string // begins the command; empty for none
	}{
		"go":             {map[string]string{"go.mod": goMod}, "go build ./..."},
		"go workspace":   {map[string]string{"go.work": "go 1.24\n\nuse ./a\n", "a/go.mod": goMod}, "go list -f"},
		"python":         {map[string]string{"requirements.txt": "flask\n"}, `PYTHONPYCACHEPREFIX="$(mktemp -d)" python -m compileall -q`},
		"python alone":   {map[string]string{"main.py": "print()"}, `PYTHONPYCACHEPREFIX="$(mktemp -d)" python -m compileall -q`},
		"conda":          {map[string]string{"environment.yml": "dependencies: [numpy]\n"}, `PYTHONPYCACHEPREFIX`},
		"node":           {map[string]string{"package.json": `{}`}, "npm run build --if-present"},
		"maven":          {map[string]string{"pom.xml": "<project/>"}, "mvn -q -B -DskipTests package"},
		"maven wrapper":  {map[string]string{"pom.xml": "<project/>", "mvnw": ""}, "sh ./mvnw"},
		"gradle":         {map[string]string{"build.gradle": ""}, "gradle --no-daemon assemble"},
		"gradle wrapper": {map[string]string{"build.gradle.kts": "", "gradlew": ""}, "sh ./gradlew"},
		"rust":           {map[string]string{"Cargo.toml": "[package]\nname='x'\n"}, "cargo build"},
		"cmake":          {map[string]string{"CMakeLists.txt": "project(x)"}, "cmake --build build"},
		"make":           {map[string]string{"Makefile": "all:\n", "main.c": "int main(){}"}, "make"},
		"autotools":      {map[string]string{"configure.ac": "", "main.c": ""}, "make"},
		"dotnet":         {map[string]string{"App.csproj": "<Project/>"}, "dotnet build"},
		"ruby":           {map[string]string{"Gemfile": "gem 'rspec'\n"}, ""},
		"nothing":        {map[string]string{"README.md": "hello"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := environment.BuiltIn().Detect(project(test.files), "")
			if err != nil {
				t.Fatal(err)
			}
			if (test.want == "") != (got.BuildCommand == "") || !strings.HasPrefix(got.BuildCommand, test.want) {
				t.Errorf("%s is built with %q, want %q", got.EnvironmentType, got.BuildCommand, test.want)
			}
		})
	}
}
