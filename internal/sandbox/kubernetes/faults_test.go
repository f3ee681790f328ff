package kubernetes_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

type closedGate struct{}

func (closedGate) Serve(connection net.Conn) { _ = connection.Close() }
func (closedGate) SetPolicy(sandbox.Policy)  {}
func (closedGate) Close() error              { return nil }

func noGate(sandbox.Policy) sandbox.Gate { return closedGate{} }

func start(t *testing.T, engine *kubernetes.Engine, owner string) sandbox.Sandbox {
	t.Helper()
	box, err := engine.Start(t.Context(), sandbox.Spec{Owner: owner, Image: image, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Stop(context.WithoutCancel(t.Context())) }) // where a test does not look at it
	return box
}

// nothingLeft checks that the owner has no pods.
func nothingLeft(t *testing.T, engine *kubernetes.Engine, owner string) {
	t.Helper()
	if left, err := engine.List(t.Context(), owner); err != nil || len(left) != 0 {
		t.Errorf("left behind are %v, %v", left, err)
	}
}

func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// kubeconfigFor writes one for a server and a token.
func kubeconfigFor(t *testing.T, server, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "current-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nclusters: [{name: x, cluster: {server: '" + server +
		"', insecure-skip-tls-verify: true}}]\nusers: [{name: x, user: {token: '" + token + "'}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestClusterThatIsNotThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	settings := kubernetes.Config{Kubeconfig: kubeconfigFor(t, "https://"+listener.Addr().String(), "x"), NewGate: noGate, Log: discard}
	engine := newEngine(t, settings)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // it insists for longer
	defer cancel()
	if err := engine.Check(t.Context()); task.CodeOf(err) != task.NotReady {
		t.Errorf("check: %v", err)
	}
	if _, err := engine.List(t.Context(), "x"); task.CodeOf(err) != task.NotReady {
		t.Errorf("list: %v", err)
	}
	if _, err := engine.Start(ctx, sandbox.Spec{Owner: "x", Image: image, Workspace: t.TempDir()}); task.CodeOf(err) != task.NotReady {
		t.Errorf("start: %v", err)
	}
	settings.Kubeconfig = filepath.Join(t.TempDir(), "none")
	if _, err := kubernetes.New(settings); task.CodeOf(err) != task.NotReady {
		t.Errorf("without a kubeconfig: %v", err)
	}
}

// TestQuotaOfTheNamespace: a quota that is used up is a lack of resources; what else a
// cluster forbids is not.
func TestQuotaOfTheNamespace(t *testing.T) {
	t.Parallel()
	for message, exhausted := range map[string]bool{
		`pods "x" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0`: true,
		`pods is forbidden: User "x" cannot create resource "pods" in API group ""`:                     false,
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "reason": "Forbidden", "message": message, "code": http.StatusForbidden}) // the client may be gone
		}))
		t.Cleanup(server.Close)
		engine := newEngine(t, kubernetes.Config{Kubeconfig: kubeconfigFor(t, server.URL, "x"), NewGate: noGate, Log: discard})
		_, err := engine.Start(t.Context(), sandbox.Spec{Owner: "x", Image: image, Workspace: t.TempDir()})
		if err == nil || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("%s: the start gave %v, a lack of resources: %t", message, err, sandbox.IsExhausted(err))
		}
	}
}

// TestClusterWithoutResources: a cluster tells what a node lacks in the status of the pod, in
// answers of the API and on the standard error of a process.
func TestClusterWithoutResources(t *testing.T) {
	t.Parallel()
	const full = "write /var/lib/x: No space left on device"
	waiting := func(reason, message string) string {
		return `{"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "` + reason + `", "message": "` + message + `"}}}]}`
	}
	const running = `{"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}`
	for name, test := range map[string]struct {
		status, stderr string
		exhausted      bool
	}{
		"image":              {waiting("ImagePullBackOff", full), "", true},
		"unknown image":      {waiting("ImagePullBackOff", "not found"), "", false},
		"container":          {waiting("CreateContainerError", full), "", true},
		"killed container":   {waiting("RunContainerError", "container init was OOM-killed"), "", true},
		"wrong container":    {waiting("CreateContainerConfigError", "no such key"), "", false},
		"end":                {`{"phase": "Failed", "message": "` + full + `"}`, "", true},
		"end without reason": {`{"phase": "Failed"}`, "", false},
		"waits":              {waiting("ContainerCreating", full), "", true},
		"waits for a volume": {waiting("ContainerCreating", "no volume"), "", false},
		"program":            {running, "sh: " + full, true},
		"program without sh": {running, "sh: not found", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := startIn(t, test.status, test.stderr)
			if err == nil || !strings.Contains(err.Error(), test.stderr) || sandbox.IsExhausted(err) != test.exhausted {
				t.Errorf("the start gave %v, a lack of resources: %t", err, sandbox.IsExhausted(err))
			}
		})
	}
}

