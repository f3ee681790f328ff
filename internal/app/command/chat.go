package command

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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
	list     bool
	show     bool
}

// again is what one types to send the last message once more that has no answer.
const again = "/again"

// Chat is the command toryo chat.
func Chat(p site.Program) *cobra.Command {
	o := chat{onReviews: onReviews{Program: p}}
	c := &cobra.Command{
		Use:   "chat REVIEW [MESSAGE]",
		Short: "Chat about a review",
		Long: `Talk with the model about a review. Without a message, each line of standard input is
one, until it ends. The conversation goes on where it was left; in place of the review a
conversation can be named.

Name sections as §3 or 第3段落, in English also as section 3: they are given to the
model for this message and the two after it. Below an answer stands which of its
citations are true. After an error the conversation goes on: ` + again + ` sends the message
once more that has no answer.`,
		Example: `  toryo chat --list
  toryo chat --show REVIEW
  toryo chat REVIEW "Why was section 3 marked down?"`,
		Args: o.checkArguments,
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), func(service *review.Service, who string) error { return o.do(c, service, who, args) })
		},
	}
	o.bind(c)
	o.bindJSON(c)
	o.settings.NeedSecrets()
	c.Flags().BoolVar(&o.fresh, "new", false, "begin a new conversation")
	c.Flags().BoolVar(&o.list, "list", false, "list your conversations, all of them or those about REVIEW")
	c.Flags().BoolVar(&o.show, "show", false, "print what was said in the last conversation about REVIEW, or in the one that is named")
	c.MarkFlagsMutuallyExclusive("list", "show", "new")
	c.Flags().StringVar(&o.language, "language", "", "language of a new conversation: ja or en (default: the one that you write in)")
	cli.CompleteFlag(c, "language", string(task.Japanese), string(task.English))
	return c
}

// checkArguments refuses a command line with too few arguments or too many.
func (o *chat) checkArguments(c *cobra.Command, args []string) error {
	switch {
	case o.list:
		return cobra.MaximumNArgs(1)(c, args)
	case o.show:
		return cobra.ExactArgs(1)(c, args)
	default:
		return cobra.RangeArgs(1, 2)(c, args)
	}
}

func (o *chat) do(c *cobra.Command, service *review.Service, who string, args []string) error {
	switch {
	case o.list:
		return o.printThreads(c.Context(), service, who, args)
	case o.show:
		return o.printMessages(c.Context(), service, who, args[0])
	default:
		return o.converse(c, service, who, args)
	}
}

func (o *chat) converse(c *cobra.Command, service *review.Service, who string, args []string) error {
	ctx := c.Context()
	thread, err := o.thread(ctx, service, who, args[0])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		_, err := o.send(ctx, service, who, thread, review.Message{Content: args[1]})
		return err
	}
	return o.talk(c, service, who, thread)
}

// talk sends what stands on each line of standard input. What goes wrong with one message is
// said, and does not end the conversation; where nobody types, the command fails at the end.
func (o *chat) talk(c *cobra.Command, service *review.Service, who string, thread store.Thread) error {
	lines := bufio.NewScanner(c.InOrStdin())
	lines.Buffer(nil, 1<<20)
	fmt.Fprint(o.Stderr, "> ")
	unanswered, err := lastUnanswered(c.Context(), service, who, thread)
	if err != nil {
		return err
	}
	failed := 0 // messages of now
	for lines.Scan() {
		message := review.Message{Content: lines.Text()}
		switch text := strings.TrimSpace(lines.Text()); {
		case text == again && unanswered != "":
			message = review.Message{Repeat: unanswered}
			failed = max(failed-1, 0)
		case text == again:
			fmt.Fprintln(o.Stderr, "every message has an answer")
			fallthrough
		case text == "":
			fmt.Fprint(o.Stderr, "> ")
			continue
		}
		asked, err := o.send(c.Context(), service, who, thread, message)
		if c.Context().Err() != nil {
			return err
		}
		switch {
		case err == nil:
			unanswered = ""
		case task.CodeOf(err) == task.Conflict: // it has an answer by now
			unanswered = ""
			o.printProblem(err, false)
		default:
			unanswered, failed = cmp.Or(asked, message.Repeat), failed+1
			o.printProblem(err, unanswered != "")
		}
		fmt.Fprint(o.Stderr, "> ")
	}
	fmt.Fprintln(o.Stderr)
	if err := lines.Err(); err != nil {
		return task.Wrap(task.Usage, err, "standard input cannot be read")
	}
	if failed > 0 && !typed(c) {
		return task.Errorf(task.Unavailable, "messages without an answer: %d", failed).WithHint("send them again")
	}
	return nil
}

