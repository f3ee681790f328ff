package kubernetes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
	"github.com/toryo-dev/toryo/internal/sandbox/sandboxtest"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
	sandboxtest.Probe()
	guest.Main(nil)
	switch {
	case len(os.Args) > 1 && os.Args[1] == "egress":
		serveEgress(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "check":
		os.Exit(checkFromInside(os.Stdout))
	}
	if err := os.Setenv(sandboxtest.SecretVariable, "not for the inside"); err != nil {
		panic(err)
	}
	code := m.Run()
	testkit.StopKubernetes()
	os.Exit(code)
}

const namespace = kubernetes.DefaultNamespace

// preparedDir passes what was prepared on to the test binary that is to be killed.
const preparedDir = "TORYO_TEST_KUBERNETES_PREPARED"

var prepared struct {
	sync.Once
	dir string
}

// account is a kubeconfig with no more rights than those in deploy/kubernetes. The
// cluster is prepared as those who install Toryo do it.
func account(t testing.TB) string {
	t.Helper()
	return filepath.Join(prepare(t), "account")
}

func prepare(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(preparedDir); dir != "" {
		return dir
	}
	cluster := testkit.Kubernetes(t)
	prepared.Do(func() {
		cluster.Kubectl(t, "", "apply", "--filename", filepath.Join("..", "..", "..", "deploy", "kubernetes", "sandboxes.yaml"))
		cluster.Kubectl(t, claims(cluster.Dir), "apply", "--filename", "-")
		text, err := os.ReadFile(cluster.AccountKubeconfig(t, "toryo", "toryo-agent"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cluster.Dir, "account"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(cluster.Dir, "guest"), "../guest/program")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if said, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the guest: %v\n%s", err, said)
		}
		// For the process that is started later, and not for this test alone.
		if err := os.Setenv(preparedDir, cluster.Dir); err != nil { //nolint:usetesting // see above
			t.Fatal(err)
		}
		prepared.dir = cluster.Dir
	})
	return prepared.dir
}

// claims is a volume on the machine of the cluster, and the claim that has it.
func claims(dir string) string {
	return `
apiVersion: v1
kind: PersistentVolume
metadata: {name: snapshots}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  hostPath: {path: ` + dir + `/claims}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: snapshots, namespace: ` + namespace + `}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: snapshots
  resources: {requests: {storage: 10Gi}}
`
}

const image = "localhost/base:1"

// patience is one that tests can wait for, and that a busy machine can keep.
const patience = 8 * time.Second

func config(t testing.TB, gate sandbox.NewGate) kubernetes.Config {
	t.Helper()
	return kubernetes.Config{Kubeconfig: account(t), Guest: filepath.Join(prepare(t), "guest"), PullPolicy: "Never", Claim: "snapshots",
		Patience: patience, NewGate: gate, Log: discard}
}

func newEngine(t testing.TB, settings kubernetes.Config) *kubernetes.Engine {
	t.Helper()
	engine, err := kubernetes.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

var harness = sandboxtest.Harness{Image: image, New: func(t *testing.T, _ string, gate sandbox.NewGate) sandbox.Engine {
	t.Helper()
	return newEngine(t, config(t, gate))
}}

//nolint:paralleltest // it measures limits, and would disturb others
func TestOnKubernetesSuite(t *testing.T) {
	account(t)
	sandboxtest.Run(t, harness)
}

//nolint:paralleltest // it measures limits, and would disturb others
func TestChild(t *testing.T) {
	if os.Getenv(warmChild) != "" {
		sandboxtest.Child(t, warmHarness)
		return
	}
	sandboxtest.Child(t, harness)
}
