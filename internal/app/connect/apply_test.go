package connect_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgesetup"
)

const (
	bot   = "toryo-bot"
	token = "t0k3n-t0k3n-t0k3n"
)

// installation is one that is being connected.
type installation struct {
	*testing.T
	folder string
	forge  *forgesetup.Forge
	addr   string
	steps  []connect.Step
	used   bool
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	port, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	h := &installation{T: t, folder: t.TempDir(), forge: forgesetup.New(bot, "team/app", "team/web"), addr: fmt.Sprint("127.0.0.1:", port)}
	h.forge.Token = token
	return h
}

func (h *installation) file() string { return filepath.Join(h.folder, "toryo.yaml") }

func (h *installation) installer() *connect.Installer {
	h.steps = nil
	return &connect.Installer{
		ConfigFile: h.file(), DataDir: filepath.Join(h.folder, "data"),
		Open:    func(target connect.Target) (connect.Forge, error) { return h.forge.As(target.Token.Reveal()), nil },
		Receive: connect.ListenAt(h.addr, "", ""), Wait: 10 * time.Second,
		Used:   func(context.Context, task.Forge, string) (bool, error) { return h.used, nil },
		Random: strings.NewReader(strings.Repeat("0123456789abcdef", 100)),
		Report: func(step connect.Step) { h.steps = append(h.steps, step) },
	}
}

func (h *installation) answers() connect.Answers {
	return connect.Answers{
		Forge: task.Gitea, URL: "http://127.0.0.1:3000", Token: connect.Secret{Value: token}, Repositories: []string{"team/app", "team/web"}, Owner: "team", Bot: bot,
		Sandbox: "auto", Model: connect.Model{Provider: "anthropic", Name: "some-model", Key: connect.Secret{Value: "k3y-k3y-k3y"}},
		Webhook: true, HookBase: "http://" + h.addr, PublicURL: "http://" + h.addr,
	}
}

func (h *installation) apply() {
	h.Helper()
	if err := h.installer().Apply(h.Context(), h.answers()); err != nil {
		h.Fatal(err)
	}
}

// content is every file of the installation, with its mode.
func (h *installation) content() map[string]string {
	h.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(h.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(h.folder, path)
		all[name] = info.Mode().String()
		if !entry.IsDir() && err == nil {
			var text []byte
			text, err = os.ReadFile(path)
			all[name] += "\n" + string(text)
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	delete(all, ".")
	return all
}

func (h *installation) wantStep(what string, state connect.StepState, detail string) {
	h.Helper()
	for _, step := range h.steps {
		if strings.Contains(step.What, what) && step.State == state && strings.Contains(step.Detail, detail) {
			return
		}
	}
	h.Errorf("no step %q is %s with %q: %+v", what, state, detail, h.steps)
}

func TestApplyWritesEverything(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	c, report := config.Load(h.file(), nil, nil)
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	if len(report.Warnings) != 1 || report.Warnings[0].Key != "llm.model" { // nothing is known of the model of the test
		t.Errorf("warnings: %v", report.Warnings)
	}
	if c.Gitea.Token.Reveal() != token || c.Gitea.Owner != "team" || c.Gitea.BotName != bot || c.LLM.APIKey.Reveal() != "k3y-k3y-k3y" || len(c.Gitea.WebhookSecret.Reveal()) != 64 {
		t.Errorf("the configuration says %+v", c.Gitea)
	}
	all := h.content()
	for name, text := range all {
		secret := strings.HasPrefix(name, filepath.Join("data", "secrets"))
		if strings.Contains(text, token) && !secret {
			t.Errorf("the token is in %s", name)
		}
		if secret && !strings.HasPrefix(text, "-rw-------") && !strings.HasPrefix(text, "drwx------") {
			t.Errorf("others can read %s: %s", name, text[:10])
		}
	}
	for _, repository := range []string{"team/app", "team/web"} {
		if got := h.forge.HookURLs(repository); len(got) != 1 || got[0] != "http://"+h.addr+"/webhooks/gitea" {
			t.Errorf("%s has the webhooks %v", repository, got)
		}
		labels, err := h.forge.As(token).Labels(t.Context(), repository)
		if err != nil || len(labels) != 7 || !slices.Contains(labels, "coding agent processing") || !slices.Contains(labels, "needs-review") {
			t.Errorf("%s has the labels %v, %v", repository, labels, err)
		}
	}
	h.wantStep("delivery", connect.Done, "arrived")
}

// A second run with the same answers writes nothing: no file, and nothing on the forge.
func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	before, written := h.content(), len(h.forge.Written())
	h.apply()
	if diff := cmp.Diff(before, h.content()); diff != "" {
		t.Error(diff)
	}
	if more := h.forge.Written()[written:]; len(more) > 0 {
		t.Errorf("the second run wrote %v", more)
	}
	for _, step := range h.steps {
		if step.State != connect.Unchanged {
			t.Errorf("a step of the second run: %+v", step)
		}
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	dry := h.installer()
	dry.DryRun = true
	if err := dry.Apply(t.Context(), h.answers()); err != nil {
		t.Fatal(err)
	}
	if len(h.content()) > 0 || len(h.forge.Written()) > 0 {
		t.Errorf("a dry run wrote %v and %v", h.content(), h.forge.Written())
	}
	h.wantStep("toryo.yaml", connect.Planned, "")
	h.wantStep("webhook of team/app", connect.Planned, "")
}

// Remove leaves what was before: the same bytes in a file that was there, no file that was
// not, and nothing on the forge.
func TestRemoveLeavesWhatWasBefore(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"no file": "", "the template": string(config.Template()), "a file": "# mine\nlog:\n  level: warn # quiet\n\nllm:\n  provider: 'openai'\n  model: old\n  base_url: http://127.0.0.1:1/v1\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			if before != "" {
				if err := os.WriteFile(h.file(), []byte(before), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			h.apply()
			if err := h.installer().Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"data": "drwx------"}
			if before != "" {
				want["toryo.yaml"] = "-rw-r-----\n" + before
			}
			if diff := cmp.Diff(want, h.content()); diff != "" {
				t.Error(diff)
			}
			labels, err := h.forge.As(token).Labels(t.Context(), "team/app")
			if got := h.forge.HookURLs("team/app"); err != nil || len(got)+len(labels) > 0 {
				t.Errorf("left on the forge: %v, %v, %v", got, labels, err)
			}
		})
	}
}

