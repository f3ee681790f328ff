package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/app/drill"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
)

// giteaPlace is a repository on a real Gitea. It is a place for drills.
type giteaPlace struct {
	t          *testing.T
	server     *testkit.GiteaServer
	client     *sdk.Client // the owner's
	bot, token string
	owner      string
	name       string
}

func newGiteaPlace(t *testing.T, server *testkit.GiteaServer) *giteaPlace {
	t.Helper()
	p := &giteaPlace{t: t, server: server, owner: server.User(t, "owner"), bot: server.User(t, "bot")}
	p.client, p.token = server.Client(t, p.owner), server.Token(t, p.bot)
	p.name = server.Repository(t, p.owner, true).Name
	access := sdk.AccessModeWrite
	if _, err := p.client.AddCollaborator(p.owner, p.name, p.bot, sdk.AddCollaboratorOption{Permission: &access}); err != nil {
		t.Fatal(err)
	}
	return p
}

// Settings implements drill.Place.
func (p *giteaPlace) Settings() string {
	return fmt.Sprintf("gitea: {url: %q, owner: %q, bot_name: %q}\n", p.server.URL, p.owner, p.bot)
}

// Import implements drill.Place. The repository is there, with a first commit.
func (*giteaPlace) Import(context.Context, string) error { return nil }

// Give implements drill.Place.
func (p *giteaPlace) Give(_ context.Context, title string) (drill.Item, error) {
	issue, _, err := p.client.CreateIssue(p.owner, p.name, sdk.CreateIssueOption{Title: title, Body: "As the title says.", Assignees: []string{p.bot}})
	if err != nil {
		return drill.Item{}, err
	}
	return p.item(issue.Index), nil
}

func (p *giteaPlace) item(number int64) drill.Item {
	return drill.Item{Repository: p.owner + "/" + p.name, Number: number}
}

var mentioned = regexp.MustCompile(`#(\d+)`)

// pagesOf reads all pages of something.
func pagesOf[T any](read func(sdk.ListOptions) ([]T, *sdk.Response, error)) (all []T, err error) {
	for page := 1; ; page++ {
		found, _, err := read(sdk.ListOptions{Page: page, PageSize: 50})
		all = append(all, found...)
		if err != nil || len(found) == 0 {
			return all, err
		}
	}
}

// Look implements drill.Place.
func (p *giteaPlace) Look(context.Context) (is drill.Content, err error) {
	found, err := pagesOf(func(page sdk.ListOptions) ([]*sdk.Issue, *sdk.Response, error) {
		return p.client.ListRepoIssues(p.owner, p.name, sdk.ListIssueOption{ListOptions: page, Type: sdk.IssueTypeIssue, State: sdk.StateAll})
	})
	if err != nil {
		return is, err
	}
	for _, x := range found {
		issue := drill.Issue{Item: p.item(x.Index), Assigned: len(x.Assignees) > 0}
		for _, label := range x.Labels {
			issue.Labels = append(issue.Labels, label.Name)
		}
		comments, _, err := p.client.ListIssueComments(p.owner, p.name, x.Index, sdk.ListIssueCommentOptions{})
		if err != nil {
			return is, err
		}
		for _, comment := range comments {
			issue.Comments = append(issue.Comments, comment.Body)
		}
		is.Issues = append(is.Issues, issue)
	}
	opened, err := pagesOf(func(page sdk.ListOptions) ([]*sdk.PullRequest, *sdk.Response, error) {
		return p.client.ListRepoPullRequests(p.owner, p.name, sdk.ListPullRequestsOptions{ListOptions: page, State: sdk.StateAll})
	})
	if err != nil {
		return is, err
	}
	for _, x := range opened {
		diff, _, err := p.client.GetPullRequestDiff(p.owner, p.name, x.Index, sdk.PullRequestDiffOptions{})
		if err != nil {
			return is, err
		}
		pull := drill.Pull{Item: p.item(x.Index), Branch: x.Head.Ref, Head: x.Head.Sha, Diff: string(diff)}
		if pull.Reviews, err = p.reviews(x.Index); err != nil {
			return is, err
		}
		for _, match := range mentioned.FindAllStringSubmatch(x.Body, -1) {
			number, _ := strconv.ParseInt(match[1], 10, 64) // digits only
			pull.Issues = append(pull.Issues, p.item(number))
		}
		is.Pulls = append(is.Pulls, pull)
	}
	branches, err := pagesOf(func(page sdk.ListOptions) ([]*sdk.Branch, *sdk.Response, error) {
		return p.client.ListRepoBranches(p.owner, p.name, sdk.ListRepoBranchesOptions{ListOptions: page})
	})
	for _, branch := range branches {
		is.Branches = append(is.Branches, drill.Branch{Repository: p.owner + "/" + p.name, Name: branch.Name})
	}
	return is, err
}

