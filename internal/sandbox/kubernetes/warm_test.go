package kubernetes_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
	"github.com/toryo-dev/toryo/internal/sandbox/sandboxtest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// records keeps what an engine logs.
type records struct {
	mutex sync.Mutex
	lines []string
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *records) WithGroup(string) slog.Handler            { return r }
func (r *records) Handle(_ context.Context, record slog.Record) error {
	line := record.Level.String() + " " + record.Message
	record.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lines = append(r.lines, line)
	return nil
}

// of are the lines that have all of the parts.
func (r *records) of(parts ...string) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(r.lines), func(line string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	})
}

// keep has an engine keep pods ready until the test ends or the function is called.
func keep(t *testing.T, engine *kubernetes.Engine, owner string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var keeping sync.WaitGroup
	keeping.Go(func() {
		if err := engine.KeepWarm(ctx, owner); err != nil {
			t.Errorf("keep pods ready: %v", err)
		}
	})
	end = func() { cancel(); keeping.Wait() }
	t.Cleanup(end)
	return end
}

// ready waits until so many pods are ready for a sandbox.
func ready(t *testing.T, engine *kubernetes.Engine, spec sandbox.Spec, count int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := engine.Expect(ctx, spec)
	if err == nil {
		err = engine.AwaitWarm(ctx, spec, count)
	}
	if err != nil {
		t.Fatalf("%d pods are not ready: %v", count, err)
	}
}

// warmPods are the names of the pods in a namespace that are kept ready, running or not.
func warmPods(t *testing.T, cluster *testkit.KubernetesCluster, namespace string) []string {
	t.Helper()
	return strings.Fields(cluster.Kubectl(t, "", "--namespace", namespace, "get", "pods", "--selector", "toryo.dev/warm", "--output", "jsonpath={.items[*].metadata.name}"))
}

// warmed is an engine that has a pod ready for every sandbox before it is asked for.
type warmed struct {
	*kubernetes.Engine

	log *records
	t   *testing.T
}

func (w warmed) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	checked, err := spec.Validate()
	if err != nil || checked.Image != image {
		return w.Engine.Start(ctx, spec) // which refuses it
	}
	if err := w.Expect(ctx, checked); err != nil {
		return w.Engine.Start(ctx, spec) // of a snapshot that is not there
	}
	if err := w.AwaitWarm(ctx, checked, 1); err != nil {
		return nil, err
	}
	box, err := w.Engine.Start(ctx, spec)
	if err == nil && len(w.log.of("pod taken", box.Info().ID)) == 0 {
		w.t.Errorf("the sandbox %s did not take the pod that was ready", box.Info().ID)
	}
	if err == nil { // the suite measures this process, and the making of the next pod is not the sandbox's
		err = w.AwaitWarm(ctx, checked, 1)
	}
	return box, err
}

var warmHarness = sandboxtest.Harness{Image: image, New: func(t *testing.T, _ string, gate sandbox.NewGate) sandbox.Engine {
	t.Helper()
	settings := config(t, gate)
	log := &records{}
	settings.Warm, settings.Log = 1, slog.New(log)
	made := warmed{newEngine(t, settings), log, t}
	keep(t, made.Engine, "warm")
	return made
}}

// warmChild tells the process that is to be killed to take pods that are ready.
const warmChild = "TORYO_TEST_KUBERNETES_WARM"

// Sandboxes whose pods were ready before hold to the same contract.
func TestOnKubernetesWarmSuite(t *testing.T) {
	account(t)
	t.Setenv(warmChild, "1")
	t.Cleanup(func() { // what the program that is killed has left
		if _, err := newEngine(t, config(t, noGate)).Reap(context.WithoutCancel(t.Context()), "warm", func(sandbox.Info) bool { return true }); err != nil {
			t.Error(err)
		}
	})
	sandboxtest.Run(t, warmHarness)
}

