package doctor_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/task"
)

// withoutCommand is how findings begin, or what they have in them, that no command fixes: something
// elsewhere has to change, or a person has to decide.
var withoutCommand = []string{
	"does not answer at", "answers with status", "something answers at", "allows no more requests", "proxy", "GitHub App", " App ",
	"cannot be read", "did not arrive", "was answered with status", "none has arrived here", "the connection broke", "assign an App",
}

// wantCommands makes sure that each finding that is not well has a command, or is one of those that
// no command fixes.
func wantCommands(t *testing.T, findings ...doctor.Finding) {
	t.Helper()
	for _, finding := range findings {
		listed := slices.ContainsFunc(withoutCommand, func(part string) bool { return strings.Contains(finding.Found, part) })
		if finding.Status != doctor.OK && finding.Command == "" && !listed {
			t.Errorf("no command is named for %s: %s → %s", finding.Name, finding.Found, finding.Hint)
		}
	}
}

// Those of the forges are in [want].
func TestEachFindingHasItsCommand(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Gitea.URL, c.Gitea.Token, c.Gitea.BotName = "https://git.example.com", "t", "bot"
	refused := func(context.Context) (string, error) {
		return "", task.Errorf(task.Unauthorized, "the key is refused").WithHint("see the key")
	}
	none := func(context.Context) (string, error) { return "", task.Errorf(task.NotReady, "there is no sandbox") }
	model := config.LLM{Provider: "openai", Model: "m", APIKey: "k"}
	lacking := doctor.Finding{Name: "bubblewrap", Status: doctor.Warning, Command: "sudo apt-get install bubblewrap"}
	landlock := func(context.Context) (string, error) { return "landlock", nil }
	silent := func(context.Context) ([]items.WebhookReport, error) {
		return []items.WebhookReport{{Forge: task.Gitea, Repository: "team/app"}}, nil
	}
	for want, finding := range map[string]doctor.Finding{
		"toryo init --public-url URL":     doctor.Links(c, "http://127.0.0.1:8750"),
		"toryo init":                      doctor.Model(t.Context(), model, refused),
		"sudo apt-get install bubblewrap": doctor.Sandbox(t.Context(), "auto", none, lacking),
		"toryo init --sandbox auto":       doctor.Sandbox(t.Context(), "landlock", landlock),
		"toryo init ":                     doctor.Webhooks(t.Context(), silent, false)[0],
		"sudo apt-get install docker.io":  doctor.ContainerEngine("unix:///no/such/socket")(t.Context()),
		"toryo doctor --server URL":       doctor.Unnamed("agent-token"),
		"toryo init  ":                    doctor.Model(t.Context(), config.LLM{}, nil),
	} {
		wantCommands(t, finding)
		if finding.Command != strings.TrimSpace(want) {
			t.Errorf("%s: the command is %q, want %q", finding.Found, finding.Command, want)
		}
	}
	if agent := doctor.NeededBy(true, doctor.Model(t.Context(), model, refused)); agent.Command != "" {
		t.Errorf("on the machine of an agent the command is %q, which sets up a server", agent.Command)
	}
}

// Commands are for the installation that was looked at, and by root where only root writes it.
func TestCommandsForAnInstallation(t *testing.T) {
	t.Parallel()
	findings := []doctor.Finding{
		{Command: "toryo init"}, {Command: "toryo init --public-url URL"}, {Command: "toryo doctor --server URL"}, {Command: "sudo apt-get install git"}, {},
	}
	doctor.ForInstallation(findings, " --config /etc/toryo/toryo.yaml", true)
	want := []string{
		"sudo toryo init --config /etc/toryo/toryo.yaml", "sudo toryo init --public-url URL --config /etc/toryo/toryo.yaml",
		"toryo doctor --server URL --config /etc/toryo/toryo.yaml", "sudo apt-get install git", "",
	}
	for i, finding := range findings {
		if finding.Command != want[i] {
			t.Errorf("the command is %q, want %q", finding.Command, want[i])
		}
	}
}

// The setting is the one that the kernel has and that forbids namespaces.
func TestAllowNamespaces(t *testing.T) {
	t.Parallel()
	for want, has := range map[string][2]string{
		"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0": {"apparmor_restrict_unprivileged_userns", "1\n"},
		"sudo sysctl -w kernel.unprivileged_userns_clone=1":             {"unprivileged_userns_clone", "0\n"},
		"": {"unprivileged_userns_clone", "1\n"},
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, has[0]), []byte(has[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := doctor.AllowNamespaces(folder); got != want {
			t.Errorf("with %v the command is %q", has, got)
		}
	}
}
