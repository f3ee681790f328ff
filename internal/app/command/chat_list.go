package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

// threadEntry is a conversation in a list.
type threadEntry struct {
	wire.Thread
	Title string `json:"title"`
	Turns int    `json:"turns"`
}

// listedThreads is how many conversations a list has.
const listedThreads = 500

// printThreads lists the newest conversations of somebody, or those about a review, oldest
// first.
func (o *chat) printThreads(ctx context.Context, service *review.Service, who string, args []string) error {
	about := ""
	if len(args) == 1 {
		one, err := service.Review(ctx, who, args[0])
		if err != nil {
			return err
		}
		about = one.ID
	}
	found, err := service.ThreadsOf(ctx, who, about, listedThreads+1)
	if err != nil {
		return err
	}
	if len(found) > listedThreads {
		found = found[:listedThreads]
		fmt.Fprintf(o.Stderr, "only the newest %d conversations are listed\n", listedThreads)
	}
	entries := make([]threadEntry, 0, len(found))
	for _, one := range slices.Backward(found) {
		entries = append(entries, threadEntry{Thread: server.ThreadOf(one.Thread), Title: server.TitleOf(one.Title), Turns: one.Turns})
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, map[string][]threadEntry{"threads": entries})
	}
	table := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tREVIEW\tSTARTED\tTURNS\tLANGUAGE\tTITLE") // Flush reports what went wrong
	for _, entry := range entries {
		of := cli.OneLine(entry.Title)
		if entry.Shared {
			of += " (on the forge)"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", entry.ID, entry.ReviewID, entry.CreatedAt.Format(cli.Minutes), entry.Turns, cli.OrDash(entry.Language), of)
	}
	return table.Flush()
}

// printMessages prints what was said in a conversation.
func (o *chat) printMessages(ctx context.Context, service *review.Service, who, id string) error {
	thread, found, err := store.Optional(service.Thread(ctx, who, id))
	if err == nil && !found {
		thread, found, err = lastThread(ctx, service, who, id, true)
	}
	if err != nil {
		return err
	}
	if !found {
		return task.Errorf(task.NotFound, "there are no conversations about the review %s yet", id).WithHint("start one with toryo chat %s", id)
	}
	said, err := service.Messages(ctx, who, thread.ID)
	if err != nil {
		return err
	}
	if o.json {
		shown := wire.Messages{Messages: []wire.Message{}}
		for _, one := range said {
			shown.Messages = append(shown.Messages, server.MessageOf(one))
		}
		return cli.PrintJSON(o.Stdout, shown)
	}
	fmt.Fprintf(o.Stdout, "conversation %s about review %s\n", thread.ID, thread.ReviewID)
	for _, one := range said {
		o.printMessage(one, who)
	}
	return nil
}

func (o *chat) printMessage(said review.Said, who string) {
	name := "assistant"
	if said.Role == store.UserMessage {
		name = who
		if said.Author != "" {
			name = said.Author
		}
	}
	fmt.Fprintf(o.Stdout, "\n%s, %s:\n%s\n", textfmt.Plain(name), said.CreatedAt.Format(cli.Minutes), textfmt.Plain(strings.TrimSpace(said.Content)))
	switch said.State {
	case store.Unanswered:
		fmt.Fprintf(o.Stdout, "  no answer: %s\n", textfmt.Plain(said.Cause))
	case store.Answering:
		fmt.Fprintln(o.Stdout, "  writing an answer…")
	case store.Answered:
	}
	o.printCitations(said)
}
