package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// site is a forge as people use it.
type site interface {
	talk
	// bot is who the bot is there.
	bot() string
	// repository makes a repository from a bare one, and says how it is called.
	repository(ctx context.Context, name, source string) (string, error)
	// address is where git reaches a repository.
	address(repository string) string
	// open opens an issue, or a pull request from the branch.
	open(ctx context.Context, repository, as string, scenario *phasetest.Scenario) (task.Key, error)
	assign(ctx context.Context, item task.Key, there bool) error
	close(ctx context.Context, item task.Key) error
	// mute makes the forge refuse so many requests of the server about items.
	mute(repository string, requests int)
	// look is the forge to read from, and as the same as a person has it.
	look() forge.Forge
	as(login string) forge.Forge
}

// talk is what people say on an item.
type talk interface {
	addComment(ctx context.Context, item task.Key, as, body string) (id string, err error)
	edit(ctx context.Context, item task.Key, as, id, body string) error
	remove(ctx context.Context, item task.Key, as, id string) error
	// review submits a review of a pull request, with a comment on the line unless its
	// path is empty. The id is that of the text, and else of the comment.
	review(ctx context.Context, item task.Key, as, verdict, body string, on wire.BoardLine) (id string, err error)
	// reply writes into a review thread.
	reply(ctx context.Context, item task.Key, as, thread, body string) (id string, err error)
}

// boardSite is the board of a house. What people do there goes through a server.
type boardSite struct {
	house *house
	board *board.Board
}

// people are the users of the board, who are in all scenarios.
var people = map[string]forge.Access{
	"alice": forge.WriteAccess, "bob": forge.WriteAccess, "carol": forge.WriteAccess, "dave": forge.ReadAccess,
	"erin": forge.WriteAccess, "mallory": forge.ReadAccess,
}

func openBoard(ctx context.Context, h *house) (*boardSite, error) {
	opened, err := board.Open(board.Options{Store: h.store, Folder: filepath.Join(h.data(0), "board"), URL: h.urls[0]})
	for login, access := range people {
		if err == nil {
			err = opened.AddUser(ctx, login, access)
		}
	}
	return &boardSite{h, opened}, err
}

func (*boardSite) bot() string      { return "toryo" }
func (*boardSite) mute(string, int) {}

func (b *boardSite) look() forge.Forge { return b.as("alice") }

func (b *boardSite) as(login string) forge.Forge { return b.board.As(login) }

func (b *boardSite) address(repository string) string { return b.board.Path(repository) }

func (b *boardSite) repository(ctx context.Context, name, source string) (string, error) {
	name = "scenarios/" + name
	_, err := b.board.Import(ctx, name, source)
	return name, err
}

func (b *boardSite) open(ctx context.Context, repository, as string, scenario *phasetest.Scenario) (task.Key, error) {
	var made wire.BoardItem
	if scenario.Pull == nil {
		// Without a title there is no issue: one that says nothing has a blank.
		body := wire.NewBoardIssue{Title: scenario.Title, Body: scenario.Body, Labels: scenario.Labels}
		err := b.act(ctx, http.MethodPost, as, repository+"/issues", body, &made)
		return b.key(repository, task.Issue, made.Number), err
	}
	body := wire.NewBoardPull{Title: scenario.Pull.Title, Body: scenario.Pull.Body, Head: taskBranch, Base: "main"}
	if err := b.act(ctx, http.MethodPost, as, repository+"/pulls", body, &made); err != nil {
		return task.Key{}, err
	}
	key := b.key(repository, task.Pull, made.Number)
	review := map[string]*wire.NewBoardReview{}
	for _, thread := range scenario.Pull.Threads {
		of := review[thread.Author]
		if of == nil {
			of = &wire.NewBoardReview{Verdict: "request_changes", Body: "Please see below."}
			if !people[thread.Author].CanWrite() {
				of.Verdict = "comment" // all that the board allows them
			}
			review[thread.Author] = of
		}
		of.Lines = append(of.Lines, wire.NewBoardRemark{On: wire.BoardLine{Path: thread.Path, Line: thread.Line}, Body: thread.Body})
	}
	for author, one := range review {
		if err := b.act(ctx, http.MethodPost, author, b.path(key)+"/reviews", one, nil); err != nil {
			return key, err
		}
	}
	return key, nil
}

