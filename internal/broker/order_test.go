package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

var noon = time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)

// queued is a queued development task of team/app, assigned so many minutes before
// noon; change may make it another.
func queued(id string, minutes int, change ...func(*task.Task)) task.Task {
	t := task.Task{
		ID:   task.ID(id),
		Key:  task.Key{Forge: task.GitHub, Repository: "team/app", Kind: task.Issue, Number: int64(minutes + 1)},
		Type: task.Development, Cause: task.ReasonAssigned, State: task.Queued, Generation: 1,
		AssignedAt: noon.Add(-time.Duration(minutes) * time.Minute),
	}
	for _, c := range change {
		c(&t)
	}
	return t
}

func in(repository string) func(*task.Task) {
	return func(t *task.Task) { t.Key.Repository = repository }
}

func priority(p int) func(*task.Task) { return func(t *task.Task) { t.Priority = p } }

func review(t *task.Task) {
	t.Type, t.Cause, t.Key.Kind = task.Review, task.ReasonReviewDue, task.Pull
}

func fixUp(t *task.Task) { t.Cause, t.Key.Kind = task.ReasonChangesRequested, task.Pull }

func by(agent string) func(*task.Task) { return func(t *task.Task) { t.Author = agent } }

func runningBy(agent string) func(*task.Task) {
	return func(t *task.Task) {
		t.State, t.Lease = task.Running, task.Lease{Agent: agent, ExpiresAt: noon.Add(time.Minute)}
	}
}

// restarted is a task whose agent was started again so long before noon.
func restarted(agent string, before time.Duration) func(*task.Task) {
	return func(t *task.Task) {
		t.Reason, t.LastAgent, t.UpdatedAt = task.ReasonAgentRestarted, agent, noon.Add(-before)
	}
}

// said writes verdicts down: "task reason agent".
func said(verdicts []broker.Verdict, s broker.Situation) []string {
	var lines []string
	for _, v := range verdicts {
		line := string(v.Task.ID) + " " + string(v.Reason)
		if v.Agent >= 0 {
			line += " " + s.Agents[v.Agent]
		}
		lines = append(lines, line)
	}
	return lines
}

