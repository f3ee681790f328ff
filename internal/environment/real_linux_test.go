package environment_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/bubblewrap"
	"github.com/toryo-dev/toryo/internal/sandbox/docker"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/workdir"
)

func TestMain(m *testing.M) {
	guest.Main(nil)
	os.Exit(m.Run())
}

// realEngines are the engines with which the projects below are set up for real.
var realEngines = map[string]func(testing.TB, string, sandbox.NewGate) (sandbox.Engine, error){
	"bubblewrap": func(t testing.TB, dir string, gate sandbox.NewGate) (sandbox.Engine, error) {
		t.Helper()
		if _, err := exec.LookPath("bwrap"); err != nil {
			testkit.LeaveOut(t, "bubblewrap")
		}
		return bubblewrap.New(bubblewrap.Config{Dir: dir, Guest: testkit.Guest(), NewGate: gate, Log: slog.New(slog.DiscardHandler)})
	},
	"docker": func(t testing.TB, dir string, gate sandbox.NewGate) (sandbox.Engine, error) {
		t.Helper()
		if os.Getenv("TORYO_TEST_DOCKER") == "" {
			testkit.LeaveOut(t, "a Docker Engine (TORYO_TEST_DOCKER)")
		}
		return docker.New(docker.Config{Host: os.Getenv("TORYO_TEST_DOCKER"), Dir: dir, Guest: testkit.Guest(), NewGate: gate, Log: slog.New(slog.DiscardHandler)})
	},
}

// realProject is a project of one kind, whose plan is wrong at first.
type realProject struct {
	files    map[string]string
	plan     environment.Selection
	kinds    []environment.Kind // that the first failure may have
	repair   environment.Repair
	failing  []string // tests that fail before any change
	manifest string
}

var realProjects = map[string]realProject{
	"go": {
		files: map[string]string{
			"go.mod":       "module example.com/app\n\ngo 1.24\n\nrequire github.com/pkg/errors v0.9.1\n",
			"go.sum":       "github.com/pkg/errors v0.9.1 h1:FEBLx1zS214owpjy7qsBeixbURkuhQAwrK5UwLGTwt4=\ngithub.com/pkg/errors v0.9.1/go.mod h1:bwawxfHBFNV+L2hUp1rHADufV3IMtnDRdf1r5NINEl0=\n",
			"main.go":      "package main\n\nimport \"github.com/pkg/errors\"\n\nfunc main() { println(errors.New(\"x\").Error()) }\n",
			"main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\n\nfunc TestBroken(t *testing.T) { t.Error(\"known\") }\n",
		},
		plan: environment.Selection{Name: "go", SetupCommands: []string{"go get github.com/pkg/errors@v0.99.99"},
			Verification: []environment.Check{{Command: "go list -m -f '{{.Version}}' github.com/pkg/errors", ExpectedOutput: "v0.9.1"}}},
		kinds:   []environment.Kind{environment.PackageNotFound, environment.Unknown},
		repair:  environment.Repair{SetupCommands: []string{"go mod download"}},
		failing: []string{"TestBroken"}, manifest: "go.mod",
	},
	"node": {
		files: map[string]string{
			"package.json": `{"name":"app","version":"1.0.0","scripts":{"test":"node --test"},"dependencies":{"is-odd":"3.0.1"}}`,
			"app.test.js":  "const test = require('node:test');\nconst assert = require('node:assert');\ntest('good', () => assert.ok(require('is-odd')(3)));\ntest('broken', () => assert.ok(false));\n",
		},
		plan: environment.Selection{Name: "node", SetupCommands: []string{"npm install is-odd@99.99.99"},
			Verification: []environment.Check{{Command: "node -e 'console.log(require(\"is-odd\")(3))'", ExpectedOutput: "true"}}},
		kinds:   []environment.Kind{environment.PackageNotFound, environment.VersionConflict, environment.Unknown},
		repair:  environment.Repair{SetupCommands: []string{"npm install"}},
		failing: []string{"broken"}, manifest: "package.json",
	},
	"python": {
		files: map[string]string{
			"requirements.txt": "--no-index\n--find-links wheels\nhello-toryo==1.0\n",
			"test_app.py":      "import unittest\n\nclass Case(unittest.TestCase):\n    def test_good(self):\n        import hello_toryo\n    def test_broken(self):\n        self.fail('known')\n",
		},
		plan: environment.Selection{Name: "python", SetupCommands: []string{"python3 -m venv .venv", ". .venv/bin/activate", "pip install --no-index --find-links wheels hello-toryo==2.0"},
			Verification: []environment.Check{{Command: "python -c 'import hello_toryo; print(hello_toryo.word)'", ExpectedOutput: "hello"}}},
		kinds:   []environment.Kind{environment.PackageNotFound},
		repair:  environment.Repair{SetupCommands: []string{"python3 -m venv .venv", ". .venv/bin/activate", "pip install -r requirements.txt"}},
		failing: []string{"test_broken (test_app.Case.test_broken)"}, manifest: "requirements.txt",
	},
}