// A pod that is kept ready has nothing of any run. What takes it has all that it asked for, and
// nobody has the pod after that.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesWarmPodIsTaken(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	log := &records{}
	settings := config(t, noGate)
	settings.Warm, settings.Log, settings.Deadline = 1, slog.New(log), time.Hour
	engine := newEngine(t, settings)
	end := keep(t, engine, "keeper")
	spec := sandbox.Spec{Owner: "taker", Task: "github:a/b#1", Generation: 7, Image: image, Workspace: t.TempDir(), Network: sandbox.Registries, Env: map[string]string{"KEY": "secret of the run"}}
	if err := os.WriteFile(filepath.Join(spec.Workspace, "file"), []byte("of the run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ready(t, engine, spec, 1)
	names := warmPods(t, cluster, namespace)
	if len(names) != 1 {
		t.Fatalf("ready are %v", names)
	}
	describe := func() string {
		return cluster.Kubectl(t, "", "--namespace", namespace, "get", "pod", names[0], "--output", "json")
	}
	for _, not := range []string{"taker", "github:a/b#1", "secret of the run", "serviceaccount", `"registries"`} {
		if strings.Contains(describe(), not) {
			t.Errorf("before it is taken, the pod has %s:\n%s", not, describe())
		}
	}
	for _, owner := range []string{"keeper", "taker"} {
		nothingLeft(t, engine, owner) // it is no sandbox yet
	}

	box, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if box.Info().ID != names[0] {
		t.Errorf("the sandbox is %s, and %s was ready", box.Info().ID, names[0])
	}
	if result, err := box.Run(t.Context(), sandbox.Command{Text: "echo $KEY; cat file; echo more >made"}); err != nil || string(result.Stdout) != "secret of the run\nof the run\n" {
		t.Errorf("got %q, %v", result.Log, err)
	}
	if text, err := os.ReadFile(filepath.Join(spec.Workspace, "made")); err != nil || string(text) != "more\n" {
		t.Errorf("the workspace has %q, %v", text, err)
	}
	for _, want := range []string{`"toryo.dev/owner-name": "taker"`, `"toryo.dev/task": "github:a/b#1"`, `"toryo.dev/generation": "7"`, `"activeDeadlineSeconds": 36`} {
		if !strings.Contains(describe(), want) {
			t.Errorf("the pod lacks %s:\n%s", want, describe())
		}
	}
	if strings.Contains(describe(), "secret of the run") || strings.Contains(describe(), "toryo.dev/warm") {
		t.Errorf("the pod has what it should not:\n%s", describe())
	}
	found, err := engine.List(t.Context(), "taker")
	if err != nil || len(found) != 1 || found[0].ID != names[0] || found[0].Task != spec.Task || found[0].Generation != 7 || !found[0].Running {
		t.Errorf("listed are %+v, %v", found, err)
	}
	if err := box.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	ready(t, engine, spec, 1) // another, which takes its place
	if again := warmPods(t, cluster, namespace); len(again) != 1 || again[0] == names[0] {
		t.Errorf("ready are %v after %v was used", again, names)
	}
	end()
	if left := warmPods(t, cluster, namespace); len(left) != 0 {
		t.Errorf("after the end there are %v", left)
	}
}

// However many want a pod, each has one of its own.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesWarmPodsHaveOneTaker(t *testing.T) {
	account(t)
	log := &records{}
	settings := config(t, noGate)
	settings.Warm, settings.Log = 3, slog.New(log)
	engine := newEngine(t, settings)
	keep(t, engine, "keeper")
	spec := sandbox.Spec{Owner: "taker", Image: image}
	ready(t, engine, spec, settings.Warm)
	var mutex sync.Mutex
	var starting sync.WaitGroup
	had := map[string]int{}
	for i := range settings.Warm + 2 {
		own := spec
		own.Workspace, own.Generation = t.TempDir(), int64(i+1)
		starting.Go(func() {
			box, err := engine.Start(t.Context(), own)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = box.Stop(t.Context()) }()
			mark := fmt.Sprint("mine ", own.Generation)
			result, err := box.Run(t.Context(), sandbox.Command{Text: "ls /workspace /tmp; echo " + mark + " | tee /tmp/mark"})
			if err != nil || string(result.Stdout) != "/tmp:\n\n/workspace:\n"+mark+"\n" {
				t.Errorf("%q, %v", result.Log, err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			had[box.Info().ID]++
		})
	}
	starting.Wait()
	if len(had) != settings.Warm+2 {
		t.Errorf("the pods were had so often: %v", had)
	}
	if taken := log.of("pod taken"); len(taken) != settings.Warm {
		t.Errorf("taken were %v", taken)
	}
}

// A pod that somebody else has taken is left to them; one that has died or is gone is given to
// nobody.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesWarmPodIsNotThere(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	for name, harm := range map[string]func(pod string){
		"taken": func(pod string) {
			cluster.Kubectl(t, "", "--namespace", namespace, "label", "pod", pod, "toryo.dev/warm-")
		},
		"deleted": func(pod string) {
			cluster.Kubectl(t, "", "--namespace", namespace, "delete", "pod", pod, "--grace-period=0", "--force")
		},
		"failed": func(pod string) {
			cluster.Kubectl(t, "", "--namespace", namespace, "patch", "pod", pod, "--subresource=status", "--patch", `{"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}}`)
		},
	} {
		settings := config(t, noGate)
		settings.Warm = 1
		engine := newEngine(t, settings)
		end := keep(t, engine, "keeper")
		spec := sandbox.Spec{Owner: "taker", Image: image, Workspace: t.TempDir()}
		ready(t, engine, spec, 1)
		names := warmPods(t, cluster, namespace)
		harm(names[0])
		box, err := engine.Start(t.Context(), spec)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if slices.Contains(names, box.Info().ID) {
			t.Errorf("%s: the pod was given out", name)
		}
		if result, err := box.Run(t.Context(), sandbox.Command{Text: "echo alive"}); err != nil || string(result.Stdout) != "alive\n" {
			t.Errorf("%s: %q, %v", name, result.Log, err)
		}
		if err := box.Stop(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		end()
		there := cluster.Kubectl(t, "", "--namespace", namespace, "get", "pod", names[0], "--ignore-not-found", "--output", "name")
		if (there != "") != (name == "taken") {
			t.Errorf("%s: afterwards there is %q", name, there)
		}
		if there != "" {
			cluster.Kubectl(t, "", "--namespace", namespace, "delete", "pod", names[0], "--grace-period=0", "--force")
		}
	}
}

