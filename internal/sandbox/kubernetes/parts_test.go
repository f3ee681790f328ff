package kubernetes_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/workdir"
)

var discard = slog.New(slog.DiscardHandler)

// program is the image of this very test binary, which serves as Toryo's.
const program = "localhost/program:1"

var loaded sync.Once

func loadProgram(t *testing.T, cluster *testkit.KubernetesCluster) {
	t.Helper()
	loaded.Do(func() {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		put := func(from, to string) {
			content, err := os.ReadFile(from)
			if err == nil {
				err = os.MkdirAll(filepath.Join(root, filepath.Dir(to)), 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(root, to), content, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		put(self, "toryo")
		libraries, _ := exec.Command("ldd", self).Output() // a static program has none
		for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
			if library != self && !strings.HasSuffix(library, ":") {
				put(library, library)
			}
		}
		cluster.Load(t, program, root, "/toryo")
	})
}

// serveEgress makes the test binary the filtering proxy, for a pod of the tests.
func serveEgress(hosts []string) {
	list, err := egress.NewList(hosts...)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", ":3128")
	if err != nil {
		panic(err)
	}
	if err := egress.New(list, sandbox.Registries, discard).Listen(context.Background(), listener); err != nil {
		panic(err)
	}
}

// checkFromInside makes the test binary an agent in a pod, as far as its account
// goes.
func checkFromInside(output io.Writer) int {
	engine, err := kubernetes.New(kubernetes.Config{NewGate: noGate, Log: discard})
	if err == nil {
		err = engine.Check(context.Background())
	}
	if err != nil {
		_, _ = fmt.Fprintln(output, err)
		return 1
	}
	_, _ = fmt.Fprintln(output, "allowed")
	return 0
}

// An agent in the cluster is known by the account of its pod.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesAgentInTheCluster(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	account(t)
	loadProgram(t, cluster)
	server, err := url.Parse(cluster.Kubectl(t, "", "config", "view", "--output", "jsonpath={.clusters[0].cluster.server}"))
	if err != nil {
		t.Fatal(err)
	}
	// The address of the API server's service does not work in this cluster.
	cluster.Kubectl(t, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: toryo}
spec:
  restartPolicy: Never
  serviceAccountName: toryo-agent
  automountServiceAccountToken: true
  securityContext: {runAsNonRoot: true, runAsUser: 10001}
  containers:
    - {name: agent, image: %s, imagePullPolicy: Never, args: [check],
       env: [{name: KUBERNETES_SERVICE_HOST, value: %q}, {name: KUBERNETES_SERVICE_PORT, value: %q}]}
`, program, server.Hostname(), server.Port()), "apply", "--filename", "-")
	t.Cleanup(func() {
		cluster.Kubectl(t, "", "--namespace", "toryo", "delete", "pod/agent", "--grace-period=0", "--force")
	})
	waitUntil(t, "the agent has looked", func() bool {
		phase := cluster.Kubectl(t, "", "--namespace", "toryo", "get", "pod/agent", "--output", "jsonpath={.status.phase}")
		return phase == "Succeeded" || phase == "Failed"
	})
	if said := cluster.Kubectl(t, "", "--namespace", "toryo", "logs", "pod/agent"); said != "allowed" {
		t.Errorf("it said %q", said)
	}
}

//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesGuestFromAnImage(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	loadProgram(t, cluster)
	settings := config(t, noGate)
	settings.GuestImage = program
	box := start(t, newEngine(t, settings), "image")
	if result, err := box.Run(t.Context(), sandbox.Command{Text: "touch /.toryo/x || echo $((6*7))"}); err != nil || string(result.Stdout) != "42\n" {
		t.Errorf("got %q, %v", result.Log, err)
	}
}

// The filtering proxy as a pod of its own: what a sandbox downloads goes there and
// not through the agent.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesEgressPod(t *testing.T) {
	cluster := testkit.Kubernetes(t)
	account(t)
	loadProgram(t, cluster)
	listener, err := net.Listen("tcp", cluster.Address+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "served "+r.URL.Path) })}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	address := listener.Addr().String()
	cluster.Kubectl(t, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: toryo-egress, namespace: %s}
spec: {clusterIP: None, selector: {app: toryo-egress}, ports: [{name: registries, port: 3128}]}
---
apiVersion: v1
kind: Pod
metadata: {name: egress, namespace: %[1]s, labels: {app: toryo-egress}}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 10001, seccompProfile: {type: RuntimeDefault}}
  containers:
    - {name: egress, image: %s, imagePullPolicy: Never, args: [egress, %q], readinessProbe: {tcpSocket: {port: 3128}, periodSeconds: 1},
       securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
`, namespace, program, address), "apply", "--filename", "-")
	t.Cleanup(func() {
		cluster.Kubectl(t, "", "--namespace", namespace, "delete", "pod/egress", "service/toryo-egress", "--grace-period=0", "--force")
	})
	cluster.Kubectl(t, "", "--namespace", namespace, "wait", "pod/egress", "--for=condition=Ready", "--timeout=60s")

	settings := config(t, noGate)
	settings.EgressService = "toryo-egress"
	engine := newEngine(t, settings)
	box, err := engine.Start(t.Context(), sandbox.Spec{Owner: "egress", Image: image, Workspace: t.TempDir(), Network: sandbox.Registries})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Stop(context.WithoutCancel(t.Context())) })
	ask := func(at string) string {
		t.Helper()
		result, err := box.Run(t.Context(), sandbox.Command{Text: fmt.Sprintf(`p=${HTTP_PROXY#http://}; exec 3<>/dev/tcp/${p%%%%:*}/${p##*:} && printf 'GET http://%s/x HTTP/1.0\r\n\r\n' >&3 && cat <&3; exec 3>&-`, at)})
		if err != nil {
			t.Fatal(err)
		}
		return string(result.Log)
	}
	if got := ask(address); !strings.Contains(got, "served /x") {
		t.Errorf("what is allowed: %q", got)
	}
	if got := ask("192.0.2.1:80"); !strings.Contains(got, "403 Forbidden") {
		t.Errorf("what is not allowed: %q", got)
	}
	label := func() string {
		return cluster.Kubectl(t, "", "--namespace", namespace, "get", "pod", box.Info().ID, "--output", `jsonpath={.metadata.labels.toryo\.dev/network}`)
	}
	if got := label(); got != "registries" {
		t.Errorf("the pod's label is %q", got)
	}
	if err := box.SetNetwork(t.Context(), sandbox.NoNetwork); err != nil {
		t.Fatal(err)
	}
	if got := ask(address); strings.Contains(got, "served") {
		t.Errorf("without a network: %q", got)
	}
	if got := label(); got != "none" {
		t.Errorf("the pod's label is %q", got)
	}
	// There is no port for the policy open here, and that is said.
	if err := box.SetNetwork(t.Context(), sandbox.OpenWorld); task.CodeOf(err) != task.BadConfig {
		t.Errorf("a policy without a port: %v", err)
	}
	// The network of this cluster enforces nothing, and that is found out too.
	waitUntil(t, "the network was tried", engine.NetworkIsOpen)
}

// A sandbox can change its own folder of the claim after its snapshot was kept.
// Nobody starts from that.
//
//nolint:paralleltest // the cluster is shared with tests that break it
func TestOnKubernetesTamperedSnapshot(t *testing.T) {
	engine := newEngine(t, config(t, noGate))
	box := start(t, engine, "tamperer")
	const key = "tampered-0123456789"
	made, err := box.Snapshot(t.Context(), key, workdir.Listing{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.RemoveSnapshot(context.WithoutCancel(t.Context()), key); err != nil {
			t.Error(err)
		}
	})
	if made.Kept != "volume claim snapshots" {
		t.Errorf("it is kept as %q", made.Kept)
	}
	if _, err := box.Run(t.Context(), sandbox.Command{Text: "echo more >> /.toryo-shelf/snapshot"}); err != nil {
		t.Fatal(err)
	}
	_, err = engine.Start(t.Context(), sandbox.Spec{Owner: "tampered", Image: image, Workspace: t.TempDir(), Snapshot: key})
	if task.CodeOf(err) != task.Unavailable || !strings.Contains(err.Error(), "not the one that was kept") {
		t.Errorf("start: %v", err)
	}
	nothingLeft(t, engine, "tampered")
}
