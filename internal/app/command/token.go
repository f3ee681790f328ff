package command

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Token is the command toryo token.
func Token(p site.Program) *cobra.Command {
	return cli.Group("token", "Make, list and revoke API tokens",
		tokenCreateCommand(p), tokenListCommand(p), tokenRevokeCommand(p))
}

type tokenCreate struct {
	site.Program
	settings cli.Settings
	role     string
	name     string
}

func tokenCreateCommand(p site.Program) *cobra.Command {
	o := tokenCreate{Program: p}
	c := &cobra.Command{
		Use:   "create --role ROLE [--name NAME]",
		Short: "Create a token and print it; it cannot be shown again",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().StringVar(&o.role, "role", "", "what the token may do: "+strings.Join(access.RoleNames(), ", "))
	cli.CompleteFlag(c, "role", access.RoleNames()...)
	c.Flags().StringVar(&o.name, "name", "", "whose it is, for the list")
	return c
}

func (o tokenCreate) run(ctx context.Context) error {
	if o.role == "" {
		return task.Errorf(task.Usage, "toryo token create needs --role, what the token may do").WithHint("use one of %s", strings.Join(access.RoleNames(), ", "))
	}
	role, err := access.ParseRole(o.role)
	if err != nil {
		return err
	}
	return cli.WithNewStore(ctx, o.Program, &o.settings, func(database store.Store) error {
		var token string
		err := cli.Audited(ctx, o.Program, database, "token.create", o.name+" role="+string(role), func() (err error) {
			token, err = access.Tokens{Store: database, Now: o.Now}.Create(ctx, role, o.name)
			return err
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.Stdout, token)
		return err
	})
}

func tokenListCommand(p site.Program) *cobra.Command {
	var s cli.Settings
	c := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without their secrets",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.WithStore(c.Context(), p, &s, func(database store.Store) error { return listTokens(c.Context(), p, database) })
		},
	}
	s.Bind(c, cli.DataFlag)
	return c
}

func listTokens(ctx context.Context, p site.Program, database store.Tokens) error {
	tokens, err := database.ListTokens(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tROLE\tNAME\tMADE\tREVOKED") // Flush reports what went wrong
	for _, token := range tokens {
		revoked := "-"
		if !token.RevokedAt.IsZero() {
			revoked = token.RevokedAt.Format("2006-01-02 15:04")
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", token.ID, token.Role, token.Name, token.CreatedAt.Format("2006-01-02 15:04"), revoked)
	}
	return table.Flush()
}

func tokenRevokeCommand(p site.Program) *cobra.Command {
	var s cli.Settings
	c := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token; ID is from toryo token list",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.WithStore(c.Context(), p, &s, func(database store.Store) error {
				err := cli.Audited(c.Context(), p, database, "token.revoke", args[0], func() error {
					return database.RevokeToken(c.Context(), args[0], p.Now())
				})
				if task.CodeOf(err) == task.NotFound {
					return task.Errorf(task.NotFound, "there is no token %s", args[0]).WithHint("see toryo token list for the ids")
				}
				return err
			})
		},
	}
	s.Bind(c, cli.DataFlag)
	return c
}
