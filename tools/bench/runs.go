package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// runTurns are the turns of a run: all but the last call the shell once.
	runTurns = 21
	// runTimes is how often each program does the run; the median counts.
	runTimes = 3
	// memoryEvery is how often the memory of the processes is looked at.
	memoryEvery = 10 * time.Millisecond
	// runTimeout ends a program that waits for something; in a large repository it does more.
	runTimeout   = time.Minute
	largeTimeout = 15 * time.Minute
	// beginTimeout is for a run there until its first request.
	beginTimeout = 3 * time.Minute
	// installTimeout ends an installation of other programs.
	installTimeout = 3 * time.Minute
)

// contender is a program that does the run.
type contender struct {
	name string
	aim  string
	// other says that it is a program of others: that it cannot be measured here is said in
	// its row.
	other bool
	// rules are what the model answers; see package script.
	rules string
	// timeout is [runTimeout] if it is 0.
	timeout time.Duration
	// onlyFirst says that the program is interrupted when the model is asked for the first time.
	onlyFirst bool
	// command makes the program's, in a folder of its own, for the model at the URL.
	command func(ctx context.Context, folder, url string) (*exec.Cmd, error)
}

// ran is what one run took.
type ran struct {
	whole, first, turn time.Duration
	processor          time.Duration // of all processes that were waited for
	memory             int           // kilobytes, of all processes together at the worst moment
	sent               int           // bytes of all requests
}

// measureRuns has the same run done by Toryo and by other programs: a model that answers at
// once asks for a shell command in each turn.
func measureRuns(ctx context.Context, folder string) ([]row, error) {
	all, missing := contenders(ctx, folder)
	var rows []row
	for _, one := range all {
		value, err := one.measure(ctx, folder)
		if err != nil && (!one.other || ctx.Err() != nil) {
			return rows, fmt.Errorf("%s: %w", one.name, err)
		}
		if err != nil {
			value = notMeasured(err)
		}
		rows = append(rows, row{fmt.Sprintf("%d turns, %s: per turn; whole run; first request; processor; memory of all processes; sent", runTurns, one.name), value, one.aim})
	}
	return append(rows, missing...), nil
}

// notMeasured is the value of a row for a program that cannot be had or does not do the run. The
// last line that it wrote says why; those before may be warnings.
func notMeasured(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return "not measured: " + textfmt.OneLine(lines[len(lines)-1])
}

// measure does the run some times and returns the medians.
func (c contender) measure(ctx context.Context, folder string) (string, error) {
	var all []ran
	for i := range runTimes {
		took, err := c.run(ctx, filepath.Join(folder, fmt.Sprintf("run-%s-%d", strings.ReplaceAll(c.name, " ", "-"), i)))
		if err != nil {
			return "", err
		}
		all = append(all, took)
	}
	return medians(all), nil
}

func medians(all []ran) string {
	median := func(of func(ran) int) int {
		values := make([]int, 0, len(all))
		for _, one := range all {
			values = append(values, of(one))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return fmt.Sprintf("%.1f ms; %.2f s; %d ms; %.2f s; %d MB; %d kB",
		float64(median(func(r ran) int { return int(r.turn) }))/1e6, float64(median(func(r ran) int { return int(r.whole) }))/1e9,
		median(func(r ran) int { return int(r.first) })/1e6, float64(median(func(r ran) int { return int(r.processor) }))/1e9,
		median(func(r ran) int { return r.memory })*1024/1e6, median(func(r ran) int { return r.sent })/1000)
}

// run does the run once.
func (c contender) run(ctx context.Context, folder string) (ran, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.timeout, runTimeout))
	defer cancel()
	played, err := script.Parse(c.name, []byte(c.rules))
	if err != nil {
		return ran{}, err
	}
	model := script.NewServer(played)
	var command *exec.Cmd
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		model.ServeHTTP(w, r)
		if c.onlyFirst {
			_ = command.Process.Signal(os.Interrupt) // it may have ended
		}
	}))
	defer server.Close()
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return ran{}, err
	}
	command, err = c.command(ctx, folder, server.URL)
	if err != nil {
		return ran{}, err
	}
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	command.WaitDelay = time.Second
	begun := time.Now()
	if err := command.Start(); err != nil {
		return ran{}, err
	}
	watch := watchMemory(command.Process.Pid)
	err = command.Wait()
	took := ran{whole: time.Since(begun), memory: watch()}
	if records := model.Records(); c.onlyFirst && len(records) > 0 {
		took.first = records[0].At.Sub(begun)
		return took, nil
	}
	if err != nil {
		return ran{}, errors.Join(ctx.Err(), fmt.Errorf("%w: %s", err, said.String()))
	}
	took.processor = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return took.count(model.Records(), begun, said.String())
}

