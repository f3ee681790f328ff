package board

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	forgeboard "github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// itemCommands are what can be done with issues and pull requests alike.
func itemCommands(p site.Program, kind task.ItemKind) []*cobra.Command {
	what := "an issue"
	if kind == task.Pull {
		what = "a pull request"
	}
	return []*cobra.Command{
		listCommand(p, kind),
		showCommand(p, kind, what),
		commentCommand(p, kind, what),
		eachCommand(p, kind, "assign", "LOGIN", "Assign users to "+what, "assigned",
			func(ctx context.Context, person *forgeboard.Forge, key task.Key, login string) error {
				return person.Assign(ctx, key, login)
			}),
		eachCommand(p, kind, "unassign", "LOGIN", "Unassign users from "+what, "unassigned",
			func(ctx context.Context, person *forgeboard.Forge, key task.Key, login string) error {
				return person.Unassign(ctx, key, login)
			}),
		cli.Group("label", "Put labels on "+what+" and take them off",
			eachCommand(p, kind, "add", "LABEL", "Put labels on "+what, "labelled",
				func(ctx context.Context, person *forgeboard.Forge, key task.Key, label string) error {
					return person.AddLabel(ctx, key, label)
				}),
			eachCommand(p, kind, "remove", "LABEL", "Take labels off "+what, "no longer labelled",
				func(ctx context.Context, person *forgeboard.Forge, key task.Key, label string) error {
					return person.RemoveLabel(ctx, key, label)
				})),
		stateCommand(p, kind, "close", "Close "+what, forge.Closed),
		stateCommand(p, kind, "reopen", "Open "+what+" again", forge.Open),
	}
}

type boardList struct {
	onBoard
	listing forge.Listing
	state   string
}

func listCommand(p site.Program, kind task.ItemKind) *cobra.Command {
	o := boardList{onBoard: onBoard{Program: p}, listing: forge.Listing{Kind: kind}}
	names := []string{"open", "closed", "all"}
	if kind == task.Pull {
		names = []string{"open", "closed", "merged", "all"}
	}
	states := strings.Join(names[:len(names)-1], ", ") + " or all"
	c := &cobra.Command{
		Use:   "list [--repo OWNER/NAME]",
		Short: "List open items, or others",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch o.state {
			case "all":
			case "open", "closed", "merged":
				o.listing.State = forge.ItemState(o.state)
			default:
				return task.Errorf(task.Usage, "there is no state %q", o.state).WithHint("use %s", states)
			}
			o.listing.Repository = o.repo
			return o.run(c.Context())
		},
	}
	o.bind(c)
	o.bindRepo(c)
	o.bindJSON(c)
	c.Flags().StringVar(&o.state, "state", "open", states)
	cli.CompleteFlag(c, "state", names...)
	c.Flags().StringArrayVar(&o.listing.Labels, "label", nil, "only with this `LABEL`; may be given several times")
	c.Flags().StringVar(&o.listing.Assignee, "assignee", "", "only what is assigned to this `LOGIN`")
	return c
}

func (o *boardList) run(ctx context.Context) error {
	return o.withPerson(ctx, func(person *forgeboard.Forge) error {
		found, err := person.Browse(ctx, o.listing)
		if err != nil {
			return err
		}
		listing := wire.BoardItems{Items: []wire.BoardItem{}}
		for _, item := range found {
			listing.Items = append(listing.Items, server.BoardItemOf(item))
		}
		if o.json {
			return cli.PrintJSON(o.Stdout, listing)
		}
		return printItems(o.Program, listing.Items)
	})
}

// onItem makes a command about one item, with flags that all of them have.
func (o *onBoard) onItem(c *cobra.Command, kind task.ItemKind, do func(*cobra.Command, *forgeboard.Forge, task.Key, []string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		key, err := o.item(kind, args[0])
		if err != nil {
			return err
		}
		return o.withPerson(c.Context(), func(person *forgeboard.Forge) error { return do(c, person, key, args[1:]) })
	}
	o.bind(c)
	o.bindRepo(c)
	return c
}

func showCommand(p site.Program, kind task.ItemKind, what string) *cobra.Command {
	o := onBoard{Program: p}
	c := o.onItem(&cobra.Command{
		Use:   "show ITEM",
		Short: "Show " + what + " with everything that happened to it",
		Args:  cobra.ExactArgs(1),
	}, kind, func(c *cobra.Command, person *forgeboard.Forge, key task.Key, _ []string) error {
		details, err := server.ReadBoardItem(c.Context(), person, key)
		if err != nil {
			return err
		}
		if o.json {
			return cli.PrintJSON(o.Stdout, details)
		}
		return printDetails(o.Program, details)
	})
	o.bindJSON(c)
	return c
}

func commentCommand(p site.Program, kind task.ItemKind, what string) *cobra.Command {
	o := onBoard{Program: p}
	var body string
	c := o.onItem(&cobra.Command{
		Use:   "comment ITEM --body TEXT",
		Short: "Comment on " + what,
		Args:  cobra.ExactArgs(1),
	}, kind, func(c *cobra.Command, person *forgeboard.Forge, key task.Key, _ []string) error {
		text, err := bodyOf(c, body)
		if err != nil {
			return err
		}
		if _, err := person.AddComment(c.Context(), key, text); err != nil {
			return err
		}
		return o.confirm(key, "commented on")
	})
	bindBody(c, &body, "the comment")
	return c
}

// eachCommand makes a command that does the same with each of its arguments.
func eachCommand(p site.Program, kind task.ItemKind, verb, argument, short, done string,
	do func(context.Context, *forgeboard.Forge, task.Key, string) error,
) *cobra.Command {
	o := onBoard{Program: p}
	return o.onItem(&cobra.Command{
		Use:   verb + " ITEM " + argument + "...",
		Short: short,
		Args:  cobra.MinimumNArgs(2),
	}, kind, func(c *cobra.Command, person *forgeboard.Forge, key task.Key, each []string) error {
		for _, one := range each {
			if err := do(c.Context(), person, key, one); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(o.Stdout, "%s#%d: %s %s\n", key.Repository, key.Number, done, strings.Join(each, ", "))
		return err
	})
}

func stateCommand(p site.Program, kind task.ItemKind, verb, short string, state forge.ItemState) *cobra.Command {
	o := onBoard{Program: p}
	return o.onItem(&cobra.Command{
		Use:   verb + " ITEM",
		Short: short,
		Args:  cobra.ExactArgs(1),
	}, kind, func(c *cobra.Command, person *forgeboard.Forge, key task.Key, _ []string) error {
		if err := person.SetState(c.Context(), key, state); err != nil {
			return err
		}
		if state == forge.Open {
			return o.confirm(key, "reopened")
		}
		return o.confirm(key, "closed")
	})
}

// confirm says what was done.
func (o *onBoard) confirm(key task.Key, done string) error {
	_, err := fmt.Fprintf(o.Stdout, "%s %s#%d\n", done, key.Repository, key.Number)
	return err
}
