package program

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// named is an installation with tasks to name, and a server that runs on it.
type named struct {
	place
	server process
	tasks  map[string]task.Task // by item
}

func newNamed(t *testing.T) named {
	t.Helper()
	n := named{place: newPlace(t, "sqlite"), tasks: map[string]task.Task{}}
	n.server = n.start(t, "serve")
	database, err := sqlite.Open(t.Context(), filepath.Join(n.data, site.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	for _, want := range []store.NewTask{
		{Key: task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Issue, Number: 3}, Title: "Fix the gate", URL: "https://gitea.example.com/team/app/issues/3"},
		{Key: task.Key{Forge: task.GitLab, Repository: "team/app", Kind: task.Pull, Number: 4}, Title: "Paint it", URL: "https://gitlab.example.com/team/app/-/merge_requests/4"},
		{Key: task.Key{Forge: task.Board, Repository: "team/one", Kind: task.Issue, Number: 9}, Title: "One"},
		{Key: task.Key{Forge: task.Board, Repository: "team/two", Kind: task.Issue, Number: 9}, Title: "Two"},
	} {
		want.Type, want.Reason = task.Development, task.ReasonAssigned
		made, _, err := database.Assign(t.Context(), want, nil)
		if err != nil {
			t.Fatal(err)
		}
		n.tasks[made.Key.String()] = made
	}
	return n
}

// waysTo are all the ways to name the task of an issue on Gitea.
func (n named) waysTo(of task.Task) []string {
	return []string{
		"gitea:team/app#3", "team/app#3", "#3", string(of.ID), string(of.ID)[:len(of.ID)-1],
		n.server.url + "/tasks/" + string(of.ID), of.URL, of.URL + "#issuecomment-7",
	}
}

// Every command that takes a task takes each of the names.
func TestEveryCommandTakesEveryNameOfATask(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	defer n.server.stop(t)
	issue := n.tasks["gitea:team/app#3"]
	for _, name := range n.waysTo(issue) {
		for _, c := range []struct{ args, want string }{
			{"tasks show", "Fix the gate"},
			{"tasks logs", "Fix the gate"},
			{"replay", "Fix the gate"},
			{"pause", "gitea:team/app#3 is paused"},
			{"resume", "gitea:team/app#3 is queued"},
			{"tasks stop", "gitea:team/app#3 is stopped"},
			{"tasks retry", "gitea:team/app#3 is queued"},
			{"receipt list", ""},
		} {
			if said := n.output(t, append(strings.Fields(c.args), name)...); !strings.Contains(said, c.want) {
				t.Errorf("toryo %s %s says %q, want %q", c.args, name, said, c.want)
			}
		}
		// It waits for no approval, which only who has found it can say.
		if said := n.refused(t, task.Conflict, "tasks", "approve", name, "1"); !strings.Contains(said, "gitea:team/app#3: ") {
			t.Errorf("toryo tasks approve %s 1 says %q", name, said)
		}
	}
	for _, name := range []string{"!4", "team/app!4", "gitlab:team/app!4", n.tasks["gitlab:team/app!4"].URL + "/diffs"} {
		if said := n.output(t, "tasks", "show", name); !strings.Contains(said, "Paint it") {
			t.Errorf("%s is %q", name, said)
		}
	}
}

// refused runs a command that fails with a code, and returns what it complains about.
func (n named) refused(t *testing.T, code task.Code, args ...string) string {
	t.Helper()
	command := n.command(t, args...)
	var complaint strings.Builder
	command.Stderr = &complaint
	if err := command.Run(); command.ProcessState.ExitCode() != code.Info().Exit {
		t.Errorf("toryo %v: %v, want %s: %s", args, err, code, complaint.String())
	}
	return complaint.String()
}

// A name that can mean several tasks is refused by every command, with a list of them, and
// nothing is done to any.
func TestNamesThatCanMeanSeveralTasks(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	defer n.server.stop(t)
	for _, args := range []string{"tasks show", "tasks logs", "replay", "pause", "resume", "tasks stop", "tasks retry", "receipt list"} {
		said := n.refused(t, task.Invalid, append(strings.Fields(args), "#9")...)
		for _, want := range []string{"board:team/one#9", "board:team/two#9", "give the repository too"} {
			if !strings.Contains(said, want) {
				t.Errorf("toryo %s #9 says %q, without %q", args, said, want)
			}
		}
		if said := n.refused(t, task.NotFound, append(strings.Fields(args), "team/app#77")...); !strings.Contains(said, `there is no task "team/app#77"`) {
			t.Errorf("toryo %s says %q", args, said)
		}
	}
	if said := n.output(t, "tasks", "list"); strings.Count(said, " queued ") != len(n.tasks) {
		t.Errorf("the tasks are %s", said)
	}
}

// The journal is printed alike by both commands, from the database and from the server, from
// anywhere.
func TestLogsAndReplayPrintTheSame(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	defer n.server.stop(t)
	n.output(t, "tasks", "stop", "#3")
	want := n.output(t, "tasks", "logs", "#3")
	for _, part := range []string{"title    Fix the gate", "queued: the bot was assigned", "queued → stopped: a person stopped it", "2 entries; stopped: a person stopped it"} {
		if !strings.Contains(want, part) {
			t.Errorf("%q is missing in\n%s", part, want)
		}
	}
	if got := n.output(t, "replay", "#3"); got != want {
		t.Errorf("replay prints\n%s\nand logs\n%s", got, want)
	}
	token := strings.TrimSpace(n.output(t, "token", "create", "--role", "viewer"))
	elsewhere := place{data: filepath.Join(t.TempDir(), "nothing"), environ: append(slices.Clip(n.environ), "TORYO_TOKEN="+token)}
	for _, args := range [][]string{{"tasks", "logs"}, {"replay"}} {
		if got := elsewhere.output(t, append(args, "#3", "--server", n.server.url)...); got != want {
			t.Errorf("%v from elsewhere prints\n%s\nand here\n%s", args, got, want)
		}
	}
	if one, other := n.output(t, "tasks", "logs", "#3", "--json"), elsewhere.output(t, "replay", "#3", "--json", "--server", n.server.url); one != other || !strings.Contains(one, `"kind":"state"`) {
		t.Errorf("as JSON it is\n%s\nand\n%s", one, other)
	}
}

// What a server answers is what its database has.
func TestTasksOfAServerElsewhere(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	token := strings.TrimSpace(n.output(t, "token", "create", "--role", "operator"))
	elsewhere := place{data: filepath.Join(t.TempDir(), "nothing"), environ: append(slices.Clip(n.environ), "TORYO_TOKEN="+token)}
	commands := []string{"tasks list", "tasks list --json", "tasks list --state queued", "tasks show team/app#3", "tasks show team/app#3 --json", "tasks next --explain", "tasks logs #3"}
	said := map[string]string{}
	for _, args := range commands {
		said[args] = elsewhere.output(t, append(strings.Fields(args), "--server", n.server.url)...)
	}
	stranger := named{place: place{data: elsewhere.data, environ: append(slices.Clip(n.environ), "TORYO_TOKEN=wrong")}}
	if said := stranger.refused(t, task.Unauthorized, "tasks", "list", "--server", n.server.url); !strings.Contains(said, n.server.url+" does not accept the token in TORYO_TOKEN; ") {
		t.Error(said)
	}
	n.server.stop(t)
	for _, args := range commands {
		if here := n.output(t, strings.Fields(args)...); here != said[args] {
			t.Errorf("toryo %s says here\n%s\nand elsewhere\n%s", args, here, said[args])
		}
	}
}

// A server that runs on the data directory is asked also by commands that only read, with the token
// that it has put there: none is made. When it was killed, its database is read.
func TestReadingAsksTheServerThatRuns(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	asked := n.watch(t)
	while := n.output(t, "tasks", "show", "#3")
	if asked.Load() == 0 {
		t.Error("the server was not asked")
	}
	n.server.kill(t)
	before := asked.Load()
	if after := n.output(t, "tasks", "show", "#3"); after != while {
		t.Errorf("it says first\n%s\nand then\n%s", while, after)
	}
	if asked.Load() != before {
		t.Error("a server was asked that has ended")
	}
	if tokens := n.output(t, "token", "list"); strings.Count(tokens, "\n") != 1 {
		t.Errorf("the tokens are\n%s", tokens)
	}
}

// watch puts something between commands and the server that counts what is asked.
func (n named) watch(t *testing.T) *atomic.Int64 {
	t.Helper()
	server, err := url.Parse(n.server.url)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(server)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	file := filepath.Join(n.data, "server.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte(n.server.url), []byte(between.URL), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return &asked
}

// The names of tasks are completed, the newest first.
func TestNamesAreCompleted(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	defer n.server.stop(t)
	command := n.command(t)
	command.Args = []string{"toryo", "__complete", "tasks", "show", "--data", n.data, ""}
	said, err := command.Output()
	if err != nil || !strings.HasPrefix(string(said), "team/two#9\tqueued: Two\nteam/one#9\tqueued: One\nteam/app!4\t") {
		t.Errorf("%v: %s", err, said)
	}
}