// startIn starts a sandbox in a cluster whose pods have a status, and whose processes print
// something on standard error and fail.
func startIn(t *testing.T, status, stderr string) error {
	t.Helper()
	var deleted atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/exec"):
			failProcess(w, r, stderr)
		case r.URL.Query().Has("watch"):
			<-r.Context().Done() // nothing changes
		case r.Method == http.MethodDelete:
			deleted.Store(true)
			_, _ = w.Write([]byte("{}")) // the client may be gone
		case deleted.Load():
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write([]byte(`{"metadata": {"name": "x"}, "status": ` + status + `}`)) // the client may be gone
		}
	}))
	t.Cleanup(server.Close)
	engine := newEngine(t, kubernetes.Config{Kubeconfig: kubeconfigFor(t, server.URL, "x"), NewGate: noGate, Log: discard, StartTimeout: time.Second})
	_, err := engine.Start(t.Context(), sandbox.Spec{Owner: "x", Image: image, Workspace: t.TempDir()})
	return err
}

// failProcess answers a request for a process as the API server does: the first byte of each
// message is a channel.
func failProcess(w http.ResponseWriter, r *http.Request, stderr string) {
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"v5.channel.k8s.io"}})
	if err != nil {
		return
	}
	defer func() { _ = socket.CloseNow() }()
	socket.SetReadLimit(-1)
	for _, message := range []string{"\x02" + stderr, "\x03" + `{"status": "Failure", "message": "exit code 1"}`} {
		if socket.Write(r.Context(), websocket.MessageBinary, []byte(message)) != nil {
			return
		}
	}
	for err == nil { // the input, until the client leaves
		_, _, err = socket.Read(r.Context())
	}
}

// What a cluster refuses has a code, a message and no remains.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesRefusals(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	account(t)
	server := cluster.Kubectl(t, "", "config", "view", "--output", "jsonpath={.clusters[0].cluster.server}")
	cluster.Kubectl(t, `
apiVersion: v1
kind: Namespace
metadata: {name: tight}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: tight}
spec: {hard: {pods: "0"}}
`, "apply", "--filename", "-")
	administrator := func(c *kubernetes.Config) { c.Kubeconfig = cluster.Kubeconfig() }
	for name, test := range map[string]struct {
		change   func(*kubernetes.Config)
		image    string
		check    task.Code // of Check; empty for none
		start    task.Code
		contains string
	}{
		"unknown token": {func(c *kubernetes.Config) { c.Kubeconfig = kubeconfigFor(t, server, "nonsense") }, image, task.Unauthorized, task.Unauthorized, "renew"},
		"no permission": {func(c *kubernetes.Config) { c.Kubeconfig = cluster.AccountKubeconfig(t, "toryo", "default") }, image, task.Forbidden, task.Forbidden, "sandboxes.yaml"},
		"no namespace":  {func(c *kubernetes.Config) { administrator(c); c.Namespace = "nowhere" }, image, task.NotReady, task.NotFound, "nowhere"},
		"quota":         {func(c *kubernetes.Config) { administrator(c); c.Namespace, c.Claim = "tight", "" }, image, "", task.TooMany, "exceeded quota"},
		"no image":      {func(*kubernetes.Config) {}, "localhost/none:1", "", task.NotFound, "localhost/none:1"},
		"bad image":     {func(*kubernetes.Config) {}, "!!", "", task.NotFound, "InvalidImageName"},
		"runtime":       {func(c *kubernetes.Config) { c.RuntimeClass = "nonsense" }, image, "", task.BadConfig, "runtime_class"},
		"pending for ever": {func(c *kubernetes.Config) {
			c.NodeSelector, c.StartTimeout = map[string]string{"no": "where"}, time.Second
		}, image, "", task.NotReady, "Unschedulable"},
	} {
		settings := config(t, noGate)
		test.change(&settings)
		engine := newEngine(t, settings)
		if code := task.CodeOf(engine.Check(t.Context())); code != test.check {
			t.Errorf("%s: the check gave %q, want %q", name, code, test.check)
		}
		_, err := engine.Start(t.Context(), sandbox.Spec{Owner: "refused", Image: test.image, Workspace: t.TempDir()})
		if task.CodeOf(err) != test.start || !strings.Contains(err.Error(), test.contains) {
			t.Errorf("%s: the start gave %q: %v; want %q", name, task.CodeOf(err), err, test.start)
		}
		if sandbox.IsExhausted(err) != (name == "quota") {
			t.Errorf("%s: the start lacks resources: %t", name, sandbox.IsExhausted(err))
		}
		if test.start != task.Unauthorized && test.start != task.Forbidden {
			nothingLeft(t, engine, "refused")
		}
	}
}