// variables say where programs find the machine's authorities, and where Go finds
// what [compiledGo] compiled. With a C compiler it would compile other things.
var variables = map[string]string{"NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt", "npm_config_cafile": "/etc/ssl/certs/ca-certificates.crt",
	"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt", "CGO_ENABLED": "0", "GOCACHE": sandbox.WorkspacePath + "/" + goCache}

const goCache = ".go-cache"

// compiledGo is a folder, kept between runs, with what Go compiles of its standard
// library for the tests of a small project. That would otherwise take half a minute
// of processor time in each engine, and proves nothing.
var compiledGo = sync.OnceValues(func() (string, error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(caches, "toryo-test", "go-build")
	project, err := os.MkdirTemp("", "compiled")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(project) }()
	for _, name := range []string{"go.mod", "main_test.go"} {
		content, _, _ := strings.Cut(realProjects["go"].files[name], "\nrequire")
		if err := os.WriteFile(filepath.Join(project, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	compile := exec.Command("go", "test", "-run=^$", ".")
	compile.Dir = project
	compile.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOCACHE="+folder)
	if output, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return folder, nil
})

func TestRealProjects(t *testing.T) {
	t.Parallel()
	for engineName, newEngine := range realEngines {
		t.Run(engineName, func(t *testing.T) {
			t.Parallel()
			engine := realEngine(t, newEngine)
			for name, project := range realProjects {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					setUpForReal(t, engine, project)
				})
			}
		})
	}
}

