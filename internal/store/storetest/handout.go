package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// HandOut is the proof that no task is handed out twice: many processes claim the
// tasks of one database, some of them are killed while they work and replaced,
// and in the end every task has been given once.
type HandOut struct {
	Address string // of an empty database
	Open    func(ctx context.Context, address string) (store.Store, error)
	Tasks   int
	Workers int
	Kills   int
	Batch   int
}

// The environment of a worker.
const (
	workerDatabase = "TORYO_HANDOUT_DATABASE"
	workerRecord   = "TORYO_HANDOUT_RECORD"
	workerBatch    = "TORYO_HANDOUT_BATCH"
)

// limit bounds the whole proof. It is far more than it takes.
const limit = 5 * time.Minute

// Main is for an adapter's TestMain: it runs the tests, or, in a process that
// HandOut.Prove has started, a worker. It returns the exit code.
func Main(m *testing.M, open func(ctx context.Context, address string) (store.Store, error)) int {
	address := os.Getenv(workerDatabase)
	if address == "" {
		return m.Run()
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := work(ctx, os.Stdout, address, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// work claims tasks until there are none, and records what it was given before
// it asks for more.
func work(ctx context.Context, reports io.Writer, address string, open func(ctx context.Context, address string) (store.Store, error)) (err error) {
	var batch int
	if _, err := fmt.Sscan(os.Getenv(workerBatch), &batch); err != nil {
		return fmt.Errorf("%s: %w", workerBatch, err)
	}
	record, err := os.OpenFile(os.Getenv(workerRecord), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = record.Close() }()
	s, err := open(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	agent := filepath.Base(record.Name())
	for {
		queue, err := s.Queue(ctx, noon, 4*batch) // of each repository, of which there is one
		if err != nil {
			return err
		}
		ready := queue.Ready
		if len(ready) == 0 {
			return nil
		}
		rand.Shuffle(len(ready), func(i, j int) { ready[i], ready[j] = ready[j], ready[i] })
		var claims []store.Claim
		for _, x := range ready[:min(batch, len(ready))] {
			claims = append(claims, store.Claim{Task: x.ID, Generation: x.Generation, Agent: agent, TokenHash: []byte(agent), ExpiresAt: noon})
		}
		held, err := s.Claim(ctx, claims, func(_, after task.Task) []store.Action {
			return []store.Action{{Item: after.Key, Task: after.ID, Generation: after.Generation, IdempotencyKey: agent + " " + string(after.ID), Kind: "label"}}
		})
		if err != nil {
			return err
		}
		if len(held) == 0 {
			continue // others were quicker
		}
		var lines strings.Builder
		for _, x := range held {
			fmt.Fprintf(&lines, "%s\n", x.ID)
		}
		if _, err := record.WriteString(lines.String()); err != nil {
			return err
		}
		if err := record.Sync(); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(reports, "claimed", len(held)); err != nil {
			return err
		}
	}
}

// worker is a process that claims.
type worker struct {
	name    string
	process *exec.Cmd
	output  io.ReadCloser
	killed  bool
}

// news is what a worker has done: claimed a batch, or ended.
type news struct {
	from  *worker
	ended bool
	err   error
}

// Prove runs the proof.
func (h HandOut) Prove(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, err := h.Open(ctx, h.Address)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	h.queue(ctx, t, s)

	records := t.TempDir()
	killed := h.run(ctx, t, records)
	equal(t, killed, h.Kills)
	h.verify(ctx, t, s, records)
}

// queue makes the tasks.
func (h HandOut) queue(ctx context.Context, t *testing.T, s store.Store) {
	const hands = 16
	together(hands, func(hand int) {
		for n := hand; n < h.Tasks; n += hands {
			if _, _, err := s.Assign(ctx, newTaskOn(newKey()), nil); err != nil {
				t.Error(err)
				return
			}
		}
	})
	ready, err := s.Queue(ctx, noon, 0)
	must(t, err)
	equal(t, len(ready.Ready), h.Tasks)
}

// run starts the workers, kills some and replaces them, and returns how many died
// of it when all tasks are claimed. Whenever one reports a batch, another one may
// be killed, wherever that is in its own work.
func (h HandOut) run(ctx context.Context, t *testing.T, records string) (killed int) {
	reports := make(chan news, h.Tasks+h.Workers+h.Kills) // nobody ever waits to report
	alive := map[*worker]bool{}
	started := 0
	start := func() {
		w := h.start(ctx, t, filepath.Join(records, fmt.Sprintf("worker-%d", started)))
		started++
		alive[w] = true
		go w.watch(reports) // ends with the process, which ends with the context
	}
	for range h.Workers {
		start()
	}
	batches, toKill, next := 0, h.Kills, 1
	for len(alive) > 0 {
		report := <-reports
		if !report.ended {
			batches++
			if toKill > 0 && batches >= next {
				h.kill(t, alive)
				toKill--
				next = batches + 1 + rand.IntN(h.Tasks/h.Batch/2/h.Kills)
			}
			continue
		}
		delete(alive, report.from)
		switch {
		case report.from.killed && report.from.process.ProcessState.ExitCode() == -1:
			killed++
			start()
		case report.err != nil:
			t.Errorf("%s: %v", report.from.name, report.err)
		}
	}
	return killed
}

// kill ends one of the workers that have not been killed yet, as kill -9 does.
func (h HandOut) kill(t *testing.T, alive map[*worker]bool) {
	t.Helper()
	var victims []*worker
	for w := range alive {
		if !w.killed {
			victims = append(victims, w)
		}
	}
	victim := victims[rand.IntN(len(victims))]
	victim.killed = true
	must(t, victim.process.Process.Kill())
}

func (h HandOut) start(ctx context.Context, t *testing.T, record string) *worker {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	w := &worker{name: filepath.Base(record), process: exec.CommandContext(ctx, program)}
	w.process.Env = append(os.Environ(), workerDatabase+"="+h.Address, workerRecord+"="+record, workerBatch+"="+fmt.Sprint(h.Batch))
	w.process.Stderr = os.Stderr
	w.output, err = w.process.StdoutPipe()
	must(t, err)
	must(t, w.process.Start())
	return w
}

// watch follows a worker to its end and reports what it does.
func (w *worker) watch(reports chan<- news) {
	lines := bufio.NewScanner(w.output)
	for lines.Scan() {
		reports <- news{from: w}
	}
	reports <- news{from: w, ended: true, err: w.process.Wait()}
}

// verify compares what the workers wrote down with what the database says.
func (h HandOut) verify(ctx context.Context, t *testing.T, s store.Store, records string) {
	given := recorded(t, records)
	if lost := h.Tasks - len(given); lost > h.Kills*h.Batch {
		t.Errorf("%d claims were not written down; %d processes of batch %d were killed", lost, h.Kills, h.Batch)
	}
	all, err := s.ListTasks(ctx, store.TaskFilter{})
	must(t, err)
	equal(t, len(all), h.Tasks)
	for _, x := range all {
		if x.State != task.Running || x.Generation != 1 || x.Attempts != 1 {
			t.Errorf("task %s is %s in generation %d after %d attempts", x.ID, x.State, x.Generation, x.Attempts)
		}
		if agent, ok := given[x.ID]; ok && agent != x.Lease.Agent {
			t.Errorf("task %s was given to %s and is held by %s", x.ID, agent, x.Lease.Agent)
		}
	}
	together(8, func(hand int) {
		for n := hand; n < len(all); n += 8 {
			events, err := s.EventsAfter(ctx, all[n].ID, 0, 0)
			if err != nil || len(events) != 2 {
				t.Errorf("task %s has %d events: %v", all[n].ID, len(events), err)
			}
		}
	})
	actions, err := s.Take(ctx, noon, noon.Add(time.Hour), 0)
	must(t, err)
	equal(t, len(actions), h.Tasks)
	t.Logf("%d tasks, %d written down, %d processes killed", h.Tasks, len(given), h.Kills)
}

// recorded reads who was given what. A line that a kill cut short does not count.
func recorded(t *testing.T, records string) map[task.ID]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(records, "*"))
	must(t, err)
	given := map[task.ID]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		lines := strings.Split(string(text), "\n")
		for _, line := range lines[:len(lines)-1] {
			id := task.ID(line)
			if before := given[id]; before != "" {
				t.Errorf("task %s was given to %s and to %s", id, before, filepath.Base(file))
			}
			given[id] = filepath.Base(file)
		}
	}
	return given
}