// reviews are the commits that the bot has reviewed of a pull request.
func (p *giteaPlace) reviews(number int64) (commits []string, err error) {
	given, err := pagesOf(func(page sdk.ListOptions) ([]*sdk.PullReview, *sdk.Response, error) {
		return p.client.ListPullReviews(p.owner, p.name, number, sdk.ListPullReviewsOptions{ListOptions: page})
	})
	for _, review := range given {
		if review.Reviewer != nil && review.Reviewer.UserName == p.bot {
			commits = append(commits, review.CommitID)
		}
	}
	return commits, err
}

// Several servers with one PostgreSQL have nothing else in common: no folder, and
// no clock.
func TestOnGiteaServersWithNothingInCommon(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	gitea := testkit.Gitea(t)
	t.Run("a run goes on through another", func(t *testing.T) {
		t.Parallel()
		goOnElsewhere(t, newGiteaPlace(t, gitea))
	})
	t.Run("drill", func(t *testing.T) {
		t.Parallel()
		program, err := exec.LookPath("toryo")
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		on := newGiteaPlace(t, gitea)
		work := drill.Drill{
			Program: program, Dir: t.TempDir(), Out: &said, Place: on, Environ: append(drill.WithoutSettings(os.Environ()), "TORYO_GITEA_TOKEN="+on.token),
			Database: testkit.Postgres(t), Servers: 2, Agents: 2, Parallel: 2, Tasks: 4, Lasts: 10 * time.Second, Every: time.Second, Settle: drill.SettleWithin,
			Sandbox: "bubblewrap", Seed: 1,
		}
		if long := os.Getenv("TORYO_TEST_DRILL"); long != "" { // see scripts/drill
			if work.Lasts, err = time.ParseDuration(long); err != nil {
				t.Fatal(err)
			}
			work.Servers, work.Agents, work.Tasks, work.Every, work.SmallDisks = 3, 4, int(work.Lasts/(4*time.Second)), 3*time.Second, drill.CanMount()
			work.Seed, work.Out = uint64(time.Now().Unix()), t.Output()
		}
		result, err := work.Run(t.Context())
		if err != nil {
			t.Errorf("%v: %s", err, said.String())
		}
		if report := os.Getenv("TORYO_TEST_DRILL_REPORT"); report != "" && result != nil {
			var page bytes.Buffer
			if err := errors.Join(result.WriteHTML(&page), os.WriteFile(report, page.Bytes(), 0o600)); err != nil {
				t.Error(err)
			}
		}
	})
}

