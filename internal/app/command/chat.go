package command

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

type chat struct {
	onReviews
	fresh    bool
	language string
}

// Chat is the command toryo chat.
func Chat(p site.Program) *cobra.Command {
	o := chat{onReviews: onReviews{Program: p}}
	c := &cobra.Command{
		Use:   "chat REVIEW [MESSAGE]",
		Short: "Chat about a review",
		Long: `Talk with the model about a review. Without a message, each line of standard input is
one, until it ends. The conversation goes on where it was left.

Name sections as §3 or 第3段落, in English also as section 3: they are given to the
model for this message and the two after it. Below an answer stands which of its
citations are true.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), func(service *review.Service, who string) error { return o.converse(c, service, who, args) })
		},
	}
	o.bind(c)
	o.settings.NeedSecrets()
	c.Flags().BoolVar(&o.fresh, "new", false, "begin a new conversation")
	c.Flags().StringVar(&o.language, "language", "", "language of a new conversation: ja or en (default: that of the review)")
	cli.CompleteFlag(c, "language", string(task.Japanese), string(task.English))
	return c
}

func (o *chat) converse(c *cobra.Command, service *review.Service, who string, args []string) error {
	ctx := c.Context()
	thread, err := o.thread(ctx, service, who, args[0])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		return o.send(ctx, service, who, thread, args[1])
	}
	lines := bufio.NewScanner(c.InOrStdin())
	lines.Buffer(nil, 1<<20)
	fmt.Fprint(o.Stderr, "> ")
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) != "" {
			if err := o.send(ctx, service, who, thread, lines.Text()); err != nil {
				return err
			}
		}
		fmt.Fprint(o.Stderr, "> ")
	}
	fmt.Fprintln(o.Stderr)
	if err := lines.Err(); err != nil {
		return task.Wrap(task.Usage, err, "standard input cannot be read")
	}
	return nil
}

// thread is the last conversation of the caller about the review, or a new one.
func (o *chat) thread(ctx context.Context, service *review.Service, who, reviewID string) (store.Thread, error) {
	threads, err := service.Threads(ctx, who, reviewID)
	if err != nil {
		return store.Thread{}, err
	}
	for i := len(threads) - 1; i >= 0 && !o.fresh && o.language == ""; i-- {
		if threads[i].Owner == who {
			return threads[i], nil
		}
	}
	return service.AddThread(ctx, who, reviewID, task.Language(o.language))
}

// send sends a message and prints the answer as it comes in.
func (o *chat) send(ctx context.Context, service *review.Service, who string, thread store.Thread, text string) error {
	turn, err := service.Ask(ctx, who, thread.ID, review.Message{Content: text})
	if err != nil {
		return err
	}
	answer, err := turn.Follow(ctx, func(piece review.Piece) {
		if piece.Restart {
			fmt.Fprint(o.Stdout, "\n[...]\n")
		}
		fmt.Fprint(o.Stdout, textfmt.Plain(piece.Text))
	})
	fmt.Fprintln(o.Stdout)
	if err != nil {
		return err
	}
	said, err := service.Answer(ctx, who, answer)
	if err != nil {
		return err
	}
	for _, citation := range said.Citations {
		fmt.Fprintf(o.Stdout, "  %s: %s\n", textfmt.Plain(citation.Text), citation.State)
	}
	return nil
}
