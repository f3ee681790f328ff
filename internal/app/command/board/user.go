package board

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	forgeboard "github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/task"
)

func userCommand(p site.Program) *cobra.Command {
	c := cli.Group("user", "Users of the board",
		userAddCommand(p), userListCommand(p), userAccessCommand(p), userRemoveCommand(p))
	c.Long = `Users of the board. Access is for the whole board: read allows to read, to open issues
and to comment, write allows the rest, admin also to remove comments of
others, and none is as good as no account.`
	return c
}

func userAddCommand(p site.Program) *cobra.Command {
	o := onBoard{Program: p}
	var access string
	c := &cobra.Command{
		Use:     "add LOGIN [--access ACCESS]",
		Short:   "Create an account",
		Example: "  toryo board user add alice --access write",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			level, err := parseAccess(access)
			if err != nil {
				return err
			}
			return o.withNewBoard(c.Context(), func(b *forgeboard.Board) error {
				if err := b.AddUser(c.Context(), args[0], level); err != nil {
					return err
				}
				_, err = fmt.Fprintf(o.Stdout, "added %s with %s access\n", args[0], level)
				return err
			})
		},
	}
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().StringVar(&access, "access", forge.ReadAccess.String(), "what the user may do: none, read, write, admin")
	cli.CompleteFlag(c, "access", accessNames()...)
	return c
}

// boardUser is a user of the board, as programs read it.
type boardUser struct {
	Login  string `json:"login"`
	Access string `json:"access"`
}

func userListCommand(p site.Program) *cobra.Command {
	o := onBoard{Program: p}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the users of the board and their access",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.withBoard(c.Context(), func(b *forgeboard.Board) error { return o.listUsers(c.Context(), b) })
		},
	}
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func (o *onBoard) listUsers(ctx context.Context, b *forgeboard.Board) error {
	found, err := b.Users(ctx)
	if err != nil {
		return err
	}
	if o.json {
		users := []boardUser{}
		for _, one := range found {
			users = append(users, boardUser{one.Login, one.Access.String()})
		}
		return cli.PrintJSON(o.Stdout, map[string][]boardUser{"users": users})
	}
	table := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "LOGIN\tACCESS") // Flush reports what went wrong
	for _, one := range found {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", one.Login, one.Access)
	}
	return table.Flush()
}

func userAccessCommand(p site.Program) *cobra.Command {
	o := onBoard{Program: p}
	c := &cobra.Command{
		Use:     "access LOGIN none|read|write|admin",
		Short:   "Change the access of a user",
		Example: "  toryo board user access alice admin",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			level, err := parseAccess(args[1])
			if err != nil {
				return err
			}
			return o.changeUser(c.Context(), args[0], "has "+level.String()+" access now", func(b *forgeboard.Board) error {
				return b.SetAccess(c.Context(), args[0], level)
			})
		},
	}
	o.settings.Bind(c, cli.DataFlag)
	cli.CompleteArgument(c, 1, accessNames()...)
	return c
}

func userRemoveCommand(p site.Program) *cobra.Command {
	o := onBoard{Program: p}
	c := &cobra.Command{
		Use:   "remove LOGIN",
		Short: "Remove an account; its texts stay, and its login cannot be used again",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.changeUser(c.Context(), args[0], "has no account any more", func(b *forgeboard.Board) error {
				return b.RemoveUser(c.Context(), args[0])
			})
		},
	}
	o.settings.Bind(c, cli.DataFlag)
	return c
}

func (o *onBoard) changeUser(ctx context.Context, login, said string, change func(*forgeboard.Board) error) error {
	return o.withBoard(ctx, func(b *forgeboard.Board) error {
		found, err := b.HasUser(ctx, login)
		if err != nil {
			return err
		}
		if !found {
			return task.Errorf(task.NotFound, "there is no user %q on the board", login).WithHint("see toryo board user list")
		}
		if err := change(b); err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.Stdout, login, said)
		return err
	})
}
