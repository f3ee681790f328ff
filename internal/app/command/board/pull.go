package board

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	forgeboard "github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

func pullCommand(p site.Program) *cobra.Command {
	commands := append([]*cobra.Command{pullCreateCommand(p)}, itemCommands(p, task.Pull)...)
	commands = append(commands, diffCommand(p), reviewCommand(p), replyCommand(p), mergeCommand(p))
	c := cli.Group("pr", "Pull requests on the board", commands...)
	c.Example = `  toryo board pr list --repo team/app
  toryo board pr diff team/app#2
  toryo board pr review team/app#2 --request-changes --line 'gate.go:12=Why not oil?'
  toryo board pr merge team/app#2`
	return c
}

type boardPullCreate struct {
	onBoard
	proposal forge.NewPull
}

func pullCreateCommand(p site.Program) *cobra.Command {
	o := boardPullCreate{onBoard: onBoard{Program: p}}
	c := &cobra.Command{
		Use:     "create --repo OWNER/NAME --head BRANCH --title TITLE [--base BRANCH] [--body TEXT]",
		Short:   "Create a pull request between two branches of a repository",
		Example: `  toryo board pr create --repo team/app --head gate --title "Oil the gate" --body "Closes #1"`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if err := o.requireRepo(); err != nil {
				return err
			}
			if o.proposal.Body, err = bodyOf(c, o.proposal.Body); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.bind(c)
	o.bindRepo(c)
	o.bindJSON(c)
	c.Flags().StringVar(&o.proposal.Title, "title", "", "what it does, in one line")
	bindBody(c, &o.proposal.Body, "the text")
	c.Flags().StringVar(&o.proposal.Head, "head", "", "the `BRANCH` to be merged")
	c.Flags().StringVar(&o.proposal.Base, "base", "", "the `BRANCH` to merge into (default: the repository's default branch)")
	c.Flags().BoolVar(&o.proposal.Draft, "draft", false, "it is not ready yet")
	return c
}

func (o *boardPullCreate) run(ctx context.Context) error {
	return o.withPerson(ctx, func(person *forgeboard.Forge) error {
		item, opened, err := person.CreatePull(ctx, o.repo, o.proposal)
		if err != nil {
			return err
		}
		if !opened && !o.json {
			return o.confirm(item.Key, "these branches have an open pull request already:")
		}
		return o.printOpened(item)
	})
}

func diffCommand(p site.Program) *cobra.Command {
	o := onBoard{Program: p}
	return o.onItem(&cobra.Command{
		Use:   "diff ITEM",
		Short: "Print what a pull request changes, as git diff does",
		Args:  cobra.ExactArgs(1),
	}, task.Pull, func(c *cobra.Command, person *forgeboard.Forge, key task.Key, _ []string) error {
		diff, err := person.Diff(c.Context(), key)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(o.Stdout, diff.Patch)
		return err
	})
}

func mergeCommand(p site.Program) *cobra.Command {
	o := onBoard{Program: p}
	return o.onItem(&cobra.Command{
		Use:   "merge ITEM",
		Short: "Merge a pull request, and close the issues that its text says it closes",
		Args:  cobra.ExactArgs(1),
	}, task.Pull, func(c *cobra.Command, person *forgeboard.Forge, key task.Key, _ []string) error {
		if _, err := person.Merge(c.Context(), key); err != nil {
			return err
		}
		return o.confirm(key, "merged")
	})
}

func replyCommand(p site.Program) *cobra.Command {
	o := onBoard{Program: p}
	var body string
	c := o.onItem(&cobra.Command{
		Use:   "reply ITEM THREAD --body TEXT",
		Short: "Reply to a conversation on a line; THREAD is from pr show",
		Args:  cobra.ExactArgs(2),
	}, task.Pull, func(c *cobra.Command, person *forgeboard.Forge, key task.Key, args []string) error {
		text, err := bodyOf(c, body)
		if err != nil {
			return err
		}
		if _, err := person.AddReply(c.Context(), key, args[0], text); err != nil {
			return err
		}
		return o.confirm(key, "answered on")
	})
	bindBody(c, &body, "the answer")
	return c
}

type boardReview struct {
	onBoard
	approve bool
	request bool
	body    string
	lines   []string
}

func reviewCommand(p site.Program) *cobra.Command {
	o := boardReview{onBoard: onBoard{Program: p}}
	c := o.onItem(&cobra.Command{
		Use:   "review ITEM [--approve | --request-changes] [--body TEXT] [--line PATH:LINE=TEXT]...",
		Short: "Review a pull request: approve it, request changes, or comment",
		Example: `  toryo board pr review team/app#2 --approve
  toryo board pr review team/app#2 --body "Nice." --line 'gate.go:12=Why not oil?' --line 'gate.go:9:old=This was right.'`,
		Args: cobra.ExactArgs(1),
	}, task.Pull, func(c *cobra.Command, person *forgeboard.Forge, key task.Key, _ []string) (err error) {
		if o.body, err = bodyOf(c, o.body); err != nil {
			return err
		}
		return o.run(c.Context(), person, key)
	})
	c.Flags().BoolVar(&o.approve, "approve", false, "it is good")
	c.Flags().BoolVar(&o.request, "request-changes", false, "it has to change first")
	bindBody(c, &o.body, "what you think of it")
	c.Flags().StringArrayVar(&o.lines, "line", nil, "comment on a line of the diff, `PATH:LINE=TEXT`; PATH:LINE:old=TEXT for one that is gone")
	return c
}

func (o *boardReview) run(ctx context.Context, person *forgeboard.Forge, key task.Key) error {
	judgement := forge.NewReview{Verdict: forge.Remark, Body: o.body}
	done := "commented on"
	switch {
	case o.approve && o.request:
		return task.Errorf(task.Usage, "a review cannot both approve and request changes").WithHint("give --approve or --request-changes")
	case o.approve:
		judgement.Verdict, done = forge.Approve, "approved"
	case o.request:
		judgement.Verdict, done = forge.RequestChanges, "requested changes on"
	}
	for _, text := range o.lines {
		line, err := parseLine(text)
		if err != nil {
			return err
		}
		judgement.Lines = append(judgement.Lines, line)
	}
	if _, err := person.AddReview(ctx, key, judgement); err != nil {
		return err
	}
	return o.confirm(key, done)
}

var linePattern = lazyregexp.New(`(?s)^(.+?):([0-9]{1,9})(:old)?=(.*)$`)

// parseLine reads a comment on a line.
func parseLine(text string) (forge.LineRemark, error) {
	parts := linePattern.FindStringSubmatch(text)
	if parts == nil {
		return forge.LineRemark{}, task.Errorf(task.Usage, "%q is not a comment on a line", text).WithHint("give it as PATH:LINE=TEXT, for example 'gate.go:12=Why?'")
	}
	line, err := strconv.Atoi(parts[2])
	if err != nil {
		return forge.LineRemark{}, task.Errorf(task.Usage, "%q is not the number of a line", parts[2])
	}
	side := forge.NewSide
	if parts[3] != "" {
		side = forge.OldSide
	}
	return forge.LineRemark{Anchor: forge.Anchor{Path: parts[1], Side: side, Line: line}, Body: parts[4]}, wire.CheckText(parts[4])
}
