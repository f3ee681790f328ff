package kubernetes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	const contexts = "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
	for name, test := range map[string]struct {
		text string
		code task.Code
	}{
		"token":                {contexts + "clusters: [{name: c, cluster: {server: 'https://x:1'}}]\nusers: [{name: u, user: {token: t}}]", ""},
		"token in a file":      {contexts + "clusters: [{name: c, cluster: {server: 'https://x:1'}}]\nusers: [{name: u, user: {tokenFile: t}}]", ""},
		"nobody":               {contexts + "clusters: [{name: c, cluster: {server: 'https://x:1'}}]\nusers: [{name: u, user: {}}]", ""},
		"no YAML":              {"a: [", task.BadConfig},
		"no context":           {"current-context: b\n" + strings.TrimPrefix(contexts, "current-context: a\n"), task.BadConfig},
		"no server":            {contexts + "clusters: [{name: c, cluster: {}}]\nusers: [{name: u, user: {token: t}}]", task.BadConfig},
		"bad server":           {contexts + "clusters: [{name: c, cluster: {server: 'ftp://x'}}]\nusers: [{name: u, user: {token: t}}]", task.BadConfig},
		"bad authority":        {contexts + "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority-data: eHg=}}]\nusers: [{name: u, user: {token: t}}]", task.BadConfig},
		"no base64":            {contexts + "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority-data: '!'}}]\nusers: [{name: u, user: {token: t}}]", task.BadConfig},
		"missing authority":    {contexts + "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority: none}}]\nusers: [{name: u, user: {token: t}}]", task.BadConfig},
		"bad certificate":      {contexts + "clusters: [{name: c, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: {client-certificate-data: eHg=, client-key-data: eHg=}}]", task.BadConfig},
		"program":              {contexts + "clusters: [{name: c, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: {exec: {command: x}}}]", task.Unsupported},
		"password":             {contexts + "clusters: [{name: c, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: {username: x, password: y}}]", task.Unsupported},
		"proxy of the cluster": {contexts + "clusters: [{name: c, cluster: {server: 'https://x', proxy-url: 'http://y'}}]\nusers: [{name: u, user: {token: t}}]", task.Unsupported},
	} {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := kubernetes.New(kubernetes.Config{Kubeconfig: file, NewGate: noGate, Log: discard})
		if task.CodeOf(err) != test.code {
			t.Errorf("%s: %v, want %q", name, err, test.code)
		}
	}
	if _, err := kubernetes.New(kubernetes.Config{Kubeconfig: "x", Namespace: "Bad Name", NewGate: noGate, Log: discard}); task.CodeOf(err) != task.BadConfig {
		t.Errorf("a bad namespace: %v", err)
	}
}