// What people have changed since, and labels that are in use, stay.
func TestRemoveLeavesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	if _, err := h.forge.As(token).CreateLabel(t.Context(), "team/app", forge.Label{Name: "coding agent"}); err != nil {
		t.Fatal(err)
	}
	h.apply()
	key := h.forge.AddItem("team/app", task.Issue, "ann", "Repair the roof")
	h.forge.Label(key, "ann", "coding agent done", true)
	text, err := os.ReadFile(h.file())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.file(), []byte(strings.ReplaceAll(string(text), "some-model", "another-model")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.installer().Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	labels, err := h.forge.As(token).Labels(t.Context(), "team/app")
	if err != nil || !slices.Equal(labels, []string{"coding agent", "coding agent done"}) {
		t.Errorf("the labels are %v, %v", labels, err)
	}
	if text, err = os.ReadFile(h.file()); err != nil || !strings.Contains(string(text), "another-model") || strings.Contains(string(text), "gitea") {
		t.Errorf("the file says %s, %v", text, err)
	}
	h.wantStep("llm.model", connect.LeftOut, "changed since")
	h.wantStep("coding agent done", connect.LeftOut, "it is on gitea:team/app#1")
}

// Where tasks were done, closed issues may have the labels.
func TestRemoveKeepsLabelsOfTasks(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	h.used = true
	if err := h.installer().Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	labels, err := h.forge.As(token).Labels(t.Context(), "team/app")
	if err != nil || len(labels) != 7 {
		t.Errorf("the labels are %v, %v", labels, err)
	}
}

// A label that the forge has refused to create is not ours, whoever creates it later.
func TestRemoveLeavesLabelsThatWereRefused(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.forge.Missing[forge.LabelItems] = true
	h.apply()
	h.wantStep("labels of team/app", connect.LeftOut, "created when they are needed")
	h.forge.Missing[forge.LabelItems] = false
	if _, err := h.forge.As(token).CreateLabel(t.Context(), "team/app", forge.Label{Name: "coding agent"}); err != nil {
		t.Fatal(err)
	}
	if err := h.installer().Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if labels, err := h.forge.As(token).Labels(t.Context(), "team/app"); err != nil || len(labels) != 1 {
		t.Errorf("the labels are %v, %v", labels, err)
	}
}