// The role in deploy/kubernetes allows what the suite does, and not more.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesRoleIsSmall(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	account(t)
	said := cluster.Kubectl(t, "", "auth", "can-i", "--list", "--namespace", namespace, "--as", "system:serviceaccount:toryo:toryo-agent", "--no-headers")
	for line := range strings.Lines(said) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "[") || strings.Contains(line, "selfsubject") || strings.Contains(line, "selfsubjectreviews") {
			continue // what everybody may
		}
		switch fields[0] {
		case "pods", "pods/exec", "namespaces", "networkpolicies.networking.k8s.io", "services", "configmaps":
		default:
			t.Errorf("the account may also: %s", line)
		}
	}
	for _, line := range []string{"pods ", "pods/exec"} {
		if !strings.Contains(said, line) {
			t.Errorf("the account may not %s: %s", line, said)
		}
	}
}

// A pod that ends under a command says why, and a limit is a result.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesLostPods(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	engine := newEngine(t, config(t, noGate))
	status := func(name, patch string) {
		cluster.Kubectl(t, "", "--namespace", namespace, "patch", "pod", name, "--subresource=status", "--patch", patch)
	}
	for what, test := range map[string]struct {
		harm  func(pod string)
		limit sandbox.Limit
		want  string
	}{
		"evicted for memory of the node": {func(pod string) {
			status(pod, `{"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}}`)
		}, "", "evicted: The node was low on resource: memory"},
		"evicted for disk": {func(pod string) {
			status(pod, `{"status": {"phase": "Failed", "reason": "Evicted", "message": "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."}}`)
		}, sandbox.DiskLimit, "evicted"},
		"out of memory": {func(pod string) {
			status(pod, `{"status": {"phase": "Failed", "containerStatuses": [{"name": "sandbox", "image": "x", "imageID": "x", "ready": false, "restartCount": 0, "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}}`)
		}, sandbox.MemoryLimit, "memory"},
		"too long": {func(pod string) {
			status(pod, `{"status": {"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}}`)
		}, "", "sandbox.kubernetes.deadline"},
		"deleted": {func(pod string) {
			cluster.Kubectl(t, "", "--namespace", namespace, "delete", "pod", pod, "--grace-period=0", "--force")
		}, "", "deleted"},
	} {
		box := start(t, engine, "lost")
		var once sync.Once
		result, err := box.Run(t.Context(), sandbox.Command{Text: "echo begun; sleep 3600", Timeout: time.Minute, Output: func(sandbox.Stream, []byte) {
			once.Do(func() { test.harm(box.Info().ID) })
		}})
		if test.limit == "" && (task.CodeOf(err) != task.Unavailable || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %+v, %v", what, result, err)
		}
		if test.limit != "" && (err != nil || result.Exceeded != test.limit || result.ExitCode == 0) {
			t.Errorf("%s: %+v, %v; want the limit %s", what, result, err, test.limit)
		}
		if _, err := box.Run(t.Context(), sandbox.Command{Text: "echo x"}); task.CodeOf(err) != task.Unavailable || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the next command: %v", what, err)
		}
		if err := box.Stop(t.Context()); err != nil {
			t.Errorf("%s: stop: %v", what, err)
		}
	}
	nothingLeft(t, engine, "lost")
}