func (*boardSite) key(repository string, kind task.ItemKind, number int64) task.Key {
	return task.Key{Forge: task.Board, Repository: repository, Kind: kind, Number: number}
}

func (b *boardSite) path(item task.Key) string {
	kind := "issues"
	if item.Kind == task.Pull {
		kind = "pulls"
	}
	return fmt.Sprintf("%s/%s/%d", item.Repository, kind, item.Number)
}

func (b *boardSite) addComment(ctx context.Context, item task.Key, as, body string) (string, error) {
	var made wire.BoardComment
	err := b.act(ctx, http.MethodPost, as, b.path(item)+"/comments", wire.BoardText{Body: body}, &made)
	return made.ID, err
}

func (b *boardSite) edit(ctx context.Context, item task.Key, as, id, body string) error {
	return b.act(ctx, http.MethodPatch, as, b.path(item)+"/comments/"+url.PathEscape(id), wire.BoardText{Body: body}, nil)
}

func (b *boardSite) remove(ctx context.Context, item task.Key, as, id string) error {
	return b.act(ctx, http.MethodDelete, as, b.path(item)+"/comments/"+url.PathEscape(id), nil, nil)
}

func (b *boardSite) review(ctx context.Context, item task.Key, as, verdict, body string, on wire.BoardLine) (string, error) {
	review := wire.NewBoardReview{Verdict: verdict, Body: body}
	if on.Path != "" {
		review.Body, review.Lines = "", []wire.NewBoardRemark{{On: on, Body: body}}
	}
	var made wire.BoardReview
	err := b.act(ctx, http.MethodPost, as, b.path(item)+"/reviews", review, &made)
	return made.ID, err
}

func (b *boardSite) reply(ctx context.Context, item task.Key, as, thread, body string) (string, error) {
	var made wire.BoardComment
	err := b.act(ctx, http.MethodPost, as, b.path(item)+"/threads/"+url.PathEscape(thread), wire.BoardText{Body: body}, &made)
	return made.ID, err
}

func (b *boardSite) assign(ctx context.Context, item task.Key, there bool) error {
	if there {
		return b.act(ctx, http.MethodPost, "alice", b.path(item)+"/assignees", wire.BoardLogin{Login: b.bot()}, nil)
	}
	return b.act(ctx, http.MethodDelete, "alice", b.path(item)+"/assignees?login="+b.bot(), nil, nil)
}

func (b *boardSite) close(ctx context.Context, item task.Key) error {
	return b.act(ctx, http.MethodPatch, "alice", b.path(item), wire.BoardChange{State: "closed"}, nil)
}

// act does something on the board as a person. A server that is being started again
// is waited for.
func (b *boardSite) act(ctx context.Context, method, as, path string, body, into any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, method, b.house.client.Server+"/api/board/repositories/"+path, bytes.NewReader(content))
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+b.house.client.Token)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Toryo-As", as)
		answer, err := b.house.client.HTTP.Do(request)
		if errors.Is(err, syscall.ECONNREFUSED) && pause(ctx) {
			continue
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode >= http.StatusMultipleChoices {
			return fmt.Errorf("%s %s as %s: %s: %s: %w", method, path, as, answer.Status, text, err)
		}
		if into == nil {
			return nil
		}
		return json.Unmarshal(text, into)
	}
}

// pause waits for a moment before something is looked at again. It is false when
// there is no point in that any more.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// taskBranch is the branch of a pull request that a scenario begins with.
const taskBranch = "toryo/7"

// commit puts files on a branch of a repository, from main if it is new, and returns
// the commit.
func commit(ctx context.Context, address, branch string, files map[string]string) (head string, err error) {
	dir, err := os.MkdirTemp("", "scenario")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := git(ctx, "", "clone", "--quiet", address, dir); err != nil {
		return "", err
	}
	if branch != "main" {
		if _, err := git(ctx, dir, "checkout", "--quiet", "-B", branch); err != nil {
			return "", err
		}
	}
	for path, text := range files {
		full := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o750), os.WriteFile(full, []byte(text), 0o600)); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{
		{"add", "--all", "--force"}, {"commit", "--quiet", "--allow-empty", "-m", "files"}, {"push", "--quiet", "origin", "HEAD:refs/heads/" + branch},
	} {
		if _, err := git(ctx, dir, args...); err != nil {
			return "", err
		}
	}
	return git(ctx, dir, "rev-parse", "HEAD")
}
