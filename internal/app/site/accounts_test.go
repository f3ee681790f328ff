package site

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/task"
)

// What people write goes to the forge with their own token, as they wrote it, and whoever follows the
// item is told at once. A token that the forge refuses, and the bot's own, are refused here too.
func TestPeopleWriteWithTheirOwnToken(t *testing.T) {
	t.Parallel()
	var written []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		login := map[string]string{"token hers": "alice", "token bots": "toryo"}[r.Header.Get("Authorization")]
		switch {
		case r.URL.Path == "/api/v1/version":
			fmt.Fprint(w, `{"version":"1.24.0"}`)
		case login == "":
			http.Error(w, `{"message":"no"}`, http.StatusUnauthorized)
		case r.URL.Path == "/api/v1/user":
			fmt.Fprintf(w, `{"login":%q}`, login)
		case r.Method == http.MethodPost && r.URL.Path == "/api/v1/repos/team/app/issues/3/comments":
			var comment struct{ Body string }
			if err := json.NewDecoder(r.Body).Decode(&comment); err != nil {
				t.Error(err)
			}
			written = append(written, login+": "+comment.Body)
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":7,"user":{"login":"alice"},"body":"x"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	var c config.Config
	c.Gitea.URL = server.URL
	bot := dummy.New(task.Gitea, "toryo")
	snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.Gitea: bot}, items.DefaultAges, nil)
	t.Cleanup(snapshots.Stop)
	feed := items.NewFeed(snapshots)
	var told []task.Key
	t.Cleanup(feed.Subscribe(func(change items.Change) { told = append(told, change.Items...) }))
	people := accounts{c, map[task.Forge]forge.Forge{task.Gitea: bot}, feed}
	if login, err := people.LoginOf(t.Context(), task.Gitea, "hers"); err != nil || login != "alice" {
		t.Errorf("the token is of %q, %v", login, err)
	}
	for token, want := range map[string]task.Code{"wrong": task.Invalid, "bots": task.Forbidden} {
		if _, err := people.LoginOf(t.Context(), task.Gitea, token); task.CodeOf(err) != want {
			t.Errorf("the token %q: %v", token, err)
		}
	}
	if _, err := people.LoginOf(t.Context(), task.GitHub, "hers"); task.CodeOf(err) != task.Unsupported {
		t.Errorf("a forge that is not connected: %v", err)
	}
	key := task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: 3}
	if err := people.Comment(t.Context(), key, "hers", "Ask @bob, #12."); err != nil {
		t.Fatal(err)
	}
	if len(written) != 1 || written[0] != "alice: Ask @bob, #12." || len(told) != 1 || told[0] != key {
		t.Errorf("the forge has %q, and %v is told", written, told)
	}
	if err := people.Comment(t.Context(), key, "wrong", "x"); task.CodeOf(err) != task.Forbidden || len(written) != 1 {
		t.Errorf("a token that is not taken any more: %v", err)
	}
}
