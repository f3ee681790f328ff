package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/server"
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

// tellWaits says on the terminal what tasks wait for, once for each change, until the
// context ends.
func (o serve) tellWaits(ctx context.Context, running instance) error {
	rung, stop := running.forges.bell.ListenAll()
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
			running.report.Log.WarnContext(ctx, "what tasks wait for is not known", "error", err)
		case text != told:
			if _, err := fmt.Fprintln(o.stdout, cmp.Or(text, "no task waits for anything any more")); err != nil {
				return err
			}
			told = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-rung:
			// Events come in groups, and each look reads the whole queue.
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
func waitsText(ctx context.Context, running instance) (string, error) {
	waits, err := running.forges.handing.Waits(ctx)
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
	tasks := "1 task waits"
	if len(wait.Tasks) != 1 {
		tasks = fmt.Sprintf("%d tasks wait", len(wait.Tasks))
	}
	fmt.Fprintf(&text, "%s: %s", tasks, wait.Text)
	if wait.Detail != "" {
		fmt.Fprintf(&text, " (%s)", strings.Join(strings.Fields(strings.Map(visible, wait.Detail)), " "))
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
		fmt.Fprintf(&text, "    %s  %s\n", t.Item, oneLineOf(t.Title))
	}
	return text.String()
}