// count adds what the model saw: its turns are those of the longest conversation.
func (r ran) count(records []script.Record, begun time.Time, said string) (ran, error) {
	var turns []time.Time
	for _, record := range records {
		if record.Rule == "" {
			return r, fmt.Errorf("the model was asked what it has no answer to; the program said: %s", said)
		}
		r.sent += len(record.Body)
		if strings.HasPrefix(record.Rule, "turn") {
			turns = append(turns, record.At)
		}
	}
	if len(turns) != runTurns {
		return r, fmt.Errorf("the model was asked for %d turns, not for %d; the program said: %s", len(turns), runTurns, said)
	}
	r.first = records[0].At.Sub(begun)
	r.turn = turns[len(turns)-1].Sub(turns[0]) / (runTurns - 1)
	return r, nil
}

// watchMemory looks at a process and its descendants until the function that it returns is
// called, which says how many kilobytes they had together at most. What processes share is
// counted once.
func watchMemory(pid int) (most func() int) {
	stop := make(chan struct{})
	var done sync.WaitGroup
	highest := 0
	done.Go(func() {
		tick := time.NewTicker(memoryEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				sum := 0
				for _, one := range descendants(pid) {
					sum += proportionalOf(one)
				}
				highest = max(highest, sum)
			}
		}
	})
	return func() int {
		close(stop)
		done.Wait()
		return highest
	}
}

// descendants are a process and all that it started, and so on.
func descendants(pid int) []int {
	found := []int{pid}
	for at := 0; at < len(found); at++ {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", found[at]))
		if err != nil {
			continue
		}
		for _, file := range threads {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // it has ended
			}
			for word := range strings.FieldsSeq(string(text)) {
				if child, err := strconv.Atoi(word); err == nil {
					found = append(found, child)
				}
			}
		}
	}
	return found
}

func proportionalOf(pid int) (kilobytes int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0 // it has ended
	}
	if _, rest, found := strings.Cut(string(text), "\nPss:"); found {
		_, _ = fmt.Sscan(rest, &kilobytes) // 0 if the kernel does not say
	}
	return kilobytes
}

// contenders are Toryo, a loop of a few lines, and what can be had from npm. What cannot be
// had is a row that says so.
func contenders(ctx context.Context, folder string) (all []contender, missing []row) {
	all = []contender{
		{name: "Toryo", aim: "7 ms a turn, first request under 100 ms", rules: toryoRules(`echo step-${turn}`), command: toryoRun(folder)},
		{name: "Toryo, each command changes a file", aim: "10 ms a turn", rules: toryoRules(`echo step-${turn} > step-${turn}.txt`), command: toryoRun(folder)},
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return all, append(missing, row{"a loop in Node, and programs of npm", notMeasured(err), ""})
	}
	all = append(all, contender{name: "a loop in Node", other: true, rules: plainRules("shell", "command"), command: nodeLoop(node)})
	peers, err := installPeers(ctx)
	if err != nil {
		return all, append(missing, row{strings.Join(peerPackages, ", "), notMeasured(err), ""})
	}
	return append(all,
		contender{name: "Claude Code", other: true, rules: plainRules("Bash", "command"), command: claudeCode(peers)},
		contender{name: "Claude Code --bare", other: true, rules: plainRules("Bash", "command"), command: claudeCode(peers, "--bare")},
		contender{name: "Codex", other: true, rules: plainRules("exec_command", "cmd"), command: codex(peers)}), missing
}

// toryoRules are the answers for a run of Toryo, whose commands run in the sandbox. It changes
// a file before its end: a run that changes nothing does not end well. Its environment needs
// nothing, so that what is measured is the run.
func toryoRules(command string) string {
	return `model: bench
rules:
  - name: understand
    when: {phase: pre_planning}
    answer: {text: '{"goal": "step through it", "deliverables": ["steps"], "constraints": [], "scope": "the folder", "ambiguities": []}'}
  - name: plan
    when: {phase: planning}
    answer:
      text: |
        {"goal_understanding": {"goal": "step through it", "deliverables": ["steps"], "constraints": []},
         "task_decomposition": {"subtasks": [{"id": "t1", "description": "step through it"}]},
         "action_plan": {"actions": [{"id": "a1", "subtask": "t1", "what": "run the commands"}]},
         "selected_environment": {"name": "python", "reason": "There is no manifest.", "detected_files": [], "setup_commands": ["true"],
          "verification": [{"command": "echo ready", "expected_output": "ready"}]}}
  - name: reflect
    when: {phase: reflection}
    answer: {text: '{"assessment": "It follows the plan.", "decision": "continue", "advice": "Go on."}'}
  - name: turn, the last
    when: {phase: execution, turn: ` + strconv.Itoa(runTurns) + `}
    answer: {calls: [{name: finish, arguments: {summary: "All steps were done."}}]}
  - name: turn, the one before
    when: {phase: execution, turn: ` + strconv.Itoa(runTurns-1) + `}
    answer: {calls: [{name: run, arguments: {command: 'echo all > steps.txt'}}]}
  - name: turn
    when: {phase: execution}
    answer: {calls: [{name: run, arguments: {command: '` + command + `'}}]}
  - name: judge
    when: {phase: verification}
    answer: {text: '{"satisfied": true, "missing": [], "problems": [], "assessment": "All steps were done."}'}
  - name: write
    when: {phase: complete}
    answer: {text: '{"commit_message": "Step through it", "title": "Step through it", "summary": "All steps were done."}'}
`
}

