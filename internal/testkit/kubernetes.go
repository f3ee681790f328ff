package testkit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// KubernetesCluster is a real Kubernetes of one machine.
type KubernetesCluster struct {
	Dir     string // its files, with the kubeconfig of an administrator
	Program string // kubectl and the rest
	Address string // at which pods reach this machine
	Image   string // for sandboxes, with bash and small programs

	stop func()
}

// kubernetesDir names the folder of a cluster that runs already.
const kubernetesDir = "TORYO_TEST_KUBERNETES"

var kubernetes struct {
	once    sync.Once
	cluster *KubernetesCluster
	missing string
}

// Kubernetes is the cluster of this process, which the first test starts and
// [StopKubernetes] stops, in TestMain. The name of a test that calls it begins with
// TestOnKubernetes.
func Kubernetes(t testing.TB) *KubernetesCluster {
	t.Helper()
	wantPrefix(t, onKubernetes, onRelease)
	kubernetes.once.Do(func() {
		cluster, err := startKubernetes()
		if err != nil {
			kubernetes.missing = err.Error()
			return
		}
		kubernetes.cluster = cluster
	})
	if kubernetes.cluster == nil {
		LeaveOut(t, "a Kubernetes cluster ("+kubernetes.missing+")")
	}
	return kubernetes.cluster
}

// StopKubernetes stops the cluster of this process, if there is one.
func StopKubernetes() {
	if kubernetes.cluster != nil && kubernetes.cluster.stop != nil {
		kubernetes.cluster.stop()
	}
}

func startKubernetes() (*KubernetesCluster, error) {
	if dir := os.Getenv(kubernetesDir); dir != "" {
		return &KubernetesCluster{Dir: dir, Program: os.Getenv(kubernetesDir + "_PROGRAM"), Address: os.Getenv(kubernetesDir + "_ADDRESS"), Image: kubernetesImage}, nil
	}
	if os.Getuid() != 0 {
		return nil, fmt.Errorf("only root can start one")
	}
	root, err := repository()
	if err != nil {
		return nil, err
	}
	script := filepath.Join(root, "scripts", "kubernetes")
	if err := exec.Command(script, "find").Run(); err != nil { //nolint:noctx // ends by itself
		return nil, fmt.Errorf("it was not built yet: %w", err)
	}
	dir, err := os.MkdirTemp("", "toryo-kubernetes-")
	if err != nil {
		return nil, err
	}
	return upKubernetes(script, dir)
}

const (
	kubernetesImage = "localhost/base:1"
	kubernetesStart = 2 * time.Minute
)

// upKubernetes runs the script until its standard input ends: with the cluster, or
// with this process.
func upKubernetes(script, dir string) (*KubernetesCluster, error) {
	command := exec.Command(script, "up", dir) //nolint:noctx // it lives as long as the tests
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	complaint := &tail{}
	command.Stderr = complaint
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := func() {
		_ = input.Close()
		_ = command.Wait() // what it says is on standard error
		_ = os.RemoveAll(dir)
	}
	ctx, cancel := context.WithTimeout(context.Background(), kubernetesStart)
	defer cancel()
	context.AfterFunc(ctx, func() {
		if ctx.Err() == context.DeadlineExceeded {
			_ = command.Process.Kill()
		}
	})
	cluster := &KubernetesCluster{Dir: dir, Image: kubernetesImage, stop: stop}
	if !cluster.read(output) {
		stop()
		return nil, fmt.Errorf("it did not start: %s", complaint)
	}
	return cluster, nil
}

// read reads what the script prints, up to an empty line.
func (c *KubernetesCluster) read(output io.Reader) bool {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		switch name {
		case kubernetesDir + "_PROGRAM":
			c.Program = value
		case kubernetesDir + "_ADDRESS":
			c.Address = value
		case "":
			return true
		}
	}
	return false
}

// Kubeconfig is that of an administrator.
func (c *KubernetesCluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// Kubectl runs kubectl as an administrator and returns what it prints.
func (c *KubernetesCluster) Kubectl(t testing.TB, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command(c.Program, append([]string{"kubectl", "--kubeconfig", c.Kubeconfig()}, arguments...)...) //nolint:noctx // ends by itself
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

// AccountKubeconfig writes a kubeconfig of a service account.
func (c *KubernetesCluster) AccountKubeconfig(t testing.TB, namespace, account string) string {
	t.Helper()
	token := c.Kubectl(t, "", "--namespace", namespace, "create", "token", account)
	server := c.Kubectl(t, "", "config", "view", "--output", "jsonpath={.clusters[0].cluster.server}")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("current-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nclusters: [{name: x, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: x, user: {token: %q}}]\n", server, token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Load makes an image of a folder known to the cluster.
func (c *KubernetesCluster) Load(t testing.TB, name, folder string, command ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	step := append([]string{"image", name, folder, file}, command...)
	if output, err := exec.Command(c.Program, step...).CombinedOutput(); err != nil { //nolint:noctx // ends by itself
		t.Fatalf("%v: %v\n%s", step, err, output)
	}
	c.LoadImage(t, file)
}

// LoadImage makes an image in an archive known to the cluster.
func (c *KubernetesCluster) LoadImage(t testing.TB, archive string) {
	t.Helper()
	output, err := exec.Command("ctr", "--address", filepath.Join(c.Dir, "containerd.sock"), "--namespace", "k8s.io", "images", "import", archive).CombinedOutput() //nolint:noctx // ends by itself
	if err != nil {
		t.Fatalf("import %s: %v\n%s", archive, err, output)
	}
}

// Processes are the numbers of the processes of a part of the cluster, such as
// kube-apiserver, as this machine sees them.
func (c *KubernetesCluster) Processes(t testing.TB, part string) []int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, line := range lines {
		content, err := os.ReadFile(line)
		words := strings.Split(string(content), "\x00")
		if err != nil || len(words) < 2 || words[0] != c.Program || words[1] != part || !strings.Contains(string(content), c.Dir) {
			continue
		}
		var number int
		if _, err := fmt.Sscanf(line, "/proc/%d/", &number); err == nil {
			found = append(found, number)
		}
	}
	return found
}

// repository is the folder of this module, above that of the test.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "kubernetes")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("the tests do not run in the repository")
		}
		dir = filepath.Dir(dir)
	}
}
