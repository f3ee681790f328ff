package phasetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/mcp"
	"github.com/toryo-dev/toryo/internal/phase/turn"
	"github.com/toryo-dev/toryo/internal/sandbox"
)

// Setting is what a scenario changes about how its runs go. It can be sent to
// another process as JSON.
type Setting struct {
	Language string   `yaml:"language"`
	Every    int      `yaml:"check_interval"`
	Limits   Limits   `yaml:"limits"`
	Servers  []Server `yaml:"mcp_servers"`
	Compiled bool     `yaml:"compiled"` // Go finds its standard library compiled
	Waits    bool     `yaml:"waits"`    // set-up waits before it tries again, as it does for people
	Image    string   `yaml:"-"`        // of containers, where there are some
}

// Limits are those of [phase.Limits] that scenarios change.
type Limits struct {
	Reflections  int `yaml:"reflections"`
	ReflectEvery int `yaml:"reflect_every"`
	ReflectAfter int `yaml:"reflect_after"`
	Repairs      int `yaml:"repairs"`
	Turns        int `yaml:"turns"`
}

// Server is an MCP server.
type Server struct {
	Name        string            `yaml:"name"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
}

// shell is an environment whose projects are shell scripts: its tests take no
// time worth speaking of.
const shell = `
- name: shell
  title: Shell scripts
  image: none
  markers: [test.sh]
  build: [test.sh]
  managers: [{name: sh, setup: [{run: "true"}], test: sh test.sh}]
  verify: [{command: "echo OK", expected_output: OK}]
`

// environments are what scenarios change in the table: besides the environment shell, what Go
// has compiled is copied and not compiled again, where this machine has it.
func environments(table *environment.Table) ([]byte, error) {
	folder, err := compiledFolder()
	if err != nil {
		return nil, err
	}
	entry, _ := table.Find("go")
	commands := slices.Clone(entry.Toolchain.Run)
	if len(commands) == 0 {
		return []byte(shell), nil
	}
	commands[0] = `mkdir -p "$(go env GOCACHE)" && cp -r ` + sandbox.Quote(folder) + `/. "$(go env GOCACHE)"`
	text, err := yaml.Marshal([]map[string]any{{"name": "go", "toolchain": environment.Toolchain{Run: commands}}})
	return append([]byte(shell), text...), err
}

// goCache is the folder in the workspace with what Go has compiled.
const goCache = ".go-cache"

// Apply changes the options of a run. Besides what the scenario asks for, there
// is the environment shell, set-up has no network, and its waits before it tries
// again take no time.
func (e Setting) Apply(options *phase.Options) error {
	own, err := environments(options.Setup.Table)
	if err != nil {
		return err
	}
	table, err := options.Setup.Table.With(own)
	if err != nil {
		return err
	}
	options.Setup.Table = table
	if !e.Waits {
		options.Setup.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	options.Setup.SetupNetwork = sandbox.NoNetwork
	options.Spec.Env = map[string]string{"CGO_ENABLED": "0", "GOCACHE": sandbox.WorkspacePath + "/" + goCache}
	options.Spec.Image = e.Image
	options.Language = e.Language
	options.Comments.Every = e.Every
	options.Limits = phase.Limits{
		Reflections: e.Limits.Reflections, ReflectEvery: e.Limits.ReflectEvery, ReflectAfter: e.Limits.ReflectAfter,
		Repairs: e.Limits.Repairs, Turn: turn.Limits{Turns: e.Limits.Turns},
	}
	options.Servers = nil
	for _, server := range e.Servers {
		options.Servers = append(options.Servers, mcp.Server{
			Name: server.Name, Command: server.Command, Environment: server.Environment, Timeout: 2 * time.Minute,
		})
	}
	return nil
}

// PrepareWorkspace puts what the scenario has ready into the workspace of a run, and into every
// folder to which the repository that it returns exports files: each has a sandbox of
// its own.
func (e Setting) PrepareWorkspace(ctx context.Context, repository phase.Repository) (phase.Repository, error) {
	if !e.Compiled {
		return repository, nil
	}
	if err := putCompiled(repository.Workspace()); err != nil {
		return nil, err
	}
	return preparedRepository{repository}, repository.Exclude(ctx, []string{goCache})
}

// preparedRepository exports files to folders that have what Go has compiled.
type preparedRepository struct{ phase.Repository }

func (f preparedRepository) Export(ctx context.Context, commit string) (phase.Export, error) {
	files, err := f.Repository.Export(ctx, commit)
	if err != nil {
		return nil, err
	}
	if err := putCompiled(files.Dir()); err != nil {
		return nil, errors.Join(err, files.Remove())
	}
	return files, nil
}

// putCompiled copies what Go has compiled, because the sandbox that gets it may write.
func putCompiled(to string) error {
	folder, err := compileOnce()
	if err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(to, goCache), os.DirFS(folder))
}

// compiledFolder is kept between runs. Sandboxes of the superuser belong to another user,
// who cannot read what is below the superuser's home.
func compiledFolder() (string, error) {
	caches := "/var/cache"
	if os.Getuid() != 0 {
		var err error
		if caches, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(caches, "toryo-test", "go-build-scenarios"), nil
}

// compileOnce fills the folder with what Go compiles of its standard library for the
// tests of a small project.
var compileOnce = sync.OnceValues(func() (string, error) {
	folder, err := compiledFolder()
	if err != nil {
		return "", err
	}
	project, err := os.MkdirTemp("", "compiled")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(project) }()
	for name, content := range map[string]string{
		"go.mod": "module example.com/double\n\ngo 1.24\n", "double_test.go": "package double\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	compile := exec.Command("go", "test", "-run=^$", ".")
	compile.Dir = project
	compile.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOTOOLCHAIN=local", "GOCACHE="+folder)
	if output, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return folder, nil
})