// goOnElsewhere has a run push its work through one server, which is killed then,
// and its agent with it. The next agent finds the work through another server.
func goOnElsewhere(t *testing.T, on *giteaPlace) {
	t.Helper()
	one := newPlace(t, "postgres")
	one.environ = append(one.environ, "TORYO_GITEA_URL="+on.server.URL, "TORYO_GITEA_OWNER="+on.owner, "TORYO_GITEA_BOT_NAME="+on.bot,
		"TORYO_GITEA_TOKEN="+on.token, "TORYO_SYNC_INTERVAL=1s", "TORYO_LEASES_DURATION=1h", "TORYO_LANGUAGE=en")
	two := one
	two.data = filepath.Join(t.TempDir(), "data")
	first, second := one.start(t, "serve"), two.start(t, "serve")
	agent := func(server process, name string) *wire.Client {
		return server.client(strings.TrimSpace(two.output(t, "token", "create", "--role", "agent", "--name", name)))
	}
	if _, err := on.Give(t.Context(), "Fix the roof"); err != nil {
		t.Fatal(err)
	}
	given := request(t, agent(first, "smith"), "smith")
	work := t.TempDir()
	gitOf(t, "", "clone", "--quiet", withToken(given), work)
	change(t, work, "half.txt")
	gitOf(t, work, "push", "--quiet", "origin", "HEAD:refs/toryo/wip")
	tip := gitOf(t, work, "rev-parse", "HEAD")
	saved := wire.Entry{Sequence: 1, Kind: string(task.Saved), At: time.Now(), Data: json.RawMessage(`{"commit": "` + tip + `"}`)}
	if _, err := first.client("").Run(given).Report(t.Context(), []wire.Entry{saved}); err != nil {
		t.Fatal(err)
	}

	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if err := os.RemoveAll(one.data); err != nil {
		t.Fatal(err)
	}
	two.output(t, "agent", "revoke", "smith") // which ends its lease
	again := request(t, agent(second, "jones"), "jones")
	if again.TaskID != given.TaskID || again.Generation <= given.Generation || again.Resume == nil || again.Resume.WIPRef == "" {
		t.Fatalf("the next agent is given %+v", again)
	}
	rest := t.TempDir()
	gitOf(t, "", "clone", "--quiet", withToken(again), rest)
	gitOf(t, rest, "fetch", "--quiet", "origin", again.Resume.WIPRef)
	gitOf(t, rest, "checkout", "--quiet", "-b", again.Branch, "FETCH_HEAD")
	if got := gitOf(t, rest, "rev-parse", "HEAD"); got != tip {
		t.Errorf("the work in progress is %s, want %s", got, tip)
	}
	change(t, rest, "whole.txt")
	gitOf(t, rest, "push", "--quiet", "origin", again.Branch)
	held := second.client("").Run(again)
	open := wire.OpenPull{
		Branch: again.Branch, Commit: gitOf(t, rest, "rev-parse", "HEAD"), Base: "main", Title: "Fix the roof", Body: "Closes #1",
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	pulled, err := held.OpenPull(ctx, open)
	for task.CodeOf(err) == task.Unavailable && ctx.Err() == nil { // as agents do
		t.Logf("asked again: %v", err)
		pulled, err = held.OpenPull(ctx, open)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: "done", Pull: &pulled}); err != nil {
		t.Fatal(err)
	}
	is, err := on.Look(t.Context())
	if pulls := is.Pulls; err != nil || len(pulls) != 1 || !strings.Contains(pulls[0].Diff, "half.txt") || !strings.Contains(pulls[0].Diff, "whole.txt") {
		t.Errorf("there are %+v, %v", is.Pulls, err)
	}
	if said, err := exec.CommandContext(t.Context(), "git", "-C", work, "push", withToken(&wire.Assignment{
		CloneURL: again.CloneURL, Lease: given.Lease,
	}), "HEAD:refs/toryo/wip").CombinedOutput(); err == nil {
		t.Errorf("the old run pushes through the other server: %s", said)
	}
	second.stop(t)
	if strings.Contains(second.stderr.String(), "repositories of the board") {
		t.Errorf("a server without a board warns of it: %s", second.stderr)
	}
	// The board is one server's own, and another one says so.
	repository := t.TempDir()
	gitOf(t, repository, "init", "--quiet", "--initial-branch=main")
	change(t, repository, "a.txt")
	one.output(t, "board", "import", repository, "--name", "team/app")
	third := two.start(t, "serve")
	third.stop(t)
	if !strings.Contains(third.stderr.String(), "repositories of the board are missing in the data directory of this server") {
		t.Errorf("it says %s", third.stderr)
	}
}

// request waits for a task.
func request(t *testing.T, client *wire.Client, name string) *wire.Assignment {
	t.Helper()
	given, err := client.RequestTask(t.Context(), name, time.Minute)
	if err != nil || given == nil {
		t.Fatalf("%s is given %v, %v", name, given, err)
	}
	return given
}

func withToken(a *wire.Assignment) string {
	return strings.Replace(a.CloneURL, "://", "://agent:"+a.Lease.Token+"@", 1)
}

func change(t *testing.T, work, file string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(work, file), []byte(file+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gitOf(t, work, "add", file)
	gitOf(t, work, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "Add "+file)
}

func gitOf(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, said)
	}
	return strings.TrimSpace(string(said))
}