func TestOrder(t *testing.T) {
	t.Parallel()
	branch := func(t *task.Task) { t.Branch = "toryo/1" }
	for _, test := range []struct {
		name string
		s    broker.Situation
		want []string
	}{
		{"nothing", broker.Situation{Agents: []string{"a"}}, nil},
		{"reviews, then fix-ups, then development, whatever their priority and age", broker.Situation{
			Queued: []task.Task{queued("dev", 60, priority(9)), queued("fix", 10, fixUp), queued("rev", 1, review, priority(-9))},
			Agents: []string{"a", "b", "c"},
		}, []string{"rev next a", "fix next b", "dev next c"}},
		{"the higher priority, then the older", broker.Situation{
			Queued: []task.Task{queued("new", 1), queued("old", 5), queued("high", 0, priority(1)), queued("low", 9, priority(-1))},
			Agents: []string{"a", "b"},
		}, []string{"high next a", "old next b", "new no_agent_left", "low no_agent_left"}},
		{"what an agent had that was started again comes before all others, for it alone", broker.Situation{
			Queued: []task.Task{queued("rev", 9, review), queued("mine", 1, priority(-9), restarted("b", time.Second))},
			Agents: []string{"a", "b"},
		}, []string{"mine next b", "rev next a"}},
		{"an agent that was started again has a moment to take up what it had", broker.Situation{
			Queued: []task.Task{queued("mine", 1, restarted("b", time.Second)), queued("other", 9)},
			Agents: []string{"a", "c"},
		}, []string{"mine waits_for_its_agent", "other next a"}},
		{"and then anyone may have it", broker.Situation{
			Queued: []task.Task{queued("mine", 1, restarted("b", 2*time.Second)), queued("other", 9)},
			Agents: []string{"a", "c"},
		}, []string{"mine next a", "other next c"}},
		{"what is not ready or is blocked is passed over", broker.Situation{
			Queued: []task.Task{
				queued("later", 9, func(t *task.Task) { t.ReadyAt = noon.Add(time.Second) }),
				queued("now", 8, func(t *task.Task) { t.ReadyAt = noon }),
				queued("held up", 7, func(t *task.Task) { t.BlockedBy = task.KeysOf(queued("x", 1).Key) }),
			},
			Agents: []string{"a", "b", "c"},
		}, []string{"later not_ready", "now next a", "held up blocked"}},
		{"one running task per item, and per branch", broker.Situation{
			Queued: []task.Task{
				queued("same item", 5), queued("same branch", 6, fixUp, branch), queued("branch elsewhere", 7, in("team/other"), branch),
				queued("twin 1", 3, in("team/twins")), queued("twin 2", 3, in("team/twins"), review, func(t *task.Task) { t.Key.Kind = task.Issue }),
			},
			Running: []task.Task{queued("run", 5, runningBy("z")), queued("run 2", 4, runningBy("z"), branch)},
			Agents:  []string{"a", "b", "c", "d"},
		}, []string{"twin 2 next a", "same branch item_busy", "branch elsewhere next b", "twin 1 item_busy", "same item item_busy"}},
		{"a repository at its limit waits", broker.Situation{
			Queued:  []task.Task{queued("1", 9), queued("2", 8), queued("other", 1, in("team/other"))},
			Running: []task.Task{queued("run", 20, runningBy("z"))},
			Agents:  []string{"a", "b", "c"}, Limits: broker.Limits{PerRepository: 2},
		}, []string{"other next a", "1 next b", "2 repository_at_limit"}},
		{"an agent at its limit gets nothing", broker.Situation{
			Queued:  []task.Task{queued("1", 9), queued("2", 8), queued("3", 7)},
			Running: []task.Task{queued("run", 20, runningBy("a"))},
			Agents:  []string{"a", "b", "b"}, Limits: broker.Limits{PerAgent: 1},
		}, []string{"1 next b", "2 agents_at_limit", "3 agents_at_limit"}},
		{"whoever wrote it does not review it if another is free", broker.Situation{
			Queued: []task.Task{queued("rev", 5, review, by("a"))}, Agents: []string{"a", "b"},
		}, []string{"rev next b"}},
		{"nor while another may come, and otherwise does", broker.Situation{
			Queued: []task.Task{queued("new", 0, review, by("a")), queued("old", 5, review, by("a"), in("team/other")), queued("dev", 1, in("team/third"))},
			Agents: []string{"a", "a"},
		}, []string{"old next a", "new waits_for_another_agent", "dev next a"}},
		{"repositories take turns", broker.Situation{
			Queued: []task.Task{
				queued("a1", 90, in("team/a")), queued("a2", 80, in("team/a")), queued("a3", 70, in("team/a")),
				queued("b1", 3, in("team/b")), queued("c1", 2, in("team/c")), queued("b2", 1, in("team/b")),
			},
			Agents: []string{"1", "2", "3", "4", "5"},
		}, []string{"a1 next 1", "b1 next 2", "c1 next 3", "a2 next 4", "b2 next 5", "a3 no_agent_left"}},
		{"a repository that was served goes behind one that was not, also with one agent", broker.Situation{
			Queued: []task.Task{queued("a1", 90, in("team/a")), queued("b1", 3, in("team/b")), queued("c1", 2, in("team/c"))},
			Agents: []string{"1"}, Served: map[task.Repository]time.Time{
				{Forge: task.GitHub, Name: "team/a"}: noon.Add(-time.Minute), {Forge: task.GitHub, Name: "team/b"}: noon.Add(-90 * time.Second)},
		}, []string{"c1 next 1", "b1 no_agent_left", "a1 no_agent_left"}},
		{"but not behind one that came later than that", broker.Situation{
			Queued: []task.Task{queued("a1", 90, in("team/a")), queued("b1", 3, in("team/b")), queued("c1", 2, in("team/c"))},
			Agents: []string{"1"}, Served: map[task.Repository]time.Time{{Forge: task.GitHub, Name: "team/a"}: noon.Add(-150 * time.Second)},
		}, []string{"b1 next 1", "a1 no_agent_left", "c1 no_agent_left"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.s.Now = noon
			if diff := cmp.Diff(test.want, said(broker.Order(test.s), test.s)); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

func drawTask(r *rapid.T, n int) task.Task {
	t := queued(fmt.Sprint("t", n), rapid.IntRange(0, 30).Draw(r, "age"))
	t.Key.Repository = rapid.SampledFrom([]string{"team/a", "team/b", "team/c"}).Draw(r, "repository")
	t.Key.Number = rapid.Int64Range(1, 12).Draw(r, "number")
	t.Priority = rapid.IntRange(-1, 1).Draw(r, "priority")
	switch rapid.IntRange(0, 3).Draw(r, "kind") {
	case 0:
		review(&t)
		t.Author = rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "author")
	case 1:
		fixUp(&t)
	}
	if rapid.IntRange(0, 4).Draw(r, "held back") == 0 {
		t.BlockedBy = task.KeysOf(queued("x", 1).Key)
	}
	t.Branch = rapid.SampledFrom([]string{"", "one", "two"}).Draw(r, "branch")
	return t
}

// Whatever the situation: every queued task has one verdict, no limit is passed, no
// item or branch runs twice, every agent has one task at most, and nobody who could
// have had a task goes without.
func TestOrderKeepsItsRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := broker.Situation{
			Now:    noon,
			Agents: rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 6).Draw(r, "agents"),
			Limits: broker.Limits{PerRepository: rapid.IntRange(0, 3).Draw(r, "per repository"), PerAgent: rapid.IntRange(0, 2).Draw(r, "per agent")},
		}
		for n := range rapid.IntRange(0, 20).Draw(r, "queued") {
			s.Queued = append(s.Queued, drawTask(r, n))
		}
		verdicts := broker.Order(s)
		if len(verdicts) != len(s.Queued) {
			r.Fatalf("%d verdicts on %d tasks", len(verdicts), len(s.Queued))
		}
		used, items, branches := map[int]bool{}, map[task.Key]bool{}, map[string]bool{}
		repositories, agents := map[string]int{}, map[string]int{}
		seen := map[task.ID]bool{}
		var last *task.Task
		for _, v := range verdicts {
			if seen[v.Task.ID] || messages.Reason(task.English, v.Reason) == "" {
				r.Fatalf("%s has two verdicts or no reason: %q", v.Task.ID, v.Reason)
			}
			seen[v.Task.ID] = true
			if last != nil && (last.Lane() > v.Task.Lane() || last.Lane() == v.Task.Lane() && last.Priority < v.Task.Priority) {
				r.Fatalf("%s stands before %s", last.ID, v.Task.ID)
			}
			last = &v.Task
			if v.Reason != task.ReasonNext {
				continue
			}
			branch := v.Task.Key.Repository + " " + v.Task.Branch
			if used[v.Agent] || items[v.Task.Key] || v.Task.Branch != "" && branches[branch] || v.Task.BlockedBy != "" {
				r.Fatalf("%s must not be handed out", v.Task.ID)
			}
			used[v.Agent], items[v.Task.Key], branches[branch] = true, true, true
			repositories[v.Task.Key.Repository]++
			agents[s.Agents[v.Agent]]++
		}
		for _, count := range repositories {
			if s.Limits.PerRepository > 0 && count > s.Limits.PerRepository {
				r.Fatalf("%d tasks of one repository", count)
			}
		}
		for _, count := range agents {
			if s.Limits.PerAgent > 0 && count > s.Limits.PerAgent {
				r.Fatalf("%d tasks of one agent", count)
			}
		}
		for _, v := range verdicts {
			if v.Reason == task.ReasonNoAgent && len(used) < len(s.Agents) {
				r.Fatalf("%s has no agent, and %d of %d have a task", v.Task.ID, len(used), len(s.Agents))
			}
		}
	})
}