// Killed after any write to the forge, with or without the answer, the next run goes on:
// nothing is there twice, and Remove still takes everything away.
func TestApplyIsKilledAnywhere(t *testing.T) {
	t.Parallel()
	whole := newInstallation(t)
	whole.apply()
	for at := range len(whole.forge.Written()) {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			ctx, kill := context.WithCancel(t.Context())
			h.forge.After = func(number int, _ string) error {
				if number == at+1 {
					kill()
					return task.Wrap(task.Unavailable, context.Canceled, "killed")
				}
				return nil
			}
			if err := h.installer().Apply(ctx, h.answers()); err == nil {
				t.Fatal("it was not killed")
			}
			h.forge.After = nil
			h.apply()
			for _, repository := range []string{"team/app", "team/web"} {
				labels, err := h.forge.As(token).Labels(t.Context(), repository)
				if hooks := h.forge.HookURLs(repository); err != nil || len(labels) != 7 || len(hooks) != 1 {
					t.Errorf("%s has %v and %v, %v", repository, labels, hooks, err)
				}
			}
			if got, want := len(h.forge.Written()), len(whole.forge.Written()); got != want {
				t.Errorf("there were %d writes, want %d: %v", got, want, h.forge.Written())
			}
			if err := h.installer().Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"data": "drwx------"}, h.content()); diff != "" {
				t.Error(diff)
			}
			if left := h.forge.HookURLs("team/app"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// Killed between any two steps on this machine, the next run comes to the same files.
func TestApplyIsKilledBetweenFiles(t *testing.T) {
	t.Parallel()
	for at := range 4 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			killed := h.installer()
			report, count := killed.Report, 0
			killed.Report = func(step connect.Step) {
				if count++; count > at {
					panic(errKilled)
				}
				report(step)
			}
			func() {
				defer func() {
					if recover() != errKilled { //nolint:errorlint // it is what was panicked with
						t.Error("it was not killed")
					}
				}()
				_ = killed.Apply(t.Context(), h.answers())
			}()
			h.apply()
			if err := h.installer().Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"data": "drwx------"}, h.content()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var errKilled = errors.New("killed")

// A webhook that does not arrive is taken away again, and the reason says what to do.
func TestAWebhookThatDoesNotArrive(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.forge.Silent = true
	impatient := h.installer()
	impatient.Wait = time.Millisecond
	if err := impatient.Apply(t.Context(), h.answers()); err != nil {
		t.Fatal(err)
	}
	if left := h.forge.HookURLs("team/app"); len(left) > 0 {
		t.Errorf("the webhook stays: %v", left)
	}
	h.wantStep("delivery", connect.LeftOut, "ALLOWED_HOST_LIST = external,127.0.0.1 ")
	h.wantStep("delivery", connect.LeftOut, "polling")
}

// Where the server listens for its own machine only, that is what is said first: no setting of a
// forge helps there.
func TestAWebhookToAServerThatListensAlone(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.forge.Silent = true
	impatient := h.installer()
	impatient.Wait, impatient.Addr = time.Millisecond, h.addr
	answers := h.answers()
	answers.HookBase, answers.PublicURL = "http://192.0.2.2:33750", "http://192.0.2.2:33750"
	if err := impatient.Apply(t.Context(), answers); err != nil {
		t.Fatal(err)
	}
	h.wantStep("delivery", connect.LeftOut, "; the server listens on "+h.addr+" only, which no other machine reaches: let a reverse proxy pass http://192.0.2.2:33750 on to it")
	for _, other := range []struct{ addr, public string }{
		{"127.0.0.1:1", "http://127.0.0.1:1"}, {":1", "http://192.0.2.2:1"}, {"0.0.0.0:1", "http://192.0.2.2:1"}, {"192.0.2.2:1", "http://192.0.2.2:1"}, {"[::1]:1", "http://localhost:1"},
	} {
		if said := connect.ListensAlone(other.addr, other.public); said != "" {
			t.Errorf("of %+v it says %q", other, said)
		}
	}
	for _, addr := range []string{"localhost:1", "[::1]:1"} {
		if connect.ListensAlone(addr, "https://toryo.example.com") == "" {
			t.Errorf("nothing is said of %s", addr)
		}
	}
}

func TestNoRightToCreateWebhooks(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.forge.Missing[forge.ManageHooks] = true
	h.apply()
	h.wantStep("webhook of team/app", connect.LeftOut, "polling")
	if err := h.installer().Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A webhook of ours whose secret is lost gets a new one, and is still one.
func TestALostSecretOfWebhooks(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	if err := os.Remove(filepath.Join(h.folder, "data", "secrets", "gitea-webhook-secret")); err != nil {
		t.Fatal(err)
	}
	again := h.installer()
	again.Random = strings.NewReader(strings.Repeat("another secret, ", 100))
	if err := again.Apply(t.Context(), h.answers()); err != nil {
		t.Fatal(err)
	}
	if got := h.forge.HookURLs("team/app"); len(got) != 1 {
		t.Errorf("the webhooks are %v", got)
	}
	h.wantStep("webhook of team/app corrected", connect.Done, "")
	h.wantStep("delivery", connect.Done, "arrived")
}

// A key in the environment is not written down, and the file of an earlier one is forgotten.
func TestAKeyThatMovesToTheEnvironment(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	answers := h.answers()
	answers.Model = connect.Model{Provider: "openai", Name: "m", Key: connect.Secret{Value: redact.Secret("other-k3y"), Variable: "OPENAI_API_KEY"}}
	if err := h.installer().Apply(t.Context(), answers); err != nil {
		t.Fatal(err)
	}
	c, report := config.Load(h.file(), []string{"OPENAI_API_KEY=other-k3y"}, nil)
	if report.Err() != nil || c.LLM.APIKeyFile != "" || c.LLM.APIKey.Reveal() != "other-k3y" {
		t.Errorf("the key is that of %q, %v", c.LLM.APIKeyFile, report.Err())
	}
}

// What would not be a valid configuration is refused before anything is written.
func TestApplyRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	answers := h.answers()
	answers.Owner = "team/app"
	err := h.installer().Apply(t.Context(), answers)
	if err == nil || len(h.content()) > 0 || len(h.forge.Written()) > 0 {
		t.Errorf("%v; written: %v, %v", err, h.content(), h.forge.Written())
	}
}