// A pod has what configuration says, and as little as a pod can have besides. That
// the namespace takes it at all says more: it enforces the standard "restricted".
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesPodAsConfigured(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	settings := config(t, noGate)
	settings.Deadline, settings.User, settings.PullSecrets = 1234*time.Second, 4321, []string{"registry"}
	settings.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	settings.Tolerations = []kubernetes.Toleration{{Key: "dedicated", Operator: "Equal", Value: "sandboxes", Effect: "NoSchedule"}}
	box, err := newEngine(t, settings).Start(t.Context(), sandbox.Spec{Owner: "configured", Image: image, Workspace: t.TempDir(), Env: map[string]string{"KEY": "secret of the run"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Stop(context.WithoutCancel(t.Context())) })
	said := cluster.Kubectl(t, "", "--namespace", namespace, "get", "pod", box.Info().ID, "--output", "json")
	for _, want := range []string{
		`"activeDeadlineSeconds": 1234`, `"runAsUser": 4321`, `"runAsNonRoot": true`, `"readOnlyRootFilesystem": true`, `"allowPrivilegeEscalation": false`,
		`"automountServiceAccountToken": false`, `"enableServiceLinks": false`, `"type": "RuntimeDefault"`, `"name": "registry"`,
		`"kubernetes.io/os": "linux"`, `"value": "sandboxes"`, `"memory": "536870912"`, `"memory": "4831838208"`, `"cpu": "250m"`, `"toryo.dev/network": "none"`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the pod lacks %s:\n%s", want, said)
		}
	}
	if strings.Contains(said, "secret of the run") {
		t.Error("a variable of the commands can be read in the pod's description")
	}
	if result, err := box.Run(t.Context(), sandbox.Command{Text: "echo $KEY"}); err != nil || string(result.Stdout) != "secret of the run\n" {
		t.Errorf("the variable is %q, %v", result.Log, err)
	}
	if strings.Contains(said, "serviceaccount") {
		t.Error("the pod has a token of the cluster")
	}
}

// A command goes on while the API server is away, and nothing of it is lost.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesAPIServerRestartsMidCommand(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	settings := config(t, noGate)
	settings.Patience = time.Minute
	engine := newEngine(t, settings)
	box := start(t, engine, "restarted")
	var once sync.Once
	result, err := box.Run(t.Context(), sandbox.Command{Text: "echo begun; for i in 1 2 3 4 5 6 7 8; do sleep 0.2; echo $i > file$i; echo $i; done", Timeout: time.Minute,
		Output: func(sandbox.Stream, []byte) {
			once.Do(func() {
				for _, process := range cluster.Processes(t, "kube-apiserver") {
					if err := syscall.Kill(process, syscall.SIGKILL); err != nil {
						t.Errorf("kill the API server: %v", err)
					}
				}
			})
		}})
	if err != nil || string(result.Stdout) != "begun\n1\n2\n3\n4\n5\n6\n7\n8\n" || result.ExitCode != 0 {
		t.Errorf("the command ended with %+v (%q), %v", result, result.Log, err)
	}
	if text, err := os.ReadFile(filepath.Join(box.Workspace(), "file8")); err != nil || string(text) != "8\n" {
		t.Errorf("its last file is %q, %v", text, err)
	}
	if err := box.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, engine, "restarted")
}

// between is a way to the API server that can be cut, and closed.
type between struct {
	address string
	mutex   sync.Mutex
	open    map[net.Conn]bool
	closed  bool
}

