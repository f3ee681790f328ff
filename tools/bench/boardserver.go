package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// boardServer is a server as a process of its own, with many issues on its board that are
// assigned to the bot.
type boardServer struct {
	data     string
	database store.Store // the same that the server has
	environ  []string
	process  *exec.Cmd
	url      string
	cookie   *http.Cookie // of someone who is signed in to the pages
	drop     func(context.Context) error
}

// boardLogin is the person who opens the issues and looks at the pages.
const boardLogin = "alice"

// newBoardServer puts the issues on a board, on SQLite, or on PostgreSQL if there is a server.
func newBoardServer(ctx context.Context, data, postgresServer string, repositories, issues int) (c *boardServer, err error) {
	c = &boardServer{data: data, environ: append(os.Environ(), "TORYO_LOG_LEVEL=warn", "TORYO_SERVER_REQUESTS_PER_TOKEN=0", "TORYO_SERVER_REQUESTS_PER_ADDRESS=0")}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close(ctx))
		}
	}()
	if err := c.open(ctx, postgresServer); err != nil {
		return c, err
	}
	if err := c.signIn(ctx); err != nil {
		return c, err
	}
	err = c.fill(ctx, repositories, issues)
	return c, err
}

func (c *boardServer) open(ctx context.Context, postgresServer string) (err error) {
	if postgresServer == "" {
		c.database, err = sqlite.Open(ctx, filepath.Join(c.data, "toryo.db"))
		return err
	}
	url, drop, err := postgres.Scratch(ctx, postgresServer)
	if err != nil {
		return err
	}
	c.drop = drop
	c.environ = append(c.environ, "TORYO_DATABASE_DRIVER=postgres", "TORYO_DATABASE_URL="+url)
	c.database, err = postgres.Open(ctx, url)
	return err
}

// signIn gives a person a session on the pages.
func (c *boardServer) signIn(ctx context.Context) error {
	accounts := access.Accounts{Store: c.database, Now: time.Now, Logins: &access.Limiter{Free: 5}, Addresses: &access.Limiter{Free: 30}}
	if err := accounts.Create(ctx, boardLogin, access.Admin, "a long password for a benchmark"); err != nil {
		return err
	}
	secret, err := accounts.Open(ctx, boardLogin)
	c.cookie = &http.Cookie{ //nolint:gosec // a request has its name and value alone
		Name: "toryo_session", Value: secret,
	}
	return err
}

// fill makes the repositories, and opens the issues in them in turn.
func (c *boardServer) fill(ctx context.Context, repositories, issues int) error {
	opened, err := board.Open(board.Options{Store: c.database, Folder: filepath.Join(c.data, "board"), Bot: "toryo"})
	if err == nil {
		err = errors.Join(opened.AddUser(ctx, "toryo", forge.WriteAccess), opened.AddUser(ctx, boardLogin, forge.AdminAccess))
	}
	if err != nil {
		return err
	}
	project, err := newProject(ctx, c.data)
	if err != nil {
		return err
	}
	for n := range repositories {
		if _, err := opened.Import(ctx, boardRepository(n), project); err != nil {
			return err
		}
	}
	for n := range issues {
		_, err := opened.As(boardLogin).CreateIssue(ctx, boardRepository(n%repositories), forge.NewIssue{
			Title: fmt.Sprintf("Gate %d squeaks", n+1), Body: strings.Repeat("It squeaks when the wind is from the west. ", 20), Assignees: []string{"toryo"},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func boardRepository(n int) string { return fmt.Sprintf("team/app%d", n+1) }

// newProject makes a repository with one commit.
func newProject(ctx context.Context, folder string) (string, error) {
	project := filepath.Join(folder, "project")
	if err := errors.Join(os.Mkdir(project, 0o700), os.WriteFile(filepath.Join(project, "README.md"), []byte("# Gates\n"), 0o600)); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-q", "-m", "Begin"}} {
		git := exec.CommandContext(ctx, "git", args...)
		git.Dir = project
		if said, err := git.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, said)
		}
	}
	return project, nil
}

// start starts the server, and returns when it has made a task of each issue.
func (c *boardServer) start(ctx context.Context, program, command string, issues int) error {
	c.process = exec.CommandContext(ctx, program, command, "--addr", "127.0.0.1:0", "--data", c.data)
	c.process.Env, c.process.Dir, c.process.Stderr = c.environ, c.data, os.Stderr
	output, err := c.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.process.Start(); err != nil {
		return err
	}
	reader := bufio.NewReader(output)
	line, err := reader.ReadString('\n')
	if err != nil {
		return err
	}
	c.url = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	go func() { _, _ = io.Copy(io.Discard, reader) }() // it ends with the process
	return errors.Join(c.await(ctx, issues, task.Queued, task.Running), c.awaitLabels(ctx, issues))
}

// awaitLabels waits until each issue says that it is a task: so long there is something to do.
func (c *boardServer) awaitLabels(ctx context.Context, want int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	for {
		found, err := c.database.ListBoardItems(ctx, store.BoardFilter{Label: task.DefaultLabelNames()[task.BotLabel]})
		if err != nil || len(found) >= want {
			return err
		}
		if err := lifecycle.Sleep(ctx, 2*time.Second); err != nil {
			return fmt.Errorf("%d issues have the label and not %d: %w", len(found), want, err)
		}
	}
}

// await waits until so many tasks are in one of the states.
func (c *boardServer) await(ctx context.Context, want int, states ...task.State) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for {
		found, err := c.database.ListTasks(ctx, store.TaskFilter{States: states})
		if err != nil || len(found) >= want {
			return err
		}
		if err := lifecycle.Sleep(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("%d tasks are %v and not %d: %w", len(found), states, want, err)
		}
	}
}

// page asks for a page as someone who is signed in.
func (c *boardServer) page(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return nil, err
	}
	request.AddCookie(c.cookie)
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err == nil && answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		err = fmt.Errorf("%s answers %s", path, answer.Status)
	}
	return answer, err
}

// metric is what the server says of itself.
func (c *boardServer) metric(ctx context.Context, name string) (float64, error) {
	answer, err := c.page(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), name+" "); found {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("there is no metric %s", name))
}

// used is what the server uses of the processors in a time, with the programs that it runs.
func (c *boardServer) used(ctx context.Context, while time.Duration) (time.Duration, error) {
	before, err := processorTimeOf(c.process.Process.Pid)
	if err != nil {
		return 0, err
	}
	if err := lifecycle.Sleep(ctx, while); err != nil {
		return 0, err
	}
	after, err := processorTimeOf(c.process.Process.Pid)
	return after - before, err
}

func (c *boardServer) close(ctx context.Context) error {
	var failed []error
	if c.process != nil && c.process.Process != nil {
		_ = c.process.Process.Signal(syscall.SIGTERM)
		failed = append(failed, c.process.Wait())
	}
	if c.database != nil {
		failed = append(failed, c.database.Close())
	}
	if c.drop != nil {
		failed = append(failed, c.drop(context.WithoutCancel(ctx)))
	}
	return errors.Join(failed...)
}
