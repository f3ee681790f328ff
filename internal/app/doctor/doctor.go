// Package doctor looks at the machine and the configuration and says what is
// there, what is missing and how to fix it. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Status is how serious a finding is.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning" // Toryo works without it, but less well
	Missing Status = "missing" // Toryo does not work without it
)

// Finding is what one check found.
type Finding struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Found  string `json:"found"`
	Hint   string `json:"hint,omitempty"`
	// Command is one that fixes it, if there is one.
	Command string `json:"command,omitempty"`
	// Repositories are those that it is about, the first maxRepositories of them.
	Repositories []string `json:"repositories,omitempty"`

	Weak bool `json:"-"` // a sandbox that is not for tasks from a forge
}

// Check looks at one thing.
type Check func(ctx context.Context) Finding

// Survey looks at something that there is more than one thing to say about, such as a forge.
type Survey func(ctx context.Context) []Finding

// checkTimeout is how long one check may take: something that hangs is a finding
// too.
const checkTimeout = 20 * time.Second

// surveyTimeout is how long a survey may take, whose parts have checkTimeout each.
const surveyTimeout = 90 * time.Second

// Examine runs the checks side by side and returns their findings in order.
func Examine(ctx context.Context, checks []Check) []Finding {
	findings := make([]Finding, len(checks))
	var running sync.WaitGroup
	for i, check := range checks {
		running.Go(func() {
			limited, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			findings[i] = check(limited)
		})
	}
	running.Wait()
	return findings
}

// Explore runs the surveys side by side and returns their findings in order.
func Explore(ctx context.Context, surveys []Survey) []Finding {
	found := make([][]Finding, len(surveys))
	var running sync.WaitGroup
	for i, survey := range surveys {
		running.Go(func() {
			limited, cancel := context.WithTimeout(ctx, surveyTimeout)
			defer cancel()
			found[i] = survey(limited)
		})
	}
	running.Wait()
	return slices.Concat(found...)
}

// Healthy reports whether nothing that Toryo needs is missing.
func Healthy(findings []Finding) bool {
	for _, finding := range findings {
		if finding.Status == Missing {
			return false
		}
	}
	return true
}

// setUp is the command that sets up what is missing. It changes only what differs.
const setUp = "toryo init"

// ForInstallation makes the commands those of one installation: with the flags by which it is found,
// and by root where toryo init may not write its configuration otherwise.
func ForInstallation(findings []Finding, flags string, byRoot bool) {
	for i, finding := range findings {
		command := finding.Command
		if !strings.HasPrefix(command, "toryo ") {
			continue
		}
		if byRoot && strings.HasPrefix(command, setUp) {
			command = "sudo " + command
		}
		findings[i].Command = command + flags
	}
}

var marks = map[Status]string{OK: "✓", Warning: "!", Missing: "✗"}

// shown is a text as a terminal may show it: forges and other programs have said some of it.
func shown(text string) string { return textfmt.OneLine(textfmt.Plain(text)) }

// Print writes the findings for people.
func Print(to io.Writer, findings []Finding) error {
	width := 0
	for _, finding := range findings {
		width = max(width, len(finding.Name))
	}
	var text strings.Builder
	for _, finding := range findings {
		fmt.Fprintf(&text, "%s %-*s  %s\n", marks[finding.Status], width, finding.Name, shown(finding.Found))
		if finding.Hint != "" {
			fmt.Fprintf(&text, "  %-*s  → %s\n", width, "", shown(finding.Hint))
		}
		if finding.Command != "" {
			fmt.Fprintf(&text, "  %-*s  $ %s\n", width, "", shown(finding.Command))
		}
	}
	_, err := io.WriteString(to, text.String())
	return err
}
