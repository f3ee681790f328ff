package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// User is the command toryo user.
func User(p site.Program) *cobra.Command {
	c := cli.Group("user", "People who can sign in to the pages",
		userCreateCommand(p), userListCommand(p), userPasswordCommand(p), userRoleCommand(p),
		userLinkCommand(p), userUnlinkCommand(p), userExpectCommand(p), userRemoveCommand(p))
	c.Long = `People who can sign in to the pages. A viewer looks at everything, an operator also
steers tasks and writes on the board, an admin also manages tokens and people.
An account is one person on the pages, over HTTP (toryo token create --for LOGIN) and on
the command line (toryo user link LOGIN).
Passwords are read from the terminal, or from standard input if it is none.`
	c.Example = `  toryo user create alice --role operator
  toryo user link alice
  toryo user password alice <password.txt
  toryo user remove alice`
	return c
}

// personRoles are the roles that people can have.
var personRoles = []string{string(access.Viewer), string(access.Operator), string(access.Admin)}

// createUser is what making an account is called in the audit log.
const createUser = "user.create"

// onAccounts is what every command about accounts has.
type onAccounts struct {
	site.Program
	settings cli.Settings
	database store.Store // while a change is made
}

// do runs a command that changes accounts, and notes it in the audit log. To make one may be
// the first thing that is done with an installation.
func (o *onAccounts) do(ctx context.Context, action, login string, change func(access.Accounts) error) error {
	with := cli.WithStore
	if action == createUser {
		with = cli.WithNewStore
	}
	return with(ctx, o.Program, &o.settings, func(database store.Store) error {
		o.database = database
		err := cli.Audited(ctx, o.Program, database, action, login, func() error { return change(access.Accounts{Store: database, Now: o.Now}) })
		if task.CodeOf(err) == task.NotFound {
			err = task.Errorf(task.NotFound, "there is no user %q", login).WithHint("see toryo user list")
		}
		return err
	})
}

func (o *onAccounts) command(use, short string, args int, run func(ctx context.Context, args []string) error) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(args),
		RunE: func(c *cobra.Command, args []string) error { return run(c.Context(), args) },
	}
	o.settings.Bind(c, cli.DataFlag)
	return c
}

func userCreateCommand(p site.Program) *cobra.Command {
	o := onAccounts{Program: p}
	var role string
	c := o.command("create LOGIN --role ROLE", "Create an account and give it a password", 1, func(ctx context.Context, args []string) error {
		if err := access.CheckPersonRole(access.Role(role)); err != nil {
			return err
		}
		password, err := readPassword(o.Program)
		if err != nil {
			return err
		}
		return o.do(ctx, createUser, args[0], func(a access.Accounts) error {
			had, err := a.Store.BelongingsOf(ctx, args[0])
			if err != nil {
				return err
			}
			if err := a.Create(ctx, args[0], access.Role(role), password); err != nil {
				return err
			}
			if err := o.printTakenOver(args[0], had); err != nil {
				return err
			}
			return o.linkFirstAdmin(ctx, args[0], access.Role(role))
		})
	})
	c.Long = `Create an account and give it a password. The first admin is linked with the user of this
machine who makes the account, as toryo user link does.`
	c.Flags().StringVar(&role, "role", string(access.Viewer), "what the user may do: viewer, operator, admin")
	cli.CompleteFlag(c, "role", personRoles...)
	return c
}

func userPasswordCommand(p site.Program) *cobra.Command {
	o := onAccounts{Program: p}
	return o.command("password LOGIN", "Give a user a new password and sign the user out everywhere", 1, func(ctx context.Context, args []string) error {
		password, err := readPassword(o.Program)
		if err != nil {
			return err
		}
		return o.do(ctx, "user.password", args[0], func(a access.Accounts) error { return a.SetPassword(ctx, args[0], password) })
	})
}

func userRoleCommand(p site.Program) *cobra.Command {
	o := onAccounts{Program: p}
	c := o.command("role LOGIN viewer|operator|admin", "Change the access of a user", 2, func(ctx context.Context, args []string) error {
		if err := access.CheckPersonRole(access.Role(args[1])); err != nil {
			return err
		}
		return o.do(ctx, "user.role", args[0], func(a access.Accounts) error { return a.Store.SetUserRole(ctx, args[0], args[1]) })
	})
	cli.CompleteArgument(c, 1, personRoles...)
	return c
}

func userRemoveCommand(p site.Program) *cobra.Command {
	o := onAccounts{Program: p}
	c := o.command("remove LOGIN", "Remove an account and sign the user out everywhere", 1, func(ctx context.Context, args []string) error {
		return o.do(ctx, "user.remove", args[0], func(a access.Accounts) error { return a.Store.RemoveUser(ctx, args[0]) })
	})
	c.Long = `Remove an account, sign the user out everywhere, and revoke the tokens that act for the user:
those that were made for the account, and those that have its login for their name. Tokens
of agents stay. Reviews and conversations stay too, for whoever gets an account with the
same login.`
	return c
}

func userListCommand(p site.Program) *cobra.Command {
	o := onAccounts{Program: p}
	return o.command("list", "List the accounts", 0, func(ctx context.Context, _ []string) error {
		return cli.WithStore(ctx, o.Program, &o.settings, func(database store.Store) error {
			users, err := database.ListUsers(ctx)
			if err != nil {
				return err
			}
			here, err := machineUsersOf(ctx, database)
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(table, "LOGIN\tROLE\tPASSWORD\tCREATED\tMACHINE USERS") // Flush reports what went wrong
			for _, user := range users {
				password := "yes"
				if user.Password == "" {
					password = "no"
				}
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", user.Login, user.Role, password, user.CreatedAt.Format(cli.Minutes), cli.OrDash(strings.Join(here[user.Login], ", ")))
			}
			return table.Flush()
		})
	})
}

// readPassword reads a password without showing it where there is a terminal,
// and else the first line of standard input.
func readPassword(p site.Program) (string, error) {
	if file, ok := p.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return askPassword(p, int(file.Fd()))
	}
	line, err := bufio.NewReader(p.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", task.Wrap(task.Usage, err, "standard input cannot be read")
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return "", task.Errorf(task.Usage, "no password was given").WithHint("type it, or send it on standard input")
	}
	return password, nil
}

func askPassword(p site.Program, terminal int) (string, error) {
	var given [2]string
	for i, question := range []string{"Password: ", "Once more: "} {
		_, _ = fmt.Fprint(p.Stderr, question) // who cannot see it can still type
		typed, err := term.ReadPassword(terminal)
		_, _ = fmt.Fprintln(p.Stderr)
		if err != nil {
			return "", task.Wrap(task.Usage, err, "the password cannot be read")
		}
		given[i] = string(typed)
	}
	if given[0] != given[1] {
		return "", task.Errorf(task.Usage, "the two passwords differ; nothing was changed").WithHint("type the same one twice")
	}
	return given[0], nil
}