func realEngine(t testing.TB, newEngine func(testing.TB, string, sandbox.NewGate) (sandbox.Engine, error)) sandbox.Engine {
	t.Helper()
	list, err := egress.Registries()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := workdir.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	engine, err := newEngine(t, dir, func(policy sandbox.Policy) sandbox.Gate {
		return egress.New(list, policy, slog.New(slog.DiscardHandler))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return engine
}

// setUpForReal takes a project through detection, failure, repair, verification,
// and baseline, then sets it up by the repaired plan and starts from the snapshot of that.
func setUpForReal(t *testing.T, engine sandbox.Engine, project realProject) {
	t.Helper()
	repairs := &repairer{answers: []any{project.repair}}
	setup := realSetup(engine)
	setup.Repairer = repairs
	cold := runForReal(t, setup, project, project.plan, true)
	if cold.Result.OverallStatus != environment.Succeeded || cold.Result.SetupResult.Regenerations != 1 {
		t.Fatalf("set-up: %+v", cold.Result)
	}
	if kind := repairs.asked[0].Failure.Classification.Kind; !slices.Contains(project.kinds, kind) {
		t.Errorf("the first failure is %s by %q:\n%s", kind, repairs.asked[0].Failure.Classification.Line, repairs.asked[0].Failure.Log)
	}
	baseline := cold.Receipt.Baseline
	if baseline == nil || baseline.ExitCode == 0 || !slices.Equal(baseline.Failing, project.failing) {
		t.Errorf("the baseline is %+v", baseline)
	}
	repaired := project.plan
	repaired.SetupCommands = project.repair.SetupCommands
	good := runForReal(t, setup, project, repaired, false)
	key := good.Result.SetupResult.SnapshotKey
	if cold.Result.SetupResult.SnapshotKey != "" || key == "" {
		t.Fatalf("snapshots: %q after a repair, %q without: %v", cold.Result.SetupResult.SnapshotKey, key, good.Result.Warnings)
	}
	t.Cleanup(func() {
		if err := engine.RemoveSnapshot(context.WithoutCancel(t.Context()), key); err != nil {
			t.Error(err)
		}
	})
	warm := runForReal(t, setup, project, repaired, false)
	if warm.Result.OverallStatus != environment.Succeeded || warm.Result.SetupResult.FromSnapshot != key || len(warm.Result.SetupResult.Commands) != 0 {
		t.Errorf("from the snapshot: %+v", warm.Result)
	}
	t.Logf("cold %d ms, warm %d ms", good.Result.SetupResult.Milliseconds, warm.Result.SetupResult.Milliseconds)
}

func realSetup(engine sandbox.Engine) *environment.Setup {
	// Projects have what Go has compiled with them: see compiledGo.
	table, err := environment.BuiltIn().With([]byte("- {name: go, toolchain: {run: []}}"))
	if err != nil {
		panic(err) // the line above is broken
	}
	return &environment.Setup{Table: table, Engine: engine, Log: slog.New(slog.DiscardHandler), Snapshots: 10 << 30,
		Wait:         func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		SetupNetwork: sandbox.Registries, CommandTimeout: 5 * time.Minute}
}

func runForReal(t testing.TB, setup *environment.Setup, project realProject, plan environment.Selection, baseline bool) environment.Outcome {
	t.Helper()
	workspace := t.TempDir()
	request := environment.Request{Plan: plan, Baseline: baseline, Source: environment.Source{Project: t.Name()},
		Spec: sandbox.Spec{Owner: "real", Image: os.Getenv("TORYO_TEST_DOCKER_IMAGE"), Workspace: workspace, Env: variables},
		Clone: func(ctx context.Context, dir string) error {
			for name, content := range project.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
					return err
				}
			}
			if project.manifest == "go.mod" {
				if err := copyCompiled(ctx, filepath.Join(dir, goCache)); err != nil {
					return err
				}
			}
			return writeWheel(filepath.Join(dir, "wheels"))
		}}
	outcome, err := setup.Run(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Sandbox == nil {
		t.Fatalf("no sandbox: %+v", outcome.Result)
	}
	t.Cleanup(func() {
		if err := workdir.Remove(workspace); err != nil {
			t.Error(err)
		}
	})
	if err := outcome.Sandbox.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return outcome
}

func copyCompiled(ctx context.Context, to string) error {
	from, err := compiledGo()
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	_, err = workdir.CopyTree(ctx, from, to, workdir.CopyOptions{})
	return err
}

// writeWheel makes a Python package, for there is no index to get one from.
func writeWheel(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := []struct{ name, content string }{
		{"hello_toryo.py", "word = 'hello'\n"},
		{"hello_toryo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello-toryo\nVersion: 1.0\n"},
		{"hello_toryo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: toryo\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	var archive bytes.Buffer
	var record strings.Builder
	writer := zip.NewWriter(&archive)
	add := func(name, content string) error {
		file, err := writer.Create(name)
		if err == nil {
			_, err = file.Write([]byte(content))
		}
		return err
	}
	for _, file := range files {
		if err := add(file.name, file.content); err != nil {
			return err
		}
		digest := sha256.Sum256([]byte(file.content))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", file.name, base64.RawURLEncoding.EncodeToString(digest[:]), len(file.content))
	}
	if err := add("hello_toryo-1.0.dist-info/RECORD", record.String()+"hello_toryo-1.0.dist-info/RECORD,,\n"); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "hello_toryo-1.0-py3-none-any.whl"), archive.Bytes(), 0o644)
}
