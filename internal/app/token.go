package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

func (p commands) tokenCommand() *cobra.Command {
	return group("token", "Make, list and revoke API tokens",
		p.tokenCreateCommand(), p.tokenListCommand(), p.tokenRevokeCommand())
}

// withStore runs a command that works on the database without a server.
func (p program) withStore(ctx context.Context, s *settings, do func(store.Store) error) (err error) {
	loaded, err := s.load(p)
	if err != nil {
		return err
	}
	database, err := openStore(ctx, loaded)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	return do(database)
}

type tokenCreate struct {
	program
	settings settings
	role     string
	name     string
}

func (p commands) tokenCreateCommand() *cobra.Command {
	o := tokenCreate{program: p.program}
	c := &cobra.Command{
		Use:   "create --role ROLE [--name NAME]",
		Short: "Make a token and print it: this is the only time that it can be seen",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.bind(c, dataFlag)
	c.Flags().StringVar(&o.role, "role", "", "what the token may do: "+strings.Join(access.RoleNames(), ", "))
	c.Flags().StringVar(&o.name, "name", "", "whose it is, for the list")
	return c
}

func (o tokenCreate) run(ctx context.Context) error {
	role, err := access.ParseRole(o.role)
	if err != nil {
		return err
	}
	return o.withStore(ctx, &o.settings, func(database store.Store) error {
		var token string
		err := o.audited(ctx, database, "token.create", o.name+" role="+string(role), func() (err error) {
			token, err = access.Tokens{Store: database, Now: o.now}.Create(ctx, role, o.name)
			return err
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.stdout, token)
		return err
	})
}

func (p commands) tokenListCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without their secrets",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), &s, func(database store.Store) error { return p.listTokens(c.Context(), database) })
		},
	}
	s.bind(c, dataFlag)
	return c
}

func (p program) listTokens(ctx context.Context, database store.Tokens) error {
	tokens, err := database.ListTokens(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
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

func (p commands) tokenRevokeCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "revoke ID",
		Short: "End a token; ID is from toryo token list",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.withStore(c.Context(), &s, func(database store.Store) error {
				err := p.audited(c.Context(), database, "token.revoke", args[0], func() error {
					return database.RevokeToken(c.Context(), args[0], p.now())
				})
				if task.CodeOf(err) == task.NotFound {
					return task.Errorf(task.NotFound, "there is no token %s", args[0]).WithMend("see toryo token list for the ids")
				}
				return err
			})
		},
	}
	s.bind(c, dataFlag)
	return c
}
