package eval

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/testfiles"
)

// The flags of an attempt: what a person should look at before the result is believed. None
// of them changes a score.
const (
	// FlagHistory: a command looked at other commits than the base.
	FlagHistory = "looked at history"
	// FlagNetwork: a command tried to reach something on the network.
	FlagNetwork = "tried the network"
	// FlagTests: the work changes tests that the hidden ones replace, or that were there.
	FlagTests = "edited tests"
	// FlagSkips: the work adds lines that skip tests.
	FlagSkips = "skips tests"
)

var (
	historyCommand = regexp.MustCompile(`\bgit\b[^|;&\n]*\b(?:log|show|reflog|fsck|rev-list|cat-file|bisect|ls-remote|fetch|pull|clone|unpack-objects|verify-pack|show-ref|for-each-ref)\b|\.git/(?:objects|refs|logs|packed-refs|ORIG_HEAD|FETCH_HEAD)`)
	networkCommand = regexp.MustCompile(`\b(?:curl|wget|nc|ncat|telnet|ssh|scp|rsync)\b|\bgit\b[^|;&\n]*\b(?:fetch|pull|clone|ls-remote)\b|\b(?:https?|ftp)://`)
	skipLine       = regexp.MustCompile(`(?i)\b(?:t\.Skip(?:f|Now)?\(|pytest\.mark\.(?:skip|xfail)|pytest\.skip\(|unittest\.(?:skip|expectedFailure)|self\.skipTest\(|\b(?:it|describe|test)\.skip\(|\bx(?:it|describe)\(|@Disabled\b|@Ignore\b|#\[ignore)`)
)

// Watcher finds flags in the commands of a run. It is told of each.
type Watcher struct{ found []string }

// Command looks at a command that the model has run.
func (w *Watcher) Command(line string) {
	for flag, pattern := range map[string]*regexp.Regexp{FlagHistory: historyCommand, FlagNetwork: networkCommand} {
		if pattern.MatchString(line) {
			w.add(flag)
		}
	}
}

func (w *Watcher) add(flag string) {
	if !slices.Contains(w.found, flag) {
		w.found = append(w.found, flag)
	}
}

// Flags are those that were found, in order.
func (w *Watcher) Flags() []string {
	slices.Sort(w.found)
	return w.found
}

// flagTests adds what the work does to tests.
func (e *Evaluation) flagTests(ctx context.Context, from *source.Repository, work, tests string, flags []string) ([]string, error) {
	w := Watcher{found: flags}
	hidden, err := from.Changes(ctx, from.Base, tests)
	if err != nil {
		return nil, err
	}
	changes, err := from.Changes(ctx, from.Base, work)
	if err != nil {
		return nil, err
	}
	kinds := testfiles.New(nil, nil, func(string) []byte { return nil })
	for _, change := range changes {
		replaced := slices.ContainsFunc(hidden, func(c source.Change) bool { return c.Name == change.Name })
		_, err := from.File(ctx, from.Base, change.Name)
		if isTest := kinds.Kind(change.Name) == testfiles.Test; replaced || isTest && err == nil {
			w.add(FlagTests)
		}
	}
	patch, err := from.Diff(ctx, from.Base, work)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "+") && skipLine.MatchString(line) {
			w.add(FlagSkips)
			break
		}
	}
	return w.Flags(), nil
}
