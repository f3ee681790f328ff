package program

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/processes"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// readRunning reads what a server has written for commands on its machine.
func (p place) readRunning(t testing.TB) (running site.Running) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.data, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &running); err != nil {
		t.Fatal(err)
	}
	return running
}

// Who follows a task follows it on when the server is started again, with another token and at
// another address.
func TestFollowingGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	follow := n.command(t, "tasks", "logs", "#3", "--follow")
	stdout, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaint strings.Builder
	follow.Stderr = &complaint
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for first := ""; !strings.Contains(first, "queued: the bot was assigned"); first = lines.Text() {
		if !lines.Scan() {
			t.Fatalf("the journal ends before it begins: %s", complaint.String())
		}
	}
	n.server.stop(t)
	n.server = n.start(t, "serve")
	defer n.server.stop(t)
	n.output(t, "tasks", "stop", "#3")
	var rest []string
	for lines.Scan() {
		rest = append(rest, lines.Text())
	}
	if err := follow.Wait(); err != nil || !strings.Contains(strings.Join(rest, "\n"), "queued → stopped: a person stopped it") || !strings.Contains(complaint.String(), "connecting again") {
		t.Errorf("following ends with %v after %q: %s", err, rest, complaint.String())
	}
}

// A command on the machine of a server needs no token: the server has put one there, which only its
// user can read, steers tasks and nothing else, and ends with the server.
func TestTheTokenOfARunningServer(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	n.environ = append(slices.Clip(n.environ), "TORYO_TOKEN=wrong") // is for a server that is named
	if said := n.output(t, "pause", "#3"); !strings.Contains(said, "gitea:team/app#3 is paused") {
		t.Error(said)
	}
	info, err := os.Stat(filepath.Join(n.data, "server.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the token is %v, %v", info, err)
	}
	before := n.readRunning(t)
	client := n.server.client(before.Token)
	if me, err := client.Me(t.Context()); err != nil || me.Role != string(access.Operator) {
		t.Errorf("it is a token of %+v, %v", me, err)
	}
	if _, err := client.RequestTask(t.Context(), "x", 0); task.CodeOf(err) != task.Forbidden {
		t.Errorf("an agent with it gets work: %v", err)
	}
	n.server.stop(t)
	if _, err := os.Stat(filepath.Join(n.data, "server.json")); !os.IsNotExist(err) {
		t.Errorf("the file stays: %v", err)
	}
	n.server = n.start(t, "serve")
	defer n.server.stop(t)
	if after := n.readRunning(t); after.Token == before.Token {
		t.Error("the next server has the same token")
	}
	if _, err := n.server.client(before.Token).Me(t.Context()); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("the token of a server that has ended: %v", err)
	}
}

// pretend lets this process be the server of a data directory, at an address.
func (p place) pretend(t *testing.T, url string) {
	t.Helper()
	process, err := processes.Start(filepath.Join(p.data, "processes"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Stop() })
	text, err := json.Marshal(site.Running{URL: url, Token: "toryo_x", Process: process.ID(), Network: processes.Network()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.data, "server.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Reading goes on with the database where the server lives and cannot be asked, and says why.
func TestReadingWhereTheServerCannotBeAsked(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	n.server.stop(t)
	want := n.output(t, "tasks", "list")
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }() // nothing is ever accepted
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	for url, why := range map[string]string{
		"http://" + silent.Addr().String(): "the server does not answer",
		refusing.URL:                       "404",
	} {
		n.pretend(t, url)
		command := n.command(t, "tasks", "list")
		var complaint strings.Builder
		command.Stderr = &complaint
		said, err := command.Output()
		begins := "toryo: the server at " + url + " cannot be asked: "
		if err != nil || string(said) != want || !strings.HasPrefix(complaint.String(), begins) || !strings.Contains(complaint.String(), why) ||
			!strings.HasSuffix(complaint.String(), "; this is what the database has\n") {
			t.Errorf("%v: %s\n%s", err, said, complaint.String())
		}
	}
}

// Who steers tasks asks the server, and needs nothing of what the server keeps to itself.
func TestSteeringWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	file := filepath.Join(t.TempDir(), "toryo.yaml")
	if err := os.WriteFile(file, []byte("database: {driver: postgres, url_file: gone}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"tasks list": "Fix the gate", "pause #3": "is paused", "tasks logs #3": "Fix the gate", "replay #3": "Fix the gate", "receipt list #3": ""} {
		if said := n.output(t, append(strings.Fields(args), "--config", file)...); !strings.Contains(said, want) {
			t.Errorf("toryo %s says %q, want %q", args, said, want)
		}
	}
	n.server.stop(t)
	if said := n.refused(t, task.BadConfig, "tasks", "list", "--config", file); !strings.Contains(said, "database.url_file: ") {
		t.Error(said)
	}
}
