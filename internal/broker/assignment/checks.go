package assignment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// mostChecks is how many failed checks an agent is given, and longestLog how much of the
	// end of each log, in bytes.
	mostChecks = 5
	longestLog = 128 << 10
	// longestNames bounds the names of checks in an occasion, in bytes; the store takes 2000
	// for the whole of it.
	longestNames = 1500
	longestName  = 200 // of a check, in characters
	// longestDescription and longestAddress bound what else a check says, in characters.
	longestDescription = 500
	longestAddress     = 2000
)

// FailedCheck is a check that a fix-up is for. All of it is untrusted.
type FailedCheck struct {
	Name        string
	Description string
	URL         string
	Log         string // the end of what it printed; empty if the forge does not have it
}

// ChecksOccasion is what a fix-up for checks is for. As text it begins with the moment, as the
// occasions of reviews do: later ones are greater.
//
// For example `2026-11-16T09:30:00Z checks 1f3870be ["CI / test"]`.
type ChecksOccasion struct {
	At     time.Time
	Commit string
	Names  []string // of checks that failed; those for which there is no room are left out
}

func (o ChecksOccasion) String() string {
	names, room := []string{}, longestNames
	for _, name := range o.Names {
		if encoded, err := json.Marshal(name); err == nil && room >= len(encoded)+1 {
			names, room = append(names, name), room-len(encoded)-1
		}
	}
	list, err := json.Marshal(names)
	if err != nil {
		list = []byte("[]") // strings can always be written
	}
	return o.At.UTC().Format(time.RFC3339) + " checks " + o.Commit + " " + string(list)
}

// ChecksOccasionOf reads the occasion of a task; found is false if it is not for checks.
func ChecksOccasionOf(t task.Task) (o ChecksOccasion, found bool) {
	fields := strings.SplitN(t.Occasion, " ", 4)
	if t.Cause != task.ReasonChecksFailed || len(fields) != 4 || fields[1] != "checks" {
		return ChecksOccasion{}, false
	}
	at, err := time.Parse(time.RFC3339, fields[0])
	if err != nil || json.Unmarshal([]byte(fields[3]), &o.Names) != nil {
		return ChecksOccasion{}, false
	}
	o.At, o.Commit = at, fields[2]
	return o, true
}

// NotNeededError says that there is nothing to do any more for a fix-up for checks.
type NotNeededError struct {
	Passed string // commit whose checks pass now; empty if they are of an older commit
	error
}

func (e *NotNeededError) Unwrap() error { return e.error }

// checks reads the checks that a fix-up is for. A run that goes on keeps going whatever they
// say by now.
func (p *Preparer) checks(ctx context.Context, from forge.Forge, made *Assignment) error {
	if made.Pull == nil || made.Task.Cause != task.ReasonChecksFailed {
		return nil
	}
	failed, err := p.failedChecks(ctx, from, *made)
	if _, over := errors.AsType[*NotNeededError](err); over && made.Resume != nil {
		return nil
	}
	made.Pull.Checks = failed
	return err
}

// failedChecks reads the failed checks of the commit that a fix-up is for, with their logs:
// those that it was made for come first. It is a [NotNeededError] if they all pass now, or are
// of an older commit, and Unavailable as long as nobody can tell.
func (p *Preparer) failedChecks(ctx context.Context, from forge.Forge, made Assignment) ([]FailedCheck, error) {
	occasion, found := ChecksOccasionOf(made.Task)
	if !found || occasion.Commit != made.Item.HeadCommit {
		return nil, &NotNeededError{error: task.Errorf(task.Invalid, "the checks are of an older commit")}
	}
	checks, err := from.Checks(ctx, made.Item.Key.Repository, occasion.Commit)
	if err != nil && task.CodeOf(err) != task.Forbidden {
		return nil, fmt.Errorf("read the checks: %w", err)
	}
	checks = slices.DeleteFunc(checks, func(c forge.Check) bool { return outbox.OwnStatus(c.Name) })
	broken := slices.DeleteFunc(slices.Clone(checks), func(c forge.Check) bool { return !c.Failed() || c.Canceled })
	if len(broken) == 0 {
		unread := forge.Unread().Name // it says nothing about the others, and stays for ever
		if len(checks) == 0 || slices.ContainsFunc(checks, func(c forge.Check) bool { return c.State != forge.StatusSuccess && c.Name != unread }) {
			return nil, task.Errorf(task.Unavailable, "the checks have not ended")
		}
		return nil, &NotNeededError{occasion.Commit, task.Errorf(task.Invalid, "the checks pass now")}
	}
	other := func(c forge.Check) int { return min(0, slices.Index(occasion.Names, c.Name)) } // -1 or 0
	slices.SortStableFunc(broken, func(a, b forge.Check) int { return other(b) - other(a) })
	var failed []FailedCheck
	for _, check := range broken[:min(len(broken), mostChecks)] {
		log := ""
		if check.ID != "" {
			log, _ = from.CheckLog(ctx, made.Item.Key.Repository, check, longestLog) // it is of use, and not needed
		}
		failed = append(failed, FailedCheck{
			Name:        textfmt.Shorten(textfmt.OneLine(check.Name), longestName),
			Description: textfmt.Shorten(textfmt.OneLine(check.Description), longestDescription),
			URL:         textfmt.Shorten(textfmt.OneLine(check.URL), longestAddress), Log: log,
		})
	}
	return failed, nil
}
