package program

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// A webhook is taken when the forge's secret is configured and the forge signed
// it with that, and not otherwise.
func TestServerTakesWebhooks(t *testing.T) {
	t.Parallel()
	const secret, body = "a secret of webhooks", `{"repository":{"full_name":"team/app"}}`
	here := newPlace(t, "sqlite")
	here.environ = append(here.environ, "TORYO_GITEA_URL=http://127.0.0.1:1", "TORYO_GITEA_OWNER=team", "TORYO_GITEA_BOT_NAME=bot",
		"TORYO_GITEA_TOKEN=a token of Gitea", "TORYO_GITEA_WEBHOOK_SECRET="+secret)
	server := here.start(t, "serve")
	defer server.stop(t)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	for _, c := range []struct {
		path, signature string
		want            int
	}{
		{"/webhooks/gitea", hex.EncodeToString(mac.Sum(nil)), http.StatusNoContent},
		{"/webhooks/gitea", strings.Repeat("0", 64), http.StatusUnauthorized},
		{"/webhooks/gitea", "", http.StatusUnauthorized},
		{"/webhooks/github", hex.EncodeToString(mac.Sum(nil)), http.StatusNotFound},
		{"/webhook/gitea", hex.EncodeToString(mac.Sum(nil)), http.StatusNotFound},
		{"/gitea", hex.EncodeToString(mac.Sum(nil)), http.StatusNotFound},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.url+c.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Gitea-Event", "push")
		request.Header.Set("X-Gitea-Delivery", "0199")
		request.Header.Set("X-Gitea-Signature", c.signature)
		answer, err := new(http.Client).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != c.want {
			t.Errorf("a webhook to %s signed %q is answered %s, want %d: %v", c.path, c.signature, answer.Status, c.want, err)
		}
		if c.want != http.StatusNoContent && answer.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("a webhook to %s signed %q is answered with %s", c.path, c.signature, said)
		}
		if c.want == http.StatusNotFound && c.path != "/webhooks/github" && !strings.Contains(string(said), "/webhooks/gitea") {
			t.Errorf("the answer to a webhook to %s does not name the right path: %s", c.path, said)
		}
	}
}

// Git is served to whoever holds the lease of a task, and to nobody else.
func TestServerServesGitToTheHolder(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "sqlite")
	server := here.start(t, "serve")
	defer server.stop(t)
	database, err := sqlite.Open(t.Context(), filepath.Join(here.data, site.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	queued, _, err := database.Assign(t.Context(), store.NewTask{
		Key:  task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 1},
		Type: task.Development, Reason: task.ReasonAssigned,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := access.NewLeaseToken(queued.ID, queued.Generation)
	_, err = database.Claim(t.Context(), []store.Claim{{
		Task: queued.ID, Generation: queued.Generation, Agent: "a", TokenHash: access.Hash(token), ExpiresAt: time.Now().Add(time.Hour),
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := func(token string) (string, error) {
		address := strings.Replace(server.url, "://", "://agent:"+token+"@", 1) + "/git/" + string(queued.ID) + ".git"
		command := exec.CommandContext(t.Context(), "git", "-c", "credential.helper=", "ls-remote", address)
		command.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		said, err := command.CombinedOutput()
		return string(said), err
	}
	if said, err := list(token); err != nil {
		t.Errorf("the holder gets %v\n%s", err, said)
	}
	if said, err := list(access.NewLeaseToken(queued.ID, queued.Generation)); err == nil {
		t.Errorf("someone else gets %s", said)
	}
	tokens := access.Tokens{Store: database, Now: time.Now}
	for role, may := range map[access.Role]bool{access.Viewer: true, access.Operator: true, access.Agent: false} {
		token, err := tokens.Create(t.Context(), role, "")
		if err != nil {
			t.Fatal(err)
		}
		if said, err := list(token); (err == nil) != may {
			t.Errorf("someone with the role %s gets %v\n%s", role, err, said)
		}
	}
}
