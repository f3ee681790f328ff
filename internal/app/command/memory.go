package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Memory is the command toryo memory.
func Memory(p site.Program) *cobra.Command {
	return cli.Group("memory", "Show, write, edit and forget notes from reviews",
		memoryListCommand(p), memoryAddCommand(p), memoryEditCommand(p), memoryForgetCommand(p))
}

// memoryOn is a command that reads or changes notes through a server.
type memoryOn struct {
	operate
	repository, search, path string
}

func memoryListCommand(p site.Program) *cobra.Command {
	o := memoryOn{operate: operate{Program: p}}
	c := &cobra.Command{
		Use: "list", Short: "List notes from reviews, the newest first",
		Long: `List notes from reviews, the newest first: what people asked for, how that ended and who asked.
The page Review notes shows the same. It asks the server that runs on the data directory; with
--server and TORYO_TOKEN it works from anywhere.`,
		Example: "  toryo memory list --repository gitea:team/app\n  toryo memory list --search timeout",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return o.list(c.Context()) },
	}
	o.bind(c)
	c.Flags().StringVar(&o.repository, "repository", "", "only of this `REPOSITORY`, with its forge, such as gitea:team/app")
	c.Flags().StringVar(&o.search, "search", "", "only those with all these `WORDS`")
	return c
}

func (o *memoryOn) list(ctx context.Context) error {
	return o.connect(ctx, access.Viewer, func(client *wire.Client) error {
		all := wire.Notes{Notes: []wire.Note{}}
		for before := ""; ; {
			found, err := client.Notes(ctx, o.repository, o.search, before, 0)
			if err != nil {
				return err
			}
			all.Enabled, all.Notes = found.Enabled, append(all.Notes, found.Notes...)
			if before = found.Before; before == "" {
				break
			}
		}
		if o.json {
			return cli.PrintJSON(o.Stdout, all)
		}
		return o.print(all)
	})
}

func (o *memoryOn) print(all wire.Notes) error {
	var text strings.Builder
	for _, note := range all.Notes {
		parts := []string{note.Repository, note.AskedAt.UTC().Format("2006-01-02"), note.Author}
		if note.Path != "" {
			parts = append(parts, note.Path)
		}
		if note.Ending != "" {
			parts = append(parts, note.Ending)
		}
		if note.Asked > 1 {
			parts = append(parts, fmt.Sprintf("asked for on %d pull requests", note.Asked))
		}
		if note.EditedBy != "" && note.EditedBy != note.Author {
			parts = append(parts, "edited by "+note.EditedBy)
		}
		if note.Source != "" {
			parts = append(parts, note.Source)
		}
		fmt.Fprintf(&text, "%s  %s\n    %s\n", note.ID, inOneLine(strings.Join(parts, ", ")), inOneLine(note.Text))
	}
	if len(all.Notes) == 0 {
		text.WriteString("there are no notes\n")
	}
	if !all.Enabled {
		text.WriteString("memory.enabled is off: nothing is learned, and tasks are given no notes\n")
	}
	_, err := fmt.Fprint(o.Stdout, text.String())
	return err
}

// inOneLine is a text of others, whole, as a terminal can show it.
func inOneLine(text string) string { return textfmt.OneLine(strings.Map(cli.Visible, text)) }

func memoryAddCommand(p site.Program) *cobra.Command {
	o := memoryOn{operate: operate{Program: p}}
	c := &cobra.Command{
		Use: "add REPOSITORY TEXT", Short: "Write a note for later tasks of a repository",
		Long:    "Write a note for later tasks of a repository, which is named with its forge. With --path it\nfits tasks that touch this file or its folder, without it may be given to any task. A task is given five\nnotes at most.",
		Example: `  toryo memory add gitea:team/app "We write British English."`,
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return o.withServer(c.Context(), func(client *wire.Client) error {
				made, err := client.AddNote(c.Context(), wire.NewNote{Repository: args[0], Text: args[1], Path: o.path})
				return o.changed("added", made, err)
			})
		},
	}
	o.bind(c)
	c.Flags().StringVar(&o.path, "path", "", "the `FILE` that it is about")
	return c
}

func memoryEditCommand(p site.Program) *cobra.Command {
	o := memoryOn{operate: operate{Program: p}}
	c := &cobra.Command{
		Use: "edit NOTE TEXT", Short: "Change the text of a note, by its id",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return o.withServer(c.Context(), func(client *wire.Client) error {
				edited, err := client.EditNote(c.Context(), args[0], args[1])
				return o.changed("changed", edited, err)
			})
		},
	}
	o.bind(c)
	return c
}

func memoryForgetCommand(p site.Program) *cobra.Command {
	o := memoryOn{operate: operate{Program: p}}
	c := &cobra.Command{
		Use: "forget NOTE", Short: "Remove a note for good, by its id",
		Long: "Remove a note for good, by its id. Nothing is learned again from the comments that it came from.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.withServer(c.Context(), func(client *wire.Client) error {
				return o.changed("forgot", wire.Note{ID: args[0]}, client.ForgetNote(c.Context(), args[0]))
			})
		},
	}
	o.bind(c)
	return c
}

// changed prints what was done with a note.
func (o *memoryOn) changed(what string, note wire.Note, err error) error {
	if err != nil {
		return err
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, note)
	}
	_, err = fmt.Fprintf(o.Stdout, "%s note %s %s\n", what, cli.OneLine(note.ID), textfmt.Shorten(cli.OneLine(note.Text), 80))
	return err
}