func newBetween(t *testing.T, server string) *between {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &between{address: "https://" + listener.Addr().String(), open: map[net.Conn]bool{}}
	var passing sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); b.cut(true); passing.Wait() })
	passing.Go(func() {
		for {
			inside, err := listener.Accept()
			if err != nil {
				return
			}
			outside, err := net.Dial("tcp", at.Host)
			if err != nil || !b.add(inside, outside) {
				_ = inside.Close()
				continue
			}
			passing.Go(func() { _, _ = io.Copy(outside, inside); _ = outside.Close() })
			passing.Go(func() { _, _ = io.Copy(inside, outside); _ = inside.Close() })
		}
	})
	return b
}

func (b *between) add(connections ...net.Conn) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, connection := range connections {
		if b.closed {
			_ = connection.Close()
			continue
		}
		b.open[connection] = true
	}
	return !b.closed
}

// cut breaks the connections that there are, and perhaps those to come.
func (b *between) cut(forEver bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.closed = forEver
	for connection := range b.open {
		_ = connection.Close()
	}
	b.open = map[net.Conn]bool{}
}

//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesStreamIsCut(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	account(t)
	server := cluster.Kubectl(t, "", "config", "view", "--output", "jsonpath={.clusters[0].cluster.server}")
	token := cluster.Kubectl(t, "", "--namespace", "toryo", "create", "token", "toryo-agent")
	way := newBetween(t, server)
	settings := config(t, noGate)
	settings.Kubeconfig = kubeconfigFor(t, way.address, token)
	engine := newEngine(t, settings)
	box := start(t, engine, "cut")
	cuts := 0
	result, err := box.Run(t.Context(), sandbox.Command{Text: "for i in 1 2 3; do echo $i; sleep 0.3; done; echo done", Timeout: time.Minute, Output: func(sandbox.Stream, []byte) {
		if cuts++; cuts <= 3 {
			way.cut(false)
		}
	}})
	if err != nil || string(result.Stdout) != "1\n2\n3\ndone\n" {
		t.Errorf("after some cuts: %q, %v", result.Log, err)
	}
	// And when it stays cut, the sandbox is lost.
	_, err = box.Run(t.Context(), sandbox.Command{Text: "echo begun; sleep 3600", Timeout: time.Minute, Output: func(sandbox.Stream, []byte) { way.cut(true) }})
	if task.CodeOf(err) != task.Unavailable || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("cut for ever: %v", err)
	}
	// The pod finds out by itself, and whoever comes later removes it.
	later := newEngine(t, config(t, noGate))
	waitUntil(t, "the pod has ended", func() bool {
		left, err := later.List(t.Context(), "cut")
		return err == nil && len(left) == 1 && !left[0].Running
	})
	if count, err := later.Reap(t.Context(), "cut", func(sandbox.Info) bool { return false }); err != nil || count != 1 {
		t.Errorf("%d were reaped, %v", count, err)
	}
	nothingLeft(t, later, "cut")
	way.cut(false) // so that the engine can remove what it knows of
}

// A node that is gone takes its sandboxes with it: that is noticed, and what is
// left in the cluster is removed.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesNodeIsGone(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	account(t)
	server := cluster.Kubectl(t, "", "config", "view", "--output", "jsonpath={.clusters[0].cluster.server}")
	token := cluster.Kubectl(t, "", "--namespace", "toryo", "create", "token", "toryo-agent")
	way := newBetween(t, server)
	settings := config(t, noGate)
	settings.Kubeconfig = kubeconfigFor(t, way.address, token)
	engine := newEngine(t, settings)
	box := start(t, engine, "gone")
	kubelets := cluster.Processes(t, "kubelet")
	signal := func(what syscall.Signal) {
		for _, process := range kubelets {
			_ = syscall.Kill(process, what)
		}
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	_, err := box.Run(t.Context(), sandbox.Command{Text: "echo begun; sleep 3600", Timeout: time.Minute, Output: func(sandbox.Stream, []byte) {
		signal(syscall.SIGSTOP)
		way.cut(false)
	}})
	if task.CodeOf(err) != task.Unavailable || !strings.Contains(err.Error(), "node") {
		t.Errorf("the node is gone: %v", err)
	}
	if err := box.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	nothingLeft(t, engine, "gone")
	signal(syscall.SIGCONT)
	start(t, engine, "gone") // it is back
}
