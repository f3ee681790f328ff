package board

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	forgeboard "github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
)

func issueCommand(p site.Program) *cobra.Command {
	commands := append([]*cobra.Command{issueCreateCommand(p)}, itemCommands(p, task.Issue)...)
	c := cli.Group("issue", "Issues on the board", commands...)
	c.Example = `  toryo board issue create --repo team/app --title "Fix the gate" --label bug
  toryo board issue list --repo team/app
  toryo board issue comment team/app#1 --body "Which gate?"
  toryo board issue assign team/app#1 ` + site.BoardBot
	return c
}

type boardIssueCreate struct {
	onBoard
	issue forge.NewIssue
}

func issueCreateCommand(p site.Program) *cobra.Command {
	o := boardIssueCreate{onBoard: onBoard{Program: p}}
	c := &cobra.Command{
		Use:   "create --repo OWNER/NAME --title TITLE [--body TEXT]",
		Short: "Create an issue",
		Example: `  toryo board issue create --repo team/app --title "Fix the gate" --body "It squeaks."
  toryo board issue create --repo team/app --title "Fix it all" --body - < list.md`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if err := o.requireRepo(); err != nil {
				return err
			}
			if o.issue.Body, err = bodyOf(c, o.issue.Body); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.bind(c)
	o.bindRepo(c)
	o.bindJSON(c)
	c.Flags().StringVar(&o.issue.Title, "title", "", "what it is about, in one line")
	bindBody(c, &o.issue.Body, "the text")
	c.Flags().StringArrayVar(&o.issue.Labels, "label", nil, "put on this `LABEL`; may be given several times")
	c.Flags().StringArrayVar(&o.issue.Assignees, "assign", nil, "assign this `LOGIN`; may be given several times")
	return c
}

func (o *boardIssueCreate) run(ctx context.Context) error {
	return o.withPerson(ctx, func(person *forgeboard.Forge) error {
		made, err := person.CreateIssue(ctx, o.repo, o.issue)
		if err != nil {
			return err
		}
		return o.printOpened(made)
	})
}

func (o *onBoard) printOpened(made forge.Item) error {
	shown := server.BoardItemOf(made)
	if o.json {
		return cli.PrintJSON(o.Stdout, shown)
	}
	_, err := fmt.Fprintf(o.Stdout, "opened %s: %s\n", shown.Item, shown.Title)
	return err
}
