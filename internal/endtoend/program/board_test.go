package program

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/wire"
)

// The commands work while a server runs, and several at the same time.
func TestBoardBesideAServer(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"sqlite", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			here := newPlace(t, driver)
			source := t.TempDir()
			for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "Begin"}} {
				git := exec.CommandContext(t.Context(), "git", args...)
				git.Dir = source
				git.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
					"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
				if said, err := git.CombinedOutput(); err != nil {
					t.Fatalf("git %s: %v\n%s", args, err, said)
				}
			}
			server := here.start(t, "serve")
			here.output(t, "board", "import", source, "--name", "team/app")
			here.output(t, "board", "user", "add", "alice", "--access", "write")
			here.output(t, "board", "issue", "create", "--repo", "team/app", "--title", "Fix the gate", "--as", "alice")
			const many = 6
			var group sync.WaitGroup
			for i := range many {
				group.Go(func() {
					said, err := here.command(t, "board", "issue", "comment", "team/app#1", "--as", "alice", "--body", fmt.Sprint(i)).CombinedOutput()
					if err != nil {
						t.Errorf("comment %d: %v, %s", i, err, said)
					}
				})
			}
			group.Wait()
			var details wire.BoardDetails
			if err := json.Unmarshal([]byte(here.output(t, "board", "issue", "show", "team/app#1", "--as", "alice", "--json")), &details); err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, comment := range details.Comments {
				seen[comment.Body] = true
			}
			if len(details.Comments) != many || len(seen) != many {
				t.Errorf("the comments are %+v", details.Comments)
			}
			// The server shows the same.
			token := strings.TrimSpace(here.output(t, "token", "create", "--role", "viewer", "--name", "vera"))
			if served := fetchDetails(t, server.url+"/api/board/repositories/team/app/issues/1", token); !reflect.DeepEqual(served, details) {
				t.Errorf("the server shows %+v, want %+v", served, details)
			}
			server.stop(t)
		})
	}
}

func fetchDetails(t *testing.T, address, token string) (details wire.BoardDetails) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := new(http.Client).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if err := json.NewDecoder(answer.Body).Decode(&details); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s, %v", address, answer.Status, err)
	}
	return details
}
