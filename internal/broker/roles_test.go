package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// The role of an issue is that of all work on its pull request, unless the pull request has
// a role of its own; and the assignment says what the role is.
func TestTheRoleOfAnIssueCarries(t *testing.T) {
	t.Parallel()
	review := func(o *office, pull task.Key) {
		o.check(o.forge.AddLabel(o.Context(), pull, "needs-review"))
		o.later(time.Hour)
	}
	for name, test := range map[string]struct {
		labels []string
		kind   task.Type
		ask    func(o *office, pull task.Key)
		role   task.Role
	}{
		"review":                 {[]string{"BACKENDCODER"}, task.Review, review, "BACKENDCODER"},
		"review without a role":  {nil, task.Review, review, "REVIEWER"},
		"review of an odd label": {[]string{"DATABASECODER"}, task.Review, review, "REVIEWER"},
		"review by the issue": {[]string{"BACKENDCODER"}, task.Review, func(o *office, pull task.Key) {
			o.forge.Change(pull, func(i *forge.Item) { i.Body = "Closes #1" })
			review(o, task.Key{Forge: pull.Forge, Repository: pull.Repository, Kind: task.Issue, Number: 1})
		}, "BACKENDCODER"},
		"review with its own role": {[]string{"BACKENDCODER"}, task.Review, func(o *office, pull task.Key) {
			o.check(o.forge.AddLabel(o.Context(), pull, "FRONTENDCODER"))
			review(o, pull)
		}, "FRONTENDCODER"},
		"review of a fork with such a branch": {[]string{"BACKENDCODER"}, task.Review, func(o *office, pull task.Key) {
			o.forge.Change(pull, func(i *forge.Item) { i.Fork = true })
			review(o, pull)
		}, "REVIEWER"},
		"fix-up": {[]string{"BACKENDCODER"}, task.Development, func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Body: "Oil it."})
		}, "BACKENDCODER"},
		"assignment": {[]string{"BACKENDCODER"}, task.Development, func(o *office, pull task.Key) {
			o.check(o.forge.Assign(o.Context(), pull, bot))
		}, "BACKENDCODER"},
		"assignment with its own role": {[]string{"BACKENDCODER"}, task.Development, func(o *office, pull task.Key) {
			o.check(o.forge.AddLabel(o.Context(), pull, "FRONTENDCODER"))
			o.check(o.forge.Assign(o.Context(), pull, bot))
		}, "FRONTENDCODER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			issue := o.issue("Repair the gate", test.labels...)
			o.look(issue)
			pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "")
			test.ask(o, pull)
			for range 2 {
				o.sync()
				o.look(pull)
			}
			held := o.claim(o.task(pull, test.kind), "a")
			p := preparer(o, &seeds{})
			p.Roles = map[task.Role]string{test.role: "Knows {{title}} well."}
			made, err := p.Prepare(t.Context(), assignment.Assignment{Task: held})
			o.check(err)
			if made.Task.Role != test.role {
				t.Errorf("the role is %s, want %s", made.Task.Role, test.role)
			}
			if want := "\nYour role: " + string(test.role) + "\nKnows {{title}} well.\n"; !strings.Contains(made.Prompt, want) {
				t.Errorf("the prompt does not say %q:\n%s", want, made.Prompt)
			}
		})
	}
}

// Labels that leave the role unclear are logged once, however often the item is looked at,
// and again when they are others.
func TestAnUnclearRoleIsLoggedOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	key := o.issue("Repair the gate", "BACKENDCODER", "FRONTENDCODER")
	logged := func(want int) {
		t.Helper()
		for range 3 {
			o.look(key)
			o.sync()
		}
		if got := strings.Count(o.log.String(), "the role of an item is ambiguous"); got != want {
			t.Errorf("it was logged %d times, want %d:\n%s", got, want, o.log)
		}
	}
	logged(1)
	o.check(o.forge.AddLabel(t.Context(), key, "priority:low"))
	logged(1)
	o.check(o.forge.AddLabel(t.Context(), key, "DATABASECODER"))
	logged(2)
	for _, label := range []string{"FRONTENDCODER", "DATABASECODER"} {
		o.check(o.forge.RemoveLabel(t.Context(), key, label))
	}
	logged(2)
	o.check(o.forge.AddLabel(t.Context(), key, "FRONTENDCODER"))
	logged(3)
}
