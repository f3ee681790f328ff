package command

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

func userLinkCommand(p site.Program) *cobra.Command {
	o := onAccounts{Program: p}
	var machineUser string
	c := o.command("link LOGIN", "Say which person a user of this machine is", 1, func(ctx context.Context, args []string) error {
		name, err := machineUserNamed(machineUser)
		if err != nil {
			return err
		}
		return o.do(ctx, "user.link", args[0], func(access.Accounts) error { return o.link(ctx, name, args[0]) })
	})
	c.Long = `Say which person a user of this machine is. Commands that the user runs, such as toryo review,
toryo chat and toryo board, work for that person from then on. Reviews and conversations
that belong to the name of the machine's user go to the person, unless that name is an
account too. Without a link, a user of the machine is the account of the same name, unless
that was made by signing in elsewhere. The name can also be that of a token which was made
for nobody: what the token owns goes to the person then.`
	c.Flags().StringVar(&machineUser, "machine-user", "", "the user of the machine (`NAME`, default: you)")
	return c
}

func userUnlinkCommand(p site.Program) *cobra.Command {
	o := onAccounts{Program: p}
	var machineUser string
	c := o.command("unlink", "Take back what toryo user link has said; what the person has stays", 0, func(ctx context.Context, _ []string) error {
		name, err := machineUserNamed(machineUser)
		if err != nil {
			return err
		}
		return cli.WithStore(ctx, o.Program, &o.settings, func(database store.Store) error {
			return cli.Audited(ctx, o.Program, database, "user.unlink", name, func() error { return database.UnlinkMachineUser(ctx, name) })
		})
	})
	c.Flags().StringVar(&machineUser, "machine-user", "", "the user of the machine (`NAME`, default: you)")
	return c
}

// machineUserNamed is the user of the machine that was named, or whoever runs the command.
func machineUserNamed(machineUser string) (string, error) {
	name := cmp.Or(machineUser, cli.MachineUser())
	if name == "" {
		return "", task.Errorf(task.Usage, "the user of this machine has no name").WithHint("give one with --machine-user")
	}
	return name, nil
}

// link links a user of the machine with an account, and says so.
func (o *onAccounts) link(ctx context.Context, machineUser, login string) error {
	moved, err := o.database.LinkMachineUser(ctx, machineUser, login)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Stderr, "on this machine %s is %s now\n", machineUser, login)
	if moved > 0 && err == nil {
		_, err = fmt.Fprintf(o.Stderr, "%d reviews of %s belong to %s now\n", moved, machineUser, login)
	}
	return err
}

// linkFirstAdmin links the first admin with the user of this machine who makes the account:
// that is one person, as a rule. It does not if the user is somebody already.
func (o *onAccounts) linkFirstAdmin(ctx context.Context, login string, role access.Role) error {
	machineUser := cli.MachineUser()
	if role != access.Admin || machineUser == "" {
		return nil
	}
	here, err := access.People{Store: o.database}.Here(ctx, machineUser)
	if task.CodeOf(err) == task.Conflict || here.Account {
		return nil // whoever it is, an admin says so
	}
	if err != nil {
		return err
	}
	users, err := o.database.ListUsers(ctx)
	if err != nil {
		return err
	}
	for _, user := range users {
		if user.Role == string(access.Admin) && !task.SameLogin(user.Login, login) {
			return nil
		}
	}
	return o.link(ctx, machineUser, login)
}

// machineUsersOf is which users of machines are linked with whom, by login.
func machineUsersOf(ctx context.Context, database store.People) (map[string][]string, error) {
	linked, err := database.ListMachineUsers(ctx)
	names := map[string][]string{}
	for _, one := range linked {
		names[one.Login] = append(names[one.Login], one.Name)
	}
	return names, err
}

func userExpectCommand(p site.Program) *cobra.Command {
	o := onAccounts{Program: p}
	c := o.command("expect LOGIN", "Let whoever signs in elsewhere with this login have what belongs to it", 1, func(ctx context.Context, args []string) error {
		return cli.WithStore(ctx, o.Program, &o.settings, func(database store.Store) error {
			return cli.Audited(ctx, o.Program, database, "user.expect", args[0], func() error { return database.ExpectUser(ctx, args[0]) })
		})
	})
	c.Long = `Let whoever signs in elsewhere (OpenID Connect) with this login have an account here, although
tokens, reviews, conversations, questions or an account on the board have that name. Without it
such a login is refused: nobody gets what belongs to others by choosing a name. It counts once.`
	return c
}

// printTakenOver says what belongs to the name of a new account, and so to whoever has it.
func (o *onAccounts) printTakenOver(login string, had store.Belongings) error {
	if !had.Any() {
		return nil
	}
	board := ""
	if had.Board {
		board = ", and the account on the board"
	}
	_, err := fmt.Fprintf(o.Stderr, "%s has what belonged to that name: %d reviews, %d conversations, %d questions, %d tokens that act for it%s\n",
		login, had.Reviews, had.Threads, had.Questions, had.Tokens, board)
	return err
}