// However long the queue of one repository is, another's task waits for one hand-out
// at most when they are of one rank.
func TestNoRepositoryStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		waiting := map[string]int{}
		served := map[task.Repository]time.Time{}
		var all []task.Task
		for n := range rapid.IntRange(3, 30).Draw(r, "tasks") {
			repository := rapid.SampledFrom([]string{"team/a", "team/a", "team/a", "team/b", "team/c"}).Draw(r, "repository")
			all = append(all, queued(fmt.Sprint("t", n), 100-n, in(repository)))
			waiting[repository] = 0
		}
		for now := noon; len(all) > 0; now = now.Add(time.Second) {
			verdicts := broker.Order(broker.Situation{Now: now, Queued: all, Agents: []string{"only"}, Served: served})
			given := verdicts[0].Task
			served[task.Repository{Forge: given.Key.Forge, Name: given.Key.Repository}] = now
			left := map[string]bool{}
			var rest []task.Task
			for _, x := range all {
				if x.ID != given.ID {
					rest = append(rest, x)
					left[x.Key.Repository] = true
				}
			}
			all = rest
			for repository := range left {
				waiting[repository]++
				if repository == given.Key.Repository {
					waiting[repository] = 0
				}
				if waiting[repository] > 2 {
					r.Fatalf("%s waits for %d others", repository, waiting[repository])
				}
			}
		}
	})
}

// A task in a repository that was just served, such as one that is resumed, waits for those that
// were there at that moment, and not for repositories that come later, however many.
func TestNewRepositoriesStarveNobody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		before := rapid.IntRange(0, 10).Draw(r, "repositories before")
		each := rapid.IntRange(1, 3).Draw(r, "new repositories each time")
		resumed := queued("resumed", 100, in("team/old"))
		all := []task.Task{resumed}
		served := map[task.Repository]time.Time{resumed.Key.Repo(): noon}
		for n := range before {
			all = append(all, queued(fmt.Sprint("before", n), 1+n, in(fmt.Sprint("team/before", n))))
		}
		for turn := range before + 1 {
			now := noon.Add(time.Duration(turn+1) * time.Second)
			for n := range each {
				fresh := queued(fmt.Sprint("new", turn, "-", n), 0, in(fmt.Sprint("team/new", turn, "-", n)))
				fresh.AssignedAt = now
				all = append(all, fresh)
			}
			given := broker.Order(broker.Situation{Now: now, Queued: all, Agents: []string{"only"}, Served: served})[0].Task
			if given.ID == resumed.ID {
				return
			}
			served[given.Key.Repo()] = now
			all = slices.DeleteFunc(all, func(x task.Task) bool { return x.ID == given.ID })
		}
		r.Fatalf("it waits although %d others were handed out", before+1)
	})
}
