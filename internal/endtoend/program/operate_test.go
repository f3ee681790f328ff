package program

import (
	"bufio"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// Tasks are steered from the command line, through the server that runs.
func TestSteeringFromTheCommandLine(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "sqlite")
	server := here.start(t, "serve")
	defer server.stop(t)
	database, err := sqlite.Open(t.Context(), filepath.Join(here.data, site.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	made, _, err := database.Assign(t.Context(), store.NewTask{
		Key:  task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 1},
		Type: task.Development, Title: "Fix the gate", Reason: task.ReasonAssigned,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := string(made.ID)

	follow := here.command(t, "tasks", "logs", id, "--follow")
	stdout, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	first := ""
	for !strings.Contains(first, "  state    ") && lines.Scan() {
		first = lines.Text()
	}
	if !strings.Contains(first, "queued: the bot was assigned") {
		t.Fatalf("the journal begins with %q", first)
	}
	for _, c := range []struct{ args, want string }{
		{"pause " + id, "is paused: a person paused it"},
		{"resume " + id, "is queued: it was resumed"},
		{"pause --all", "everything is paused by operator"},
		{"resume --all", "everything is running: there is no global pause"},
		{"tasks stop " + id, "is stopped: a person stopped it"},
		{"tasks retry " + id, "is queued: a person retried it"},
		{"tasks logs " + id, "queued → stopped: a person stopped it"},
		{"tasks logs --json " + id, `"trigger":"withdrawn"`},
	} {
		if said := here.output(t, strings.Fields(c.args)...); !strings.Contains(said, c.want) {
			t.Errorf("toryo %s says %q, want %q", c.args, said, c.want)
		}
	}
	var all []string
	for lines.Scan() {
		all = append(all, lines.Text())
	}
	if err := follow.Wait(); err != nil || !strings.Contains(strings.Join(all, "\n"), "queued → stopped: a person stopped it\n\n") {
		t.Errorf("following ends with %v after %q", err, all)
	}
	tokens, err := database.ListTokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if token.Name == "command line" {
			t.Error("the command line has put a token into the database")
		}
	}
}
