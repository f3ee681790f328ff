package app

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

func (p commands) boardUserCommand() *cobra.Command {
	c := group("user", "Users of the board",
		p.boardUserAddCommand(), p.boardUserListCommand(), p.boardUserAccessCommand(), p.boardUserRemoveCommand())
	c.Long = `Users of the board. Access is for the whole board: read allows to read, to open issues
and to comment, write allows the rest, admin also to remove comments of
others, and none is as good as no account.`
	return c
}

func (p commands) boardUserAddCommand() *cobra.Command {
	o := onBoard{program: p.program}
	var access string
	c := &cobra.Command{
		Use:     "add LOGIN [--access ACCESS]",
		Short:   "Make an account",
		Example: "  toryo board user add alice --access write",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			level, err := parseAccess(access)
			if err != nil {
				return err
			}
			return o.withBoard(c.Context(), func(b servedBoard) error {
				if err := b.AddUser(c.Context(), args[0], level); err != nil {
					return err
				}
				_, err = fmt.Fprintf(o.stdout, "added %s with %s access\n", args[0], level)
				return err
			})
		},
	}
	o.settings.bind(c, dataFlag)
	c.Flags().StringVar(&access, "access", forge.ReadAccess.String(), "what the user may do: none, read, write, admin")
	return c
}

// boardUser is a user of the board, as programs read it.
type boardUser struct {
	Login  string `json:"login"`
	Access string `json:"access"`
}

func (p commands) boardUserListCommand() *cobra.Command {
	o := onBoard{program: p.program}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the users of the board and what they may do",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.withBoard(c.Context(), func(b servedBoard) error { return o.listUsers(c.Context(), b) })
		},
	}
	o.settings.bind(c, dataFlag)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func (o *onBoard) listUsers(ctx context.Context, b servedBoard) error {
	found, err := b.Users(ctx)
	if err != nil {
		return err
	}
	if o.json {
		users := []boardUser{}
		for _, one := range found {
			users = append(users, boardUser{one.Login, one.Access.String()})
		}
		return o.printJSON(map[string][]boardUser{"users": users})
	}
	table := tabwriter.NewWriter(o.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "LOGIN\tACCESS") // Flush reports what went wrong
	for _, one := range found {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", one.Login, one.Access)
	}
	return table.Flush()
}

func (p commands) boardUserAccessCommand() *cobra.Command {
	o := onBoard{program: p.program}
	c := &cobra.Command{
		Use:     "access LOGIN none|read|write|admin",
		Short:   "Change what a user may do",
		Example: "  toryo board user access alice admin",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			level, err := parseAccess(args[1])
			if err != nil {
				return err
			}
			return o.changeUser(c.Context(), args[0], "has "+level.String()+" access now", func(b servedBoard) error {
				return b.SetAccess(c.Context(), args[0], level)
			})
		},
	}
	o.settings.bind(c, dataFlag)
	return c
}

func (p commands) boardUserRemoveCommand() *cobra.Command {
	o := onBoard{program: p.program}
	c := &cobra.Command{
		Use:   "remove LOGIN",
		Short: "Remove an account; what it wrote stays, and nobody else gets its login",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.changeUser(c.Context(), args[0], "has no account any more", func(b servedBoard) error {
				return b.RemoveUser(c.Context(), args[0])
			})
		},
	}
	o.settings.bind(c, dataFlag)
	return c
}

func (o *onBoard) changeUser(ctx context.Context, login, said string, change func(servedBoard) error) error {
	return o.withBoard(ctx, func(b servedBoard) error {
		found, err := b.HasUser(ctx, login)
		if err != nil {
			return err
		}
		if !found {
			return task.Errorf(task.NotFound, "there is no user %q on the board", login).WithMend("see toryo board user list")
		}
		if err := change(b); err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.stdout, login, said)
		return err
	})
}
