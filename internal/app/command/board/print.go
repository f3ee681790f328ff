package board

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// printItems prints a listing for people.
func printItems(p site.Program, items []wire.BoardItem) error {
	table := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ITEM\tSTATE\tTITLE\tLABELS\tASSIGNEES\tUPDATED") // Flush reports what went wrong
	for _, item := range items {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", item.Item, item.State, item.Title,
			cli.OrDash(strings.Join(item.Labels, ", ")), cli.OrDash(strings.Join(item.Assignees, ", ")), item.UpdatedAt.Format(cli.Minutes))
	}
	return table.Flush()
}

// printDetails prints an item for people: what it is, its text, and then what
// happened to it, oldest first.
func printDetails(p site.Program, d wire.BoardDetails) error {
	var text strings.Builder
	printHead(&text, d)
	if d.Body != "" {
		fmt.Fprintf(&text, "\n%s\n", d.Body)
	}
	for _, moment := range momentsOf(d) {
		text.WriteString(moment.text)
	}
	for _, thread := range d.Threads {
		printThread(&text, thread)
	}
	_, err := fmt.Fprint(p.Stdout, text.String())
	return err
}

func printHead(text *strings.Builder, d wire.BoardDetails) {
	kind := "issue"
	if d.Kind == string(task.Pull) {
		kind = "pull request"
		if d.Draft {
			kind = "draft of a pull request"
		}
	}
	fmt.Fprintf(text, "%s  %s\n%s %s by %s, %s\n", d.Item, d.Title, d.State, kind, d.Author, d.CreatedAt.Format(cli.Minutes))
	if d.Kind == string(task.Pull) {
		commit := "its branch is gone"
		if len(d.HeadCommit) >= 12 {
			commit = "at " + d.HeadCommit[:12]
		}
		fmt.Fprintf(text, "branches: %s into %s, %s\n", d.Head, d.Base, commit)
	}
	if len(d.Labels) > 0 {
		fmt.Fprintf(text, "labels: %s\n", strings.Join(d.Labels, ", "))
	}
	if len(d.Assignees) > 0 {
		fmt.Fprintf(text, "assignees: %s\n", strings.Join(d.Assignees, ", "))
	}
	for _, pull := range d.LinkedPulls {
		fmt.Fprintf(text, "pull request: %s (%s)\n", pull.Item, pull.State)
	}
}

// moment is something that happened to an item, as it is printed.
type moment struct {
	at   time.Time
	text string
}

func momentsOf(d wire.BoardDetails) []moment {
	var moments []moment
	for _, event := range d.Timeline {
		moments = append(moments, moment{event.At, fmt.Sprintf("\n* %s %s, %s\n", event.Actor, happened(event), event.At.Format(cli.Minutes))})
	}
	for _, comment := range d.Comments {
		moments = append(moments, moment{comment.CreatedAt, "\n" + commentText(comment)})
	}
	for _, review := range d.Reviews {
		line := fmt.Sprintf("\n* %s %s, %s\n", review.Author, judged[review.Verdict], review.At.Format(cli.Minutes))
		if review.Body != "" {
			line += review.Body + "\n"
		}
		moments = append(moments, moment{review.At, line})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	return moments
}

var judged = map[string]string{
	"approve": "approved it", "request_changes": "requested changes", "comment": "reviewed it",
}

// happened says in words what an entry of the timeline is about.
func happened(event wire.BoardEvent) string {
	switch event.Kind {
	case "labeled":
		return "added the label " + event.Subject
	case "unlabeled":
		return "removed the label " + event.Subject
	case "assigned":
		return "assigned " + event.Subject
	case "unassigned":
		return "unassigned " + event.Subject
	case "edited":
		return "changed the " + event.Subject
	default:
		return "made it " + event.Subject
	}
}

// commentText is a comment as it is printed.
func commentText(comment wire.BoardComment) string {
	edited := ""
	if comment.UpdatedAt.After(comment.CreatedAt) {
		edited = ", edited"
	}
	return fmt.Sprintf("%s said, %s%s\n%s\n", comment.Author, comment.CreatedAt.Format(cli.Minutes), edited, comment.Body)
}

func printThread(text *strings.Builder, thread wire.BoardThread) {
	place := forge.Clean(thread.On.Path) // git lets file names have anything
	switch {
	case thread.Outdated:
		place += ", on a line that has changed since"
	case thread.On.Side == "old":
		place += fmt.Sprintf(":%d (old)", thread.On.Line)
	default:
		place += fmt.Sprintf(":%d", thread.On.Line)
	}
	if thread.Resolved {
		place += ", resolved"
	}
	fmt.Fprintf(text, "\n%s (thread %s)\n", place, thread.ID)
	for _, comment := range thread.Comments {
		text.WriteString("  " + strings.ReplaceAll(strings.TrimSuffix(commentText(comment), "\n"), "\n", "\n  ") + "\n")
	}
}