// TestWarmChild is the agent that is killed.
//
//nolint:paralleltest // in the process that is to be killed it is alone
func TestWarmChild(t *testing.T) {
	if os.Getenv(warmChild) != "kill" {
		return
	}
	settings := config(t, noGate)
	settings.Warm = 1
	engine := newEngine(t, settings)
	keep(t, engine, "killed")
	ready(t, engine, sandbox.Spec{Image: image}, 1)
	_, _ = os.Stdout.WriteString("\nready\n")
	<-t.Context().Done()
}

// The pods that an agent kept ready that was killed end by themselves, and whoever comes
// later removes them.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesWarmPodsOfKilledAgent(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	account(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWarmChild$", "-test.v")
	child.Env = append(os.Environ(), warmChild+"=kill")
	output, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() && lines.Text() != "ready" {
	}
	names := warmPods(t, cluster, namespace)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	if len(names) != 1 {
		t.Fatalf("it kept %v ready", names)
	}
	later := newEngine(t, config(t, noGate))
	nothingLeft(t, later, "killed") // no sandbox
	waitUntil(t, "the pod has ended", func() bool {
		phase := cluster.Kubectl(t, "", "--namespace", namespace, "get", "pod", names[0], "--output", "jsonpath={.status.phase}")
		return phase == "Succeeded" || phase == "Failed"
	})
	for owner, left := range map[string]int{"another": 1, "killed": 0} {
		if count, err := later.Reap(t.Context(), owner, func(sandbox.Info) bool { return true }); err != nil || count != 0 {
			t.Errorf("%d sandboxes of %s were reaped, %v", count, owner, err)
		}
		if owner == "killed" && len(warmPods(t, cluster, namespace)) != left {
			t.Errorf("the reaping of %s leaves %v", owner, warmPods(t, cluster, namespace))
		}
	}
}

