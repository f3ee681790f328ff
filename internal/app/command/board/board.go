// Package board is the command toryo board: the built-in board from the command line.
package board

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	forgeboard "github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/owner"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Command is the command toryo board.
func Command(p site.Program) *cobra.Command {
	c := cli.Group("board", "The built-in board: repositories, issues and pull requests of your own",
		importCommand(p), repoCommand(p), userCommand(p), issueCommand(p), pullCommand(p))
	c.Long = `The board is a forge of your own, for people without one. These commands work on the
database and the repositories in the data directory, also while a server runs.

Issues and pull requests are named owner/name#3, or by their number with --repo.
You act as the account of this machine's user (see toryo user link), who gets an account
on the board with admin access on first use, or as the user that --as names.`
	c.Example = `  toryo board import ~/code/app --name team/app
  toryo board issue create --repo team/app --title "Fix the gate" --body "It squeaks."
  toryo board issue assign team/app#1 ` + site.BoardBot + `
  toryo board issue show team/app#1
  toryo board pr diff team/app#2
  toryo board pr merge team/app#2`
	return c
}

// onBoard is what every command on the board has.
type onBoard struct {
	site.Program
	settings cli.Settings
	as       string
	repo     string
	json     bool
	people   access.PeopleStore // of the database that is open
}

// withBoard runs a command that works on the board as whoever runs the server.
func (o *onBoard) withBoard(ctx context.Context, do func(*forgeboard.Board) error) error {
	return o.openBoard(ctx, cli.Fail, do)
}

// withNewBoard does the same for what may be the first thing in an installation.
func (o *onBoard) withNewBoard(ctx context.Context, do func(*forgeboard.Board) error) error {
	return o.openBoard(ctx, cli.Make, do)
}

func (o *onBoard) openBoard(ctx context.Context, missing cli.OnMissing, do func(*forgeboard.Board) error) error {
	return cli.WithData(ctx, o.Program, &o.settings, missing, func(loaded config.Config, database store.Store) error {
		o.people = database
		opened, err := site.OpenBoard(ctx, loaded, database, site.PublicURL(loaded, loaded.Server.Addr))
		if err != nil {
			return err
		}
		return errors.Join(do(opened), owner.GiveTree(loaded.DataDir, site.BoardFolder))
	})
}

// withPerson runs a command that someone does on the board.
func (o *onBoard) withPerson(ctx context.Context, do func(*forgeboard.Forge) error) error {
	return o.withBoard(ctx, func(b *forgeboard.Board) error {
		login, err := o.actor(ctx, b)
		if err != nil {
			return err
		}
		return do(b.As(login))
	})
}

// actor is who acts: the user that was named, or that of this machine.
func (o *onBoard) actor(ctx context.Context, b *forgeboard.Board) (string, error) {
	if o.as != "" {
		found, err := b.HasUser(ctx, o.as)
		if err == nil && !found {
			err = task.Errorf(task.NotFound, "there is no user %q on the board", o.as).WithHint("see toryo board user list, or add one with toryo board user add")
		}
		return o.as, err
	}
	login, err := o.loginHere(ctx, b)
	if err != nil {
		return "", err
	}
	made, err := b.EnsureUser(ctx, login, forge.AdminAccess)
	if task.CodeOf(err) == task.Forbidden {
		return "", task.Wrap(task.Forbidden, err, "you have no account on the board any more").WithHint("act as someone else with --as")
	}
	if made {
		fmt.Fprintf(o.Stderr, "%s has an account on the board now, with admin access\n", login)
	}
	return login, err
}

// loginHere is the login of the person that the user of this machine is.
func (o *onBoard) loginHere(ctx context.Context, b *forgeboard.Board) (string, error) {
	name := cli.MachineUser()
	person, err := access.People{Store: o.people}.Here(ctx, name)
	if err != nil {
		return "", err
	}
	login, ok := b.LoginOf(person.Login)
	if !ok {
		return "", task.Errorf(task.Usage, "the name of this machine's user, %q, cannot be yours on the board", name).WithHint("say who you are with --as")
	}
	return login, nil
}

// bind adds the flags that every command on the board has.
func (o *onBoard) bind(c *cobra.Command) {
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().StringVar(&o.as, "as", "", "act as this user of the board (`LOGIN`, default: the account of this machine's user)")
}

func (o *onBoard) bindRepo(c *cobra.Command) {
	c.Flags().StringVar(&o.repo, "repo", "", "the repository (`OWNER/NAME`)")
}

func (o *onBoard) bindJSON(c *cobra.Command) {
	c.Flags().BoolVar(&o.json, "json", false, "print JSON, in the shapes of the HTTP API")
}

// requireRepo refuses a command line without a repository.
func (o *onBoard) requireRepo() error {
	if o.repo == "" {
		return task.Errorf(task.Usage, "no repository is named").WithHint("say which with --repo owner/name")
	}
	return nil
}

// itemPattern is how people name an item. The mark of pull requests elsewhere in
// the program will do too.
var itemPattern = lazyregexp.New(`^(?:board:)?(?:([^#!\s]+)[#!]|#)?(\d+)$`)

// item reads the name of an item.
func (o *onBoard) item(kind task.ItemKind, name string) (task.Key, error) {
	parts := itemPattern.FindStringSubmatch(name)
	if parts == nil {
		return task.Key{}, task.Errorf(task.Usage, "%q does not name an item", name).WithHint("give it as owner/name#3, or as 3 with --repo owner/name")
	}
	repository := parts[1]
	switch {
	case repository == "":
		if err := o.requireRepo(); err != nil {
			return task.Key{}, err
		}
		repository = o.repo
	case o.repo != "" && o.repo != repository:
		return task.Key{}, task.Errorf(task.Usage, "%s is not in %s, which --repo names", name, o.repo).WithHint("leave --repo out, or give the number alone")
	}
	number, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return task.Key{}, task.Errorf(task.Usage, "%q does not name an item: the number is too large", name).WithHint("toryo board issue list has the items that there are")
	}
	key := task.Key{Forge: task.Board, Repository: repository, Kind: kind, Number: number}
	return key, key.Validate()
}

// bodyOf is the text that a flag gives, or standard input if it is "-".
func bodyOf(c *cobra.Command, given string) (string, error) {
	if given != "-" {
		return given, wire.CheckText(given)
	}
	text, err := io.ReadAll(io.LimitReader(c.InOrStdin(), wire.MaxText+1))
	if err != nil {
		return "", task.Wrap(task.Usage, err, "standard input cannot be read")
	}
	return string(text), wire.CheckText(string(text))
}

func bindBody(c *cobra.Command, body *string, what string) {
	c.Flags().StringVar(body, "body", "", what+" (`TEXT`, or - for standard input)")
}

// accessNames are what a user may be allowed to do.
func accessNames() []string {
	var names []string
	for access := forge.NoAccess; access <= forge.AdminAccess; access++ {
		names = append(names, access.String())
	}
	return names
}

// parseAccess reads what a user may do.
func parseAccess(name string) (forge.Access, error) {
	for access := forge.NoAccess; access <= forge.AdminAccess; access++ {
		if access.String() == name {
			return access, nil
		}
	}
	return forge.NoAccess, task.Errorf(task.Usage, "there is no access %q", name).WithHint("use one of %s", strings.Join(accessNames(), ", "))
}
