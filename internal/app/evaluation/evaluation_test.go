package evaluation

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// A model that is named does everything, and a key goes to nobody else than it was given for.
func TestModelsByName(t *testing.T) {
	t.Parallel()
	c := config.Config{LLM: config.LLM{Provider: "anthropic", Model: "large", APIKey: "key-of-large", Prices: config.Prices{Input: 3}}, LLMOverrides: map[string]config.ModelOverride{
		"small": {Model: "small"}, "planning": {Model: "planner"},
	}}
	for name, want := range map[string]config.LLM{
		"small":           {Provider: "anthropic", Model: "small", APIKey: "key-of-large"},
		"anthropic:other": {Provider: "anthropic", Model: "other", APIKey: "key-of-large"},
		"openai:o:1":      {Provider: "openai", Model: "o:1"},
	} {
		made, err := withModel(c, name)
		is := made.ModelFor("", string(task.Planning))
		if err != nil || is.Provider != want.Provider || is.Model != want.Model || is.APIKey != want.APIKey || is.Prices != want.Prices {
			t.Errorf("%s: %+v, %v", name, is, err)
		}
	}
	for _, name := range []string{"unknown", "openai:", ":x"} {
		if _, err := withModel(c, name); task.CodeOf(err) != task.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := Options{Config: c, Models: []string{"small"}, Budget: 1}
	if _, err := o.models(); err == nil || !strings.Contains(err.Error(), "no prices of the model small") {
		t.Errorf("a budget without prices: %v", err)
	}
	priced := c
	priced.LLMOverrides = map[string]config.ModelOverride{"planning": {Model: "planner"}}
	o = Options{Config: priced, Budget: 1}
	if _, err := o.models(); err == nil || !strings.Contains(err.Error(), "for planning") {
		t.Errorf("a budget without prices of a phase: %v", err)
	}
	o = Options{Config: c, Models: []string{"small", "small"}}
	if _, err := o.models(); task.CodeOf(err) != task.Usage {
		t.Errorf("the same model twice: %v", err)
	}
}

// A fallback answers for no model of an evaluation: it would get the results of another one, and
// its key would go to another provider.
func TestNoFallback(t *testing.T) {
	t.Parallel()
	c := config.Config{LLM: config.LLM{Provider: "anthropic", Model: "large", APIKey: "first", Prices: config.Prices{Input: 3}, Fallback: config.ModelOverride{APIKey: "second"}},
		LLMOverrides: map[string]config.ModelOverride{"small": {Provider: "openai", Model: "small", APIKey: "third"}}, VendorKeys: map[string]redact.Secret{"openai": "fourth"}}
	for _, o := range []Options{{}, {Models: []string{"openai:x", "small"}}, {Play: PlayGold}} {
		o.Config = c
		models, err := o.models()
		if err != nil || len(models) == 0 {
			t.Fatal(err)
		}
		for _, model := range models {
			if second, has := model.config.FallbackFor(string(task.Planning)); has {
				t.Errorf("%s has a fallback at %s with the key %s", model.name, second.Provider, second.APIKey.Reveal())
			}
		}
	}
}

// Another key is the same evaluation, another setting is not.
func TestPlans(t *testing.T) {
	t.Parallel()
	hash := func(change func(*config.Config)) string {
		c := config.Default()
		c.LLMOverrides = map[string]config.ModelOverride{"m": {Model: "m"}}
		change(&c)
		o := Options{Config: c, Models: []string{"m"}, OnlyCheck: true}
		models, err := o.models()
		if err != nil {
			t.Fatal(err)
		}
		plan, err := o.plan(models)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Models["m"]
	}
	prompts := t.TempDir()
	withPrompt := func(text string) string {
		if err := os.WriteFile(filepath.Join(prompts, "planning.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return hash(func(c *config.Config) { c.PromptsDir = prompts })
	}
	if withPrompt("one") == withPrompt("two") {
		t.Error("another prompt is the same evaluation")
	}
	first := hash(func(*config.Config) {})
	for name, change := range map[string]func(*config.Config){
		"key":        func(c *config.Config) { c.LLM.APIKey, c.LLM.APIKeyFile = "x", "y" },
		"MCP server": func(c *config.Config) { c.MCPServers = map[string]config.MCPServer{"x": {URL: "http://127.0.0.1:1"}} },
		"network":    func(c *config.Config) { c.Sandbox.Network.Execution = "open" }, // it is never used
		"set-up":     func(c *config.Config) { c.Sandbox.Network.Setup = "open" },     // the same
		"fallback":   func(c *config.Config) { c.LLM.Fallback = config.ModelOverride{APIKeyFile: "y"} },
		"shell":      func(c *config.Config) { c.CloudVariables = &config.CloudVariables{"AWS_SESSION_TOKEN": "x"} },
	} {
		if hash(change) != first {
			t.Errorf("another %s is another evaluation", name)
		}
	}
	for name, change := range map[string]func(*config.Config){
		"model":   func(c *config.Config) { c.LLMOverrides["m"] = config.ModelOverride{Model: "x"} },
		"sandbox": func(c *config.Config) { c.Sandbox.PIDs++ },
		"budget":  func(c *config.Config) { c.Budget.TaskTokens = 1 },
	} {
		if hash(change) == first {
			t.Errorf("another %s is the same evaluation", name)
		}
	}
}

// A folder that no evaluation has made is left alone, and in one of ours only ours is removed.
func TestFolders(t *testing.T) {
	t.Parallel()
	theirs := t.TempDir()
	notes := filepath.Join(theirs, "work", "notes.txt")
	if err := os.MkdirAll(filepath.Dir(notes), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(notes, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(theirs); task.CodeOf(err) != task.Conflict {
		t.Errorf("a folder with other things: %v", err)
	}
	if entries, err := os.ReadDir(theirs); err != nil || len(entries) != 1 {
		t.Errorf("it has %d entries: %v", len(entries), err)
	}
	ours := filepath.Join(t.TempDir(), "out")
	folder, err := Open(ours)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ours); task.CodeOf(err) != task.Conflict {
		t.Errorf("twice at a time: %v", err)
	}
	first, err := folder.Work()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(first, "x"), filepath.Join(ours, "work")} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if folder, err = Open(ours); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	if _, err := folder.Work(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("work of a process that was killed is still there: %v", err)
	}
	if err := eval.Folder(ours).Begin(eval.Plan{Models: map[string]string{"m": "1"}}, true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(ours, "work")); err != nil {
		t.Errorf("a file that is not ours: %v", err)
	}
}

// Landlock shows files and processes of this machine.
func TestWeakSandboxesAreRefused(t *testing.T) {
	t.Parallel()
	o := Options{Config: config.Default(), Log: slog.New(slog.DiscardHandler), Program: site.Program{Now: time.Now}}
	o.Config.DataDir, o.Config.Sandbox.Kind = t.TempDir(), "landlock"
	want := "is too weak for tasks of others"
	if _, err := site.LandlockVersion(); err != nil {
		want = err.Error() // a kernel that does not have it
	}
	if engine, err := o.engine(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, %v; want %q", engine, err, want)
	}
}

// Commands of set-up that the check did not have are told of, and so is each call's cost.
func TestWhatIsWatched(t *testing.T) {
	t.Parallel()
	receipt := environment.Receipt{SetupCommands: []string{"go mod download"}}
	var spent llm.Money
	job := eval.Job{Receipt: receipt, Spent: func(cost llm.Money) error { spent += cost; return nil }}
	for command, want := range map[string][]string{
		"go mod download":                          nil,
		"go mod download example.com/app@v1.6.0":   {eval.FlagSetup},
		"pip download app && curl https://app.org": {eval.FlagSetup, eval.FlagNetwork},
	} {
		seen := &watched{job: job}
		entry := phase.Entry{Setup: &phase.SetupEntry{Receipt: receipt}, Usage: &phase.Usage{Cost: llm.Unit}}
		entry.Setup.Result.SetupResult.Commands = []environment.CommandRun{{Command: command}}
		if err := seen.Append(context.Background(), "", entry); err != nil {
			t.Fatal(err)
		}
		if flags := seen.worked().Flags; !slices.Equal(flags, want) {
			t.Errorf("%s: %q", command, flags)
		}
	}
	if spent != 3*llm.Unit {
		t.Errorf("%s were spent", spent)
	}
}

// About half of the tasks are played right, always the same ones.
func TestHalf(t *testing.T) {
	t.Parallel()
	right := 0
	for i := range 1000 {
		id := "owner__name-" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("1", i/26)
		if playsGold(PlayHalf, id) {
			right++
		}
		if !playsGold(PlayGold, id) || playsGold(PlayNonsense, id) {
			t.Fatal(id)
		}
	}
	if right < 400 || right > 600 {
		t.Errorf("%d of 1000 are played right", right)
	}
}

// What was paid for is forgotten only when something else can be made.
func TestFreshWithoutAnEngine(t *testing.T) {
	t.Parallel()
	out, err := Open(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	if err := eval.Folder(out.path).Keep(eval.Attempt{Task: "a", Model: "m", Number: 1}); err != nil {
		t.Fatal(err)
	}
	o := Options{Config: config.Default(), Log: slog.New(slog.DiscardHandler), Program: site.Program{Now: time.Now}, Play: PlayGold, Out: out, Fresh: true}
	o.Set.Tasks = []taskset.Task{{ID: "a", Container: &taskset.Container{}}}
	o.Config.DataDir, o.Config.Sandbox.ContainerEngine = t.TempDir(), "unix://"+filepath.Join(t.TempDir(), "none.sock")
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "Docker Engine") {
		t.Errorf("without an engine: %v", err)
	}
	if _, found, err := eval.Folder(out.path).Attempt("m", "a", 1); err != nil || !found {
		t.Errorf("the attempt is there: %v, %v", found, err)
	}
}

// What the model does for a task of others reaches registries at most, and for a task folder nothing.
func TestNetworksOfWork(t *testing.T) {
	t.Parallel()
	for _, setup := range []string{"none", "registries", "open"} {
		c := config.Default()
		c.Sandbox.Network.Setup, c.Sandbox.Network.Execution = setup, "open"
		rows, folder := confined(c, taskset.Task{}).Sandbox.Network, confined(c, taskset.Task{Container: &taskset.Container{Network: true}}).Sandbox.Network
		if rows.Execution != "none" || rows.Setup == "open" || setup == "none" && rows.Setup != "none" {
			t.Errorf("rows with %s: %+v", setup, rows)
		}
		if folder.Execution != "none" || folder.Setup != "none" {
			t.Errorf("a task folder with %s: %+v", setup, folder)
		}
	}
}