// What an agent keeps ready, nobody of the same process removes; and it ends when it was not
// used for long.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesWarmPodsEnd(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	settings := config(t, noGate)
	var ahead atomic.Int64
	settings.Warm, settings.Now = 1, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	engine := newEngine(t, settings)
	keep(t, engine, "keeper")
	ready(t, engine, sandbox.Spec{Image: image}, 1)
	if count, err := engine.Reap(t.Context(), "keeper", func(sandbox.Info) bool { return false }); err != nil || count != 0 {
		t.Errorf("%d were reaped, %v", count, err)
	}
	if names := warmPods(t, cluster, namespace); len(names) != 1 {
		t.Errorf("ready are %v", names)
	}
	ahead.Store(int64(31 * time.Minute))
	engine.Look()
	waitUntil(t, "the pod is gone", func() bool { return len(warmPods(t, cluster, namespace)) == 0 })
}

// An image that is not there any more is said, once, and not asked for again and again.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesWarmPodsWithoutImage(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	settings := config(t, noGate)
	log := &records{}
	var ahead atomic.Int64
	settings.Warm, settings.Log = 2, slog.New(log)
	settings.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	engine := newEngine(t, settings)
	keep(t, engine, "keeper")
	missing := sandbox.Spec{Image: "localhost/none:1"}
	said := func() []string { return log.of("WARN", "failed to keep a pod ready", missing.Image, "cannot be had") }
	if err := engine.Expect(t.Context(), missing); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it was said", func() bool { return len(said()) == settings.Warm })
	ready(t, engine, sandbox.Spec{Image: image}, settings.Warm) // of other images there are some, after the keeper has looked often
	if len(said()) != settings.Warm {
		t.Errorf("said was %v", said())
	}
	if names := warmPods(t, cluster, namespace); len(names) != settings.Warm {
		t.Errorf("ready are %v", names)
	}
	ahead.Store(int64(5 * time.Minute))
	engine.Look()
	waitUntil(t, "it was tried again", func() bool { return len(said()) > settings.Warm })
	if _, err := engine.Start(t.Context(), sandbox.Spec{Owner: "taker", Image: missing.Image, Workspace: t.TempDir()}); task.CodeOf(err) != task.NotFound {
		t.Errorf("a sandbox of the image gives %v", err)
	}
}

// Pods that are kept ready count for the quota, and make room for a sandbox that it refuses.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesWarmPodsGiveWay(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	account(t)
	const narrow = "narrow"
	cluster.Kubectl(t, `
apiVersion: v1
kind: Namespace
metadata: {name: narrow}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: narrow}
spec: {hard: {pods: "2"}}
`, "apply", "--filename", "-")
	settings := config(t, noGate)
	log := &records{}
	settings.Kubeconfig, settings.Namespace, settings.Claim = cluster.Kubeconfig(), narrow, ""
	settings.Warm, settings.Log = 3, slog.New(log)
	engine := newEngine(t, settings)
	keep(t, engine, "keeper")
	ready(t, engine, sandbox.Spec{Image: image}, 2) // and the third is refused
	waitUntil(t, "the quota was met", func() bool { return len(log.of("WARN", "failed to keep a pod ready", "exceeded quota")) == 1 })

	var boxes []sandbox.Sandbox
	for range 2 {
		box, err := engine.Start(t.Context(), sandbox.Spec{Owner: "taker", Image: image, Workspace: t.TempDir(), Limits: sandbox.Limits{Disk: 1 << 30}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = box.Stop(context.WithoutCancel(t.Context())) })
		boxes = append(boxes, box)
	}
	if names := warmPods(t, cluster, narrow); len(names) != 0 {
		t.Errorf("still ready are %v", names)
	}
	_, err := engine.Start(t.Context(), sandbox.Spec{Owner: "taker", Image: image, Workspace: t.TempDir()})
	if task.CodeOf(err) != task.TooMany || !sandbox.IsExhausted(err) {
		t.Errorf("one more than the quota allows: %v", err)
	}
	var errs error
	for _, box := range boxes {
		errs = errors.Join(errs, box.Stop(t.Context()))
	}
	if errs != nil {
		t.Error(errs)
	}
}