// plainRules are the answers for a program whose tool for commands has the name and takes
// the command under the key.
func plainRules(tool, key string) string {
	return `model: bench
rules:
  - name: turn, the last
    when: {turn: ` + strconv.Itoa(runTurns) + `}
    answer: {text: All steps were done.}
  - name: turn
    answer: {calls: [{name: ` + tool + `, arguments: {` + key + `: 'echo step-${turn}'}}]}
`
}

// toryoRun is toryo run on a repository of one file.
func toryoRun(programs string) func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
	return func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
		repository := filepath.Join(folder, "repository")
		steps := [][]string{
			{"git", "init", "--quiet", "--initial-branch=main", repository},
			{"git", "-C", repository, "-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "--quiet", "--allow-empty", "--message=start"},
		}
		for _, step := range steps {
			if output, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%w: %s", err, output)
			}
		}
		return toryoRunIn(programs, repository)(ctx, folder, url)
	}
}

// nodeSource is the least that such a program does.
const nodeSource = `const { execSync } = require("node:child_process");
const messages = [{ role: "user", content: "Step through it" }];
const tools = [{ name: "shell", description: "Runs a command.", input_schema: { type: "object", properties: { command: { type: "string" } } } }];
(async () => {
  for (;;) {
    const answer = await fetch(process.argv[2] + "/v1/messages", {
      method: "POST", headers: { "content-type": "application/json", "x-api-key": "bench", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ model: "bench", max_tokens: 1000, tools, messages }),
    });
    if (!answer.ok) { console.error(await answer.text()); process.exit(1); }
    const { content } = await answer.json();
    messages.push({ role: "assistant", content });
    const results = content.filter((part) => part.type === "tool_use")
      .map((call) => ({ type: "tool_result", tool_use_id: call.id, content: execSync(call.input.command).toString() }));
    if (results.length === 0) return;
    messages.push({ role: "user", content: results });
  }
})();
`

func nodeLoop(node string) func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
	return func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
		file := filepath.Join(folder, "loop.js")
		if err := os.WriteFile(file, []byte(nodeSource), 0o600); err != nil {
			return nil, err
		}
		return exec.CommandContext(ctx, node, file, url), nil
	}
}

// peerPackages are the programs of npm, with the versions that were measured.
var peerPackages = []string{"@anthropic-ai/claude-code", "@openai/codex"}

// installPeers installs other programs with npm, once for this user, and returns the folder
// with their commands.
func installPeers(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "toryo-bench")
	commands := filepath.Join(folder, "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(commands, "codex")); err == nil {
		return commands, nil
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", append([]string{"install", "--no-audit", "--no-fund", "--prefix", folder}, peerPackages...)...)
	if output, err := install.CombinedOutput(); err != nil {
		return "", errors.Join(ctx.Err(), err, errors.New(string(output)))
	}
	return commands, nil
}

// claudeCode is Claude Code, which sends nothing else than what the run needs.
func claudeCode(commands string, flags ...string) func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
	return func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
		command := exec.CommandContext(ctx, filepath.Join(commands, "claude"), append([]string{"--print", "--dangerously-skip-permissions"}, append(flags, "Step through it")...)...)
		command.Dir = folder
		command.Env = append(os.Environ(), "ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=bench", "HOME="+folder, "IS_SANDBOX=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ANTHROPIC_MODEL=bench")
		return command, nil
	}
}

// codex is Codex, without its sandbox.
func codex(commands string) func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
	return func(ctx context.Context, folder, url string) (*exec.Cmd, error) {
		provider := fmt.Sprintf(`model_providers.bench={name="bench", base_url="%s/v1", env_key="BENCH_KEY", wire_api="responses"}`, url)
		command := exec.CommandContext(ctx, filepath.Join(commands, "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
			"--model", "bench", "--config", "model_provider=bench", "--config", provider, "Step through it")
		command.Dir = folder
		command.Env = append(os.Environ(), "BENCH_KEY=bench", "CODEX_HOME="+folder)
		return command, nil
	}
}
