package command

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// withBoard does something on the board without a server.
func withBoard(ctx context.Context, c config.Config, do func(store.Store, *board.Board) error) (err error) {
	database, err := site.OpenStore(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	opened, err := site.OpenBoard(ctx, c, database, site.PublicURL(c, c.Server.Addr))
	if err != nil {
		return err
	}
	return do(database, opened)
}

// hasTasks reports whether tasks have been done in a repository. Where there is no database
// there were none. Of one that cannot be read, such as that of another version, nobody knows.
func hasTasks(ctx context.Context, at place, of task.Forge, repository string) (has bool, err error) {
	if there, err := site.HasDatabase(ctx, at.loaded); err != nil || !there {
		return false, err
	}
	database, err := site.OpenExistingStore(ctx, at.loaded)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	some, err := database.ListTasks(ctx, store.TaskFilter{Forge: of, Repository: repository, Limit: 1})
	return len(some) > 0, err
}

// askBoard asks under which name the current folder goes to the board.
func (i *interview) askBoard(ctx context.Context) error {
	i.answers.Bot = site.BoardBot
	i.say("  The board is a forge of this installation's own: repositories, issues and pull requests in the data directory. The bot is %s there.", site.BoardBot)
	if i.owned != "" {
		i.say("  ! %s\n    Import repositories as that user: sudo -u %s toryo board import%s.", i.ownedText(), i.owned, i.placeFlags())
		return nil
	}
	if i.found.Folder == "" {
		i.say("  This folder is no git repository: import one later with toryo board import.")
		return nil
	}
	answer, err := i.answer(ctx, initQuestion{
		text: "Name on the board for " + i.found.Folder, flag: repositoryFlag, given: strings.Join(i.repositories, ","), usual: i.boardName(),
		check: board.CheckName,
	})
	if err == nil {
		i.answers.Repositories, i.answers.Import = []string{answer}, i.found.Folder
		if i.canAsk() {
			i.said[repositoryFlag] = answer
		}
	}
	return err
}

// boardName is a name for the current folder on the board: that which it has elsewhere, or one
// made of whose it is and its own.
func (i *interview) boardName() string {
	if recorded := i.installer(i.at, nil).Repositories(task.Board, ""); len(recorded) > 0 {
		return recorded[0]
	}
	short := func(text, instead string) string { return cmp.Or(textfmt.Slug(text, 40), instead) }
	name := short(personHere(), "team") + "/" + short(filepath.Base(i.found.Folder), "app")
	if len(i.found.Remotes) > 0 {
		parts := strings.Split(i.found.Remotes[0].Repository, "/")
		name = parts[len(parts)-2] + "/" + parts[len(parts)-1]
	}
	if board.CheckName(name) != nil {
		return ""
	}
	return name
}

// boardIssues opens issues on the board as a person does.
type boardIssues struct{ *board.Forge }

// CreateIssue implements [connect.Issues].
func (b boardIssues) CreateIssue(ctx context.Context, repository string, post forge.IssuePost) (forge.Item, error) {
	return b.Forge.CreateIssue(ctx, repository, forge.NewIssue{Title: post.Title, Body: post.Body, Labels: post.Labels, Assignees: post.Assignees})
}

// personOn is who acts on the board: the person that the user of this machine is.
func personOn(ctx context.Context, database store.Store, b *board.Board) (*board.Forge, error) {
	person, err := access.People{Store: database}.Here(ctx, cli.MachineUser())
	if err != nil {
		return nil, err
	}
	login, ok := b.LoginOf(person.Login)
	if !ok {
		login = "admin"
	}
	if _, err := b.EnsureUser(ctx, login, forge.AdminAccess); err != nil {
		return nil, err
	}
	return b.As(login), nil
}

// sameHost reports whether two addresses are on one host, whatever the protocol and port: a
// remote by SSH tells of neither.
func sameHost(one, other string) bool {
	a, err := url.Parse(one)
	if err != nil {
		return false
	}
	b, err := url.Parse(other)
	return err == nil && a.Hostname() != "" && strings.EqualFold(a.Hostname(), b.Hostname())
}
