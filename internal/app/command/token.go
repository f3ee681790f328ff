package command

import (
	"bufio"
	"cmp"
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
	person   string
}

func tokenCreateCommand(p site.Program) *cobra.Command {
	o := tokenCreate{Program: p}
	c := &cobra.Command{
		Use:   "create --role ROLE [--name NAME] [--for LOGIN]",
		Short: "Create a token and print it; it cannot be shown again",
		Long: `Create a token and print it; it cannot be shown again. With --for it acts for a person:
reviews, conversations and what it does on the board are that person's, as on the pages.
Without --for it acts for its name. One without a name cannot be identified in the
list and cannot own reviews; on a terminal the name is asked for.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().StringVar(&o.role, "role", "", "what the token may do: "+strings.Join(access.RoleNames(), ", "))
	cli.CompleteFlag(c, "role", access.RoleNames()...)
	c.Flags().StringVar(&o.name, "name", "", "what it is called in the list, and whom it acts for without --for")
	c.Flags().StringVar(&o.person, "for", "", "the account that it acts for (`LOGIN`)")
	return c
}

func (o *tokenCreate) run(ctx context.Context) error {
	if o.role == "" {
		return task.Errorf(task.Usage, "toryo token create needs --role, what the token may do").WithHint("use one of %s", strings.Join(access.RoleNames(), ", "))
	}
	role, err := access.ParseRole(o.role)
	if err != nil {
		return err
	}
	if err := o.askName(); err != nil {
		return err
	}
	return cli.WithNewStore(ctx, o.Program, &o.settings, func(database store.Store) error {
		var token string
		subject := cmp.Or(o.name, o.person) + " role=" + string(role)
		if o.person != "" {
			subject += " for=" + o.person
		}
		err := cli.Audited(ctx, o.Program, database, "token.create", subject, func() (err error) {
			token, err = o.create(ctx, database, role)
			return err
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.Stdout, token)
		return err
	})
}

// askName asks for the name of a token that would have none, or says what that means.
func (o *tokenCreate) askName() error {
	o.name = strings.TrimSpace(o.name)
	if o.name != "" || o.person != "" {
		return nil
	}
	if file, is := o.Stdin.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		_, _ = fmt.Fprint(o.Stderr, "Name of the token (whose it is, or what for): ") // who cannot see it can still type
		line, err := bufio.NewReader(io.LimitReader(file, maxTokenName)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return task.Wrap(task.Usage, err, "the name cannot be read")
		}
		o.name = strings.TrimSpace(line)
	}
	if o.name == "" {
		_, _ = fmt.Fprintln(o.Stderr, "the token has no name: it cannot be identified in the list and cannot own reviews; set a name with --name or --for") // it is made all the same
	}
	return nil
}

// maxTokenName is how many bytes of a name are read that somebody types.
const maxTokenName = 400

func (o *tokenCreate) create(ctx context.Context, database store.Store, role access.Role) (string, error) {
	tokens := access.Tokens{Store: database, Now: o.Now}
	if o.person == "" {
		return tokens.Create(ctx, role, o.name)
	}
	person, err := database.User(ctx, o.person)
	if task.CodeOf(err) == task.NotFound {
		err = task.Errorf(task.NotFound, "there is no user %q", o.person).WithHint("see toryo user list")
	}
	if err != nil {
		return "", err
	}
	return tokens.CreateFor(ctx, role, o.name, person)
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
	_, _ = fmt.Fprintln(table, "ID\tROLE\tNAME\tUSER\tCREATED\tREVOKED") // Flush reports what went wrong
	for _, token := range tokens {
		revoked := "-"
		if !token.RevokedAt.IsZero() {
			revoked = token.RevokedAt.Format("2006-01-02 15:04")
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", token.ID, token.Role, cli.OrDash(token.Name), cli.OrDash(token.Person), token.CreatedAt.Format("2006-01-02 15:04"), revoked)
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
