package endtoend

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// load reads the scenarios that the patterns name.
func load(t *testing.T, patterns ...string) []*phasetest.Scenario {
	t.Helper()
	var all []*phasetest.Scenario
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		must(t, err)
		if len(files) == 0 {
			t.Fatalf("there is nothing like %s", pattern)
		}
		for _, file := range files {
			scenario, err := phasetest.Load(file)
			must(t, err)
			scenario.Name = strings.TrimSuffix(filepath.Base(file), ".txtar")
			all = append(all, scenario)
		}
	}
	return all
}

// TestScenarios lets the scenarios happen on the board of one house.
func TestScenarios(t *testing.T) { //nolint:tparallel // tellAll runs them side by side
	t.Parallel()
	h := build(t, plan{agents: 4})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	h.runStories(t, board, load(t, "../phase/testdata/scenarios/*.txtar", "testdata/signals/*.txtar", "testdata/gate/*.txtar"))
}

// runStories lets scenarios happen, several at a time, and then looks at what is only
// said when there is time.
func (h *house) runStories(t *testing.T, at site, scenarios []*phasetest.Scenario) {
	t.Helper()
	var mutex sync.Mutex
	var told []*story
	// What a story does most of the time is wait, so more of them go on than there are
	// processors.
	var all errgroup.Group
	all.SetLimit(2 + len(h.agents))
	for _, scenario := range scenarios {
		all.Go(func() error {
			t.Run(scenario.Name, func(t *testing.T) {
				s := h.runStory(t, at, scenario)
				mutex.Lock()
				defer mutex.Unlock()
				told = append(told, s)
			})
			return nil
		})
	}
	must(t, all.Wait())
	for _, s := range told {
		t.Run("progress of "+s.Name, func(t *testing.T) { s.checkProgress(t) })
	}
	t.Logf("%d scenarios", len(told))
}

// TestSwitches has unassigning and comments switched off.
func TestSwitches(t *testing.T) { //nolint:tparallel // as above
	t.Parallel()
	h := build(t, plan{agents: 2, settings: "task_stop: {enabled: false}\ncomment_detection: {enabled: false}\n"})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	h.runStories(t, board, load(t, "testdata/switches/*.txtar"))
}

// TestTwoServers has two servers on one database: what people do goes through one, and
// the agents work for the other.
func TestTwoServers(t *testing.T) { //nolint:tparallel // as above
	t.Parallel()
	h := build(t, plan{servers: 2, agents: 2, database: testkit.Postgres(t), settings: "comment_detection: {accept_from: write}\n"})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	h.runStories(t, board, pick(load(t, "../phase/testdata/scenarios/*.txtar", "testdata/signals/*.txtar", "testdata/writers/*.txtar"),
		"comments_refused", "stop_late_command", "stop_asked", "comments_edited", "pause_command", "ask", "merge"))
}

// longLeases are leases that do not run out while a test has patience: a run that was
// lost goes on only if somebody knows that its agent has ended.
const longLeases = "TORYO_LEASES_DURATION=1h"

// TestRestarts kills servers, and agents, in the middle of things, one after the
// other: all that is in the house notices.
func TestRestarts(t *testing.T) { //nolint:tparallel // one after the other, as it says
	t.Parallel()
	h := build(t, plan{agents: 2, env: []string{longLeases}})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	scenarios := load(t, "testdata/restarts/*.txtar")
	for _, point := range []int{2, 30, 60, 90} { // of about 95
		scenario := crashScenario(t, fmt.Sprint("server", point), 0)
		scenario.Events = append(scenario.Events, phasetest.Event{When: phasetest.When{Entry: point}, Restart: true})
		scenarios = append(scenarios, scenario)
	}
	var told []*story
	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) { told = append(told, h.runStory(t, board, scenario)) })
	}
	for _, s := range told { // it is written every five seconds
		t.Run("progress of "+s.Name, func(t *testing.T) { s.checkProgress(t) })
	}
}

// TestCrashPoints kills the agent's process after entries of the journal, spread over
// the whole run, in one house: each time another process carries the run on, and it
// ends as the one that was not killed. At every third point the agent does not get to
// report the entry.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 4, env: []string{longLeases}})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	whole := h.runStory(t, board, crashScenario(t, "whole", 0))
	if t.Failed() {
		t.Fatal("the run that was not cut failed")
	}
	want := whole.read(t)
	tree := whole.tree(t, want)
	var points []int
	for point := 1; point <= whole.entries; point += max(1, whole.entries/crashPoints) {
		points = append(points, point)
	}
	t.Logf("%d crash points of %d", len(points), whole.entries)
	var all errgroup.Group
	all.SetLimit(2 * len(h.agents)) // an agent that was killed takes a moment to start
	for i, point := range points {
		scenario := crashScenario(t, fmt.Sprint("cut", point), point)
		scenario.Events[len(scenario.Events)-1].Hasty = i%3 == 2
		all.Go(func() error {
			t.Run(scenario.Name, func(t *testing.T) {
				s := h.runStory(t, board, scenario)
				got := s.read(t)
				if len(got.own) != len(want.own) {
					t.Errorf("there are %d comments, want %d: %s", len(got.own), len(want.own), strings.Join(got.own, "\n---\n"))
				}
				if tree != s.tree(t, got) {
					t.Errorf("the branch has\n%s\nwant\n%s", s.tree(t, got), tree)
				}
				s.checkProgress(t)
			})
			return nil
		})
	}
	must(t, all.Wait())
}

// crashPoints is about how many points of a run are tried through processes. More of
// them are tried in package phase.
const crashPoints = 6

// crashScenario is a run with everything in it, that is cut after an entry.
func crashScenario(t *testing.T, name string, point int) *phasetest.Scenario {
	t.Helper()
	scenario, err := phasetest.Load("../phase/crashes/testdata/crash/comment.txtar")
	must(t, err)
	scenario.Name = name
	if point > 0 {
		scenario.Events = append(scenario.Events, phasetest.Event{When: phasetest.When{Entry: point, Run: 1}, Crash: true})
		scenario.Expect.Runs = 2
	}
	return scenario
}

// tree lists the files of the published branch with the hashes of their contents.
func (s *story) tree(t *testing.T, o outcome) string {
	t.Helper()
	if len(o.pulls) != 1 {
		t.Fatalf("there are %d pull requests, want 1", len(o.pulls))
	}
	dir := t.TempDir()
	_, err := git(t.Context(), "", "clone", "--quiet", "--branch", o.pulls[0].Head, s.site.address(s.item.Repository), dir)
	must(t, err)
	files, err := git(t.Context(), dir, "ls-tree", "-r", "HEAD")
	must(t, err)
	return files
}
