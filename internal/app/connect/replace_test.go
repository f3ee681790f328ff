package connect_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/task"
)

const otherToken = "0ther-t0k3n-0ther"

// moved are the answers for another forge of the same sort.
func (h *installation) moved() connect.Answers {
	answers := h.answers()
	answers.URL, answers.Token = "http://127.0.0.2:3000", connect.Secret{Value: otherToken}
	return answers
}

// secrets are the files with secrets that are there.
func (h *installation) secrets() []string {
	h.Helper()
	entries, err := os.ReadDir(filepath.Join(h.folder, "data", "secrets"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != ".gitignore" {
			names = append(names, entry.Name())
		}
	}
	return names
}

const never = 1000

// killedAfter applies answers, and is killed after some steps.
func (h *installation) killedAfter(steps int, answers connect.Answers) {
	h.Helper()
	killed := h.installer()
	killed.Random = strings.NewReader(strings.Repeat("another secret, ", 100))
	report := killed.Report
	killed.Report = func(step connect.Step) {
		report(step)
		if len(h.steps) > steps {
			panic(errKilled)
		}
	}
	defer func() {
		if caught := recover(); caught != nil && caught != errKilled { //nolint:errorlint // it is what was panicked with
			panic(caught)
		}
	}()
	if err := killed.Apply(h.Context(), answers); err != nil {
		h.Fatal(err)
	}
}

// Killed at any step while another forge takes the place of one, the configuration has the
// address and the secrets of one of the two. The next run leaves no file of the former.
func TestASecretStaysWithItsAddress(t *testing.T) {
	t.Parallel()
	for at := range 8 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			h.apply()
			hooks := h.load().Gitea.WebhookSecret
			h.forge.Token = otherToken
			h.killedAfter(at, h.moved())
			for range 2 {
				c := h.load().Gitea
				before, after := c.URL == "http://127.0.0.1:3000", c.URL == "http://127.0.0.2:3000"
				if before != (c.Token == token) || after != (c.Token == otherToken) || before != (c.WebhookSecret == hooks) {
					t.Errorf("%s has the token %s, and the secret of the former is %t", c.URL, c.Token.Reveal(), c.WebhookSecret == hooks)
				}
				h.killedAfter(never, h.moved())
			}
			for name, text := range h.content() {
				if strings.Contains(text, token) || strings.Contains(text, hooks.Reveal()) {
					t.Errorf("a secret of the former is in %s", name)
				}
			}
			if got := h.secrets(); len(got) != 3 {
				t.Errorf("the secrets are %v", got)
			}
			if err := h.installer().Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := h.secrets(); len(got) > 0 {
				t.Errorf("left are %v", got)
			}
		})
	}
}

// Another forge gets another secret for its webhooks, and no such is sent to it that a variable
// has for the former.
func TestAnotherForgeGetsAnotherWebhookSecret(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.write("toryo.yaml", "gitea:\n  url: http://127.0.0.1:3000\n  owner: team\n  bot_name: toryo-bot\n")
	h.forge.Token = otherToken
	installer := h.installer()
	installer.Environ = []string{"TORYO_GITEA_WEBHOOK_SECRET=s3cr3t-s3cr3t"}
	if err := installer.Apply(t.Context(), h.moved()); task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), "TORYO_GITEA_WEBHOOK_SECRET") || len(h.forge.Written()) > 0 {
		t.Errorf("the error is %v, and written is %v", err, h.forge.Written())
	}
}

// A token that is replaced on the same forge leaves the secret of webhooks as it is.
func TestAnotherToken(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.apply()
	hooks := h.load().Gitea.WebhookSecret
	h.forge.Token = otherToken
	answers := h.answers()
	answers.Token.Value = otherToken
	if err := h.installer().Apply(t.Context(), answers); err != nil {
		t.Fatal(err)
	}
	if c := h.load().Gitea; c.Token != otherToken || c.WebhookSecret != hooks || len(h.secrets()) != 3 {
		t.Errorf("the configuration says %+v, and there are %v", c, h.secrets())
	}
}
