package environment_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
)

// With a snapshot of other files, the set-up commands run again that may have made
// something of those files. Installing packages and setting variables does not.
func TestSetUpAgain(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ commands, want []string }{
		{[]string{"npm ci", "npm run build"}, []string{"npm run build"}},
		{[]string{"npm ci && npm run build"}, []string{"npm ci && npm run build"}},
		{[]string{"python3 -m venv .venv", ". .venv/bin/activate", "pip install -r requirements.txt", "pip install pytest 'requests>=2'", "export A=1", "true"}, nil},
		{[]string{"pip install -e .", "pip install .", "pip install ./lib[test]", "pip install file:lib"}, []string{"pip install -e .", "pip install .", "pip install ./lib[test]", "pip install file:lib"}},
		{[]string{"command -v uv >/dev/null || python3 -m pip install --user uv", "uv sync", "corepack yarn install", "go mod download", "cargo fetch", "bundle config set --local path vendor/bundle", "bundle install", "composer install --no-interaction"}, nil},
		{[]string{"sudo apt-get update && sudo apt-get install -y libpq-dev", "DEBIAN_FRONTEND=noninteractive apt-get install -y x", "mvn -B dependency:go-offline"}, nil},
		{[]string{"cp a.sh built.sh", "make", "go build -o bin/app .", "sh setup.sh", "mvn -B clean install -DskipTests"}, []string{"cp a.sh built.sh", "make", "go build -o bin/app .", "sh setup.sh", "mvn -B clean install -DskipTests"}},
		{[]string{"pip install x; $(./build)", "true > built", "npm install; ./build &", "export A=`./build`"}, []string{"pip install x; $(./build)", "true > built", "npm install; ./build &", "export A=`./build`"}},
	} {
		b := newBench(t)
		b.Snapshots = 1 << 30
		b.engine.results["check"] = []any{printed("OK")}
		plan := environment.Selection{Name: "python", SetupCommands: one.commands, Verification: []environment.Check{{Command: "check", ExpectedOutput: "OK"}}}
		b.run(t, plan)
		if len(b.engine.kept) != 1 {
			t.Fatalf("%q: kept were %v", one.commands, b.engine.kept)
		}
		b.engine.snapshots, b.engine.ran = []sandbox.Snapshot{{Key: b.engine.kept[0]}}, nil
		if _, err := b.Run(t.Context(), environment.Request{Plan: plan, Source: environment.Source{Project: "ours", Change: "c"}, Again: true,
			Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}}); err != nil {
			t.Fatal(err)
		}
		if want := append(slices.Clone(one.want), "check"); !slices.Equal(b.engine.ran, want) {
			t.Errorf("%q: ran %q, want %q", one.commands, b.engine.ran, want)
		}
	}
}

// What runs again starts where it started the first time.
func TestSetUpAgainInFolders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, content := range map[string]string{"web/package.json": `{"scripts": {"prepare": "tsc"}}`, "api/package.json": `{"scripts": {"test": "jest"}}`} {
		file := filepath.Join(b.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b.Snapshots = 1 << 30
	b.engine.results["check"] = []any{printed("OK")}
	plan := environment.Selection{Name: "python", SetupCommands: []string{"cd web", "npm ci", "./build", "cd ../api", "npm ci"}, Verification: []environment.Check{{Command: "check", ExpectedOutput: "OK"}},
		Projects: []environment.Project{}}
	b.run(t, plan)
	b.engine.snapshots, b.engine.where = []sandbox.Snapshot{{Key: b.engine.kept[0]}}, nil
	if _, err := b.Run(t.Context(), environment.Request{Plan: plan, Source: environment.Source{Project: "ours", Change: "c"}, Again: true,
		Spec: sandbox.Spec{Owner: "test", Workspace: b.dir}}); err != nil {
		t.Fatal(err)
	}
	// Packages of a project that builds itself when they are installed are installed again.
	if want := []string{"web: npm ci", "web: ./build", ".: check"}; !slices.Equal(b.engine.where, want) {
		t.Errorf("ran %q, want %q", b.engine.where, want)
	}
}
