package main

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
)

// clusterVariable names the folder of the cluster that scripts/kubernetes has started, if it has.
const clusterVariable = "TORYO_TEST_KUBERNETES"

// clusterImage is the image that the test cluster has. There are no languages in it.
const clusterImage = "localhost/base:1"

// clusterEngine makes pods in the test cluster with the guest as it is released, and keeps some
// ready. Its one node is this machine, so that many pods have to ask for little each.
func clusterEngine(program string, warm int, log slog.Handler) (*kubernetes.Engine, error) {
	list, err := egress.NewList()
	if err != nil {
		return nil, err
	}
	made := slog.New(log)
	return kubernetes.New(kubernetes.Config{
		Kubeconfig: filepath.Join(os.Getenv(clusterVariable), "kubeconfig"), Namespace: "default", PullPolicy: "Never", Guest: program,
		CPURequest: 0.02, MemoryRequest: 16 << 20, Warm: warm, Log: made,
		NewGate: func(policy sandbox.Policy) sandbox.Gate { return egress.New(list, policy, made) },
	})
}

// measurePods looks at sandboxes in pods, and at those whose pod was ready. Without a cluster it
// starts one that ends with it: one that is there takes processor time from what else is measured.
func measurePods(ctx context.Context, folder string) ([]row, error) {
	if os.Getenv(clusterVariable) == "" {
		return inCluster(ctx)
	}
	program := filepath.Join(folder, guest.LinuxProgram)
	folder = filepath.Join(folder, "bench")
	of := benchEngine{kind: kubernetes.Name, image: clusterImage, copies: true}
	engine, err := clusterEngine(program, 0, slog.DiscardHandler)
	if err == nil {
		err = engine.Check(ctx)
	}
	if err != nil {
		return nil, err
	}
	directly, err := runDirectly(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := measureCommands(ctx, engine, of, folder, directly)
	if err != nil {
		return nil, err
	}
	ready, err := measureReady(ctx, of, program, folder)
	return append(rows, ready...), err
}

// inCluster has this program measure pods while a cluster is up.
func inCluster(ctx context.Context) ([]row, error) {
	const script = "scripts/kubernetes"
	if err := exec.CommandContext(ctx, script, "find").Run(); err != nil || os.Getuid() != 0 {
		return []row{{kubernetes.Name + ": sandbox start, command", "no cluster", ""}}, nil //nolint:nilerr // not having one is a result
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, script, "with", self, "pods")
	command.Stderr = os.Stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) } // it takes the cluster down
	command.WaitDelay = time.Minute
	output, err := command.Output()
	return readTable(string(output)), err
}

// measureReady is the start of sandboxes whose pods are ready, one after the other and all at once.
func measureReady(ctx context.Context, of benchEngine, program, workspace string) ([]row, error) {
	spec := sandbox.Spec{Owner: benchOwner, Image: of.image, Workspace: workspace}
	log := &readyPods{}
	engine, err := clusterEngine(program, atOnce, log)
	if err != nil {
		return nil, err
	}
	keeping, end := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { _ = engine.KeepWarm(keeping, benchOwner) }) // without it none get ready, which is seen
	defer keeper.Wait()
	defer end()
	start := func() error {
		box, err := engine.Start(ctx, spec)
		if err != nil {
			return err
		}
		defer func() { _ = box.Stop(context.WithoutCancel(ctx)) }() // the measurement is over
		return runStep(ctx, box)
	}
	if err := start(); err != nil { // from which the engine knows what is wanted
		return nil, err
	}
	if err := log.await(ctx, atOnce); err != nil {
		return nil, err
	}
	one, err := median(sandboxStarts, start)
	if err != nil {
		return nil, err
	}
	if err := log.await(ctx, atOnce+sandboxStarts); err != nil {
		return nil, err
	}
	many, err := measureMany(ctx, engine, spec)
	many.measure += ", of pods that were ready"
	return []row{{engine.Name() + ": sandbox start to first command, of a pod that was ready, median", one.Round(time.Millisecond).String(), ""}, many}, err
}

// readyPods counts the pods of which an engine logs that they are ready.
type readyPods struct {
	mutex sync.Mutex
	count int
}

func (r *readyPods) Enabled(context.Context, slog.Level) bool { return true }
func (r *readyPods) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *readyPods) WithGroup(string) slog.Handler            { return r }

func (r *readyPods) Handle(_ context.Context, record slog.Record) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if record.Message == kubernetes.PodReady {
		r.count++
	}
	return nil
}

const readyWithin = 5 * time.Minute

// await waits until so many pods have become ready since the beginning.
func (r *readyPods) await(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		r.mutex.Lock()
		there := r.count >= count
		r.mutex.Unlock()
		if there {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