// typed reports whether somebody types on standard input.
func typed(c *cobra.Command) bool {
	file, is := c.InOrStdin().(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// printProblem says why there is no answer.
func (o *chat) printProblem(err error, kept bool) {
	text := "toryo: " + strings.Map(cli.Visible, strings.ReplaceAll(err.Error(), "\n", "; "))
	if kept {
		text += " (" + again + " sends it once more)"
	}
	fmt.Fprintln(o.Stderr, text)
}

// thread is the conversation that is named, or the last one of the caller about the review
// that is, or a new one.
func (o *chat) thread(ctx context.Context, service *review.Service, who, id string) (store.Thread, error) {
	fresh := o.fresh || o.language != ""
	named, found, err := store.Optional(service.Thread(ctx, who, id))
	switch {
	case err != nil, found && !fresh:
		return named, err
	case found:
		id = named.ReviewID // another conversation about the same review
	case !fresh:
		last, found, err := lastThread(ctx, service, who, id, false)
		if err != nil || found {
			return last, err
		}
	}
	return service.AddThread(ctx, who, id, task.Language(o.language))
}

// lastUnanswered is the message without an answer that a conversation ends with, or empty.
func lastUnanswered(ctx context.Context, service *review.Service, who string, thread store.Thread) (string, error) {
	said, err := service.Messages(ctx, who, thread.ID)
	if last := len(said) - 1; err == nil && last >= 0 && said[last].State == store.Unanswered {
		return said[last].ID, nil
	}
	return "", err
}

// lastThread is the last conversation of somebody about a review. With forge it may be that
// of the people on the forge, if there is no other.
func lastThread(ctx context.Context, service *review.Service, who, reviewID string, forge bool) (last store.Thread, found bool, err error) {
	threads, err := service.Threads(ctx, who, reviewID)
	for _, one := range threads {
		if one.Owner != "" || forge && last.Owner == "" {
			last, found = one, true
		}
	}
	return last, found, err
}

// send sends a message and prints the answer as it comes in. It returns the id of the
// message, if it was stored and has no answer or has been shown one.
func (o *chat) send(ctx context.Context, service *review.Service, who string, thread store.Thread, message review.Message) (asked string, err error) {
	turn, err := service.Ask(ctx, who, thread.ID, message)
	if err != nil {
		return "", err
	}
	answer, err := turn.Follow(ctx, func(piece review.Piece) {
		if piece.Restart {
			fmt.Fprint(o.Stdout, "\n[...]\n")
		}
		fmt.Fprint(o.Stdout, textfmt.Plain(piece.Text))
	})
	fmt.Fprintln(o.Stdout)
	if err != nil {
		return turn.Asked.ID, err
	}
	said, err := service.Answer(ctx, who, answer)
	if err != nil {
		return "", err // it has its answer, which was printed
	}
	o.printCitations(said)
	return turn.Asked.ID, nil
}

func (o *chat) printCitations(said review.Said) {
	for _, citation := range said.Citations {
		fmt.Fprintf(o.Stdout, "  %s: %s\n", textfmt.Plain(citation.Shown()), citation.State)
	}
}
