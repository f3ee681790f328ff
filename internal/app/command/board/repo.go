package board

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	forgeboard "github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type boardImport struct {
	onBoard
	source string
	name   string
}

func importCommand(p site.Program) *cobra.Command {
	o := boardImport{onBoard: onBoard{Program: p}}
	c := &cobra.Command{
		Use:   "import PATH|URL [--name OWNER/NAME]",
		Short: "Import a repository into the board, with all branches and tags",
		Long: `Import a repository into the board, with all branches and tags. It lies in the
folder board of the data directory, and git can clone it from there and push to it.

Without --name, a URL keeps the last two parts of its path and a folder is named after
you and itself. What git knows of passwords and the like is not used: clone such a
repository yourself and import the clone.`,
		Example: `  toryo board import .
  toryo board import ~/code/app --name team/app
  toryo board import https://example.com/team/app.git`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.source = args[0]
			return o.run(c.Context())
		},
	}
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().StringVar(&o.name, "name", "", "name on the board (`OWNER/NAME`)")
	return c
}

func (o *boardImport) run(ctx context.Context) error {
	source, local, err := locate(o.source)
	if err != nil {
		return err
	}
	return o.withNewBoard(ctx, func(b *forgeboard.Board) error {
		if o.name == "" {
			if o.name, err = nameFor(b, source, local); err != nil {
				return err
			}
		}
		made, err := b.Import(ctx, o.name, source)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.Stdout, "imported %s\ngit reaches it at %s\n", made.Name, b.Path(made.Name))
		return err
	})
}

// remotePattern is what git takes for an address on another machine: a URL, or
// host:path.
var remotePattern = lazyregexp.New(`^([A-Za-z0-9+.-]+://|[^/:]+:)`)

// locate tells a folder from an address, and makes its path good from anywhere.
func locate(source string) (located string, local bool, err error) {
	info, err := os.Stat(source)
	switch {
	case err == nil && !info.IsDir():
		return "", false, task.Errorf(task.Invalid, "%s is not a folder", source).WithHint("give the folder of a git repository, or a URL that git can clone")
	case err == nil:
		located, err = filepath.Abs(source)
		return located, true, err
	case remotePattern.MatchString(source):
		return source, false, nil
	default:
		return "", false, task.Errorf(task.NotFound, "there is no folder %q", source).WithHint("give a folder or a URL that git can clone")
	}
}

// nameFor makes a name for a repository from where it comes from.
func nameFor(b *forgeboard.Board, source string, local bool) (string, error) {
	bad := task.Errorf(task.Usage, "no name for the repository can be made from %q", source).WithHint("give one with --name owner/name")
	var owner string
	at := source
	if local {
		here, ok := b.LoginOf(cli.MachineUser())
		if !ok {
			return "", bad
		}
		owner = here
	} else {
		at = pathOf(source)
		owner = path.Base(path.Dir(at))
	}
	name := path.Base(filepath.ToSlash(at))
	name = strings.TrimSuffix(name, ".git")
	if forgeboard.CheckName(owner+"/"+name) != nil {
		return "", bad
	}
	return owner + "/" + name, nil
}

// pathOf is the path in an address, without the folder in which git keeps its
// things.
func pathOf(address string) string {
	at := address
	if parsed, err := url.Parse(address); err == nil && parsed.Scheme != "" && (parsed.Host != "" || parsed.Path != "") {
		at = parsed.Path
	} else if _, after, found := strings.Cut(address, ":"); found {
		at = after
	}
	return strings.TrimSuffix(strings.Trim(at, "/"), "/.git")
}

func repoCommand(p site.Program) *cobra.Command {
	o := onBoard{Program: p}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the repositories on the board",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.withBoard(c.Context(), func(b *forgeboard.Board) error { return o.listRepositories(c.Context(), b) })
		},
	}
	o.bind(c)
	o.bindJSON(c)
	return cli.Group("repo", "Repositories on the board", c)
}

func (o *onBoard) listRepositories(ctx context.Context, b *forgeboard.Board) error {
	login, err := o.actor(ctx, b)
	if err != nil {
		return err
	}
	found, err := b.As(login).Repositories(ctx)
	if err != nil {
		return err
	}
	if o.json {
		listing := wire.BoardRepositories{Repositories: []wire.BoardRepository{}}
		for _, one := range found {
			listing.Repositories = append(listing.Repositories, server.BoardRepositoryOf(one))
		}
		return cli.PrintJSON(o.Stdout, listing)
	}
	table := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tBRANCH\tFOLDER") // Flush reports what went wrong
	for _, one := range found {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", one.Name, cli.OrDash(one.DefaultBranch), b.Path(one.Name))
	}
	return table.Flush()
}
