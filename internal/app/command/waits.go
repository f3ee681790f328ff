package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	// waitsEvery is how often what tasks wait for is looked at when nothing is heard
	// of: that an agent is silent is no event.
	waitsEvery = 5 * time.Second
	// waitsPause is how long what follows an event is waited for.
	waitsPause = 500 * time.Millisecond
	// waitsShown is how many of the tasks that wait for one thing are named.
	waitsShown = 5
)

// printWaits prints what tasks wait for, once for each change, until the
// context ends.
func printWaits(ctx context.Context, out io.Writer, running site.Instance) error {
	changed, stop := running.ListenAll()
	defer stop()
	again := time.NewTicker(waitsEvery)
	defer again.Stop()
	told := ""
	for {
		text, err := waitsText(ctx, running)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			running.Report.Log.WarnContext(ctx, "failed to read what tasks wait for", "error", err)
		case text != told:
			if _, err := fmt.Fprintln(out, cmp.Or(text, "no tasks are waiting")); err != nil {
				return err
			}
			told = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			// Events come in groups.
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(waitsPause):
			}
		case <-again.C:
		}
	}
}

// waitsText is what tasks wait for, in words.
func waitsText(ctx context.Context, running site.Instance) (string, error) {
	waits, err := running.Waits(ctx)
	if err != nil {
		return "", err
	}
	texts := make([]string, 0, len(waits))
	for _, wait := range waits {
		texts = append(texts, strings.TrimSuffix(waitText(server.WaitOf(wait)), "\n"))
	}
	return strings.Join(texts, "\n"), nil
}

// waitText is what some tasks wait for, with the fix and the tasks on lines of their
// own.
func waitText(wait wire.Wait) string {
	var text strings.Builder
	tasks := "1 task is waiting"
	if len(wait.Tasks) != 1 {
		tasks = fmt.Sprintf("%d tasks are waiting", len(wait.Tasks))
	}
	fmt.Fprintf(&text, "%s: %s", tasks, wait.Text)
	if wait.Detail != "" {
		fmt.Fprintf(&text, " (%s)", textfmt.OneLine(strings.Map(cli.Visible, wait.Detail)))
	}
	text.WriteByte('\n')
	if wait.Fix != "" {
		fmt.Fprintf(&text, "  → %s\n", wait.Fix)
	}
	for i, t := range wait.Tasks {
		if i == waitsShown {
			fmt.Fprintf(&text, "    and %d more; see toryo tasks next --explain\n", len(wait.Tasks)-waitsShown)
			break
		}
		fmt.Fprintf(&text, "    %s  %s\n", t.Item, cli.OneLine(t.Title))
	}
	return text.String()
}
