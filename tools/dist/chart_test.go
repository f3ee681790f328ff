package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/toryo-dev/toryo/internal/testkit"
)

// The values that the chart has are what its schema allows, and mistakes are not.
func TestValuesOfTheChart(t *testing.T) {
	t.Parallel()
	chart := filepath.Join(repository(t), filepath.FromSlash(chartFolder))
	text, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("values.schema.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	usual, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		text  string
		wrong bool
	}{
		"those of the chart":       {string(usual), false},
		"an unknown one":           {"agent: {replicas: 2}", true},
		"a wrong kind":             {"sandboxes: {kind: docker}", true},
		"pods that are ready":      {"sandboxes: {warm: 2}", false},
		"fewer pods than none":     {"sandboxes: {warm: -1}", true},
		"a secret's text":          {`server: {secrets: ["ghp_1234"]}`, true},
		"a section of the chart's": {"server: {config: {data_dir: /x}}", true},
		"a section":                {"server: {config: {github: {token_file: /secrets/github/token}}, secrets: [github]}", false},
	} {
		var values any
		if err := yaml.Unmarshal([]byte(one.text), &values); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(values); (err != nil) != one.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// chartValues are those for a cluster of one machine: nothing is kept, and the image is there. The
// cluster has no names and no addresses for services: an agent is told where server and cluster are.
const chartValues = `
image: {tag: "%s", pullPolicy: Never, pullSecrets: [registry]}
server: {persistence: {enabled: false}, resources: {}}
agents:
  replicas: %d
  persistence: {enabled: false}
  resources: {}
  secrets: [model, cluster]
  config:
    agent: {server: "http://%s:8750"}
    llm: {provider: anthropic, model: some-model, api_key_file: /secrets/model/key}
    sandbox: {memory: 1GiB, kubernetes: {kubeconfig: /secrets/cluster/kubeconfig}}
sandboxes: {kind: kubernetes, namespace: chart-sandboxes, warm: 2, egress: {enabled: true, replicas: 1, hosts: [%s]}}
ingress: {enabled: true, className: none, tlsSecret: certificate}
networkPolicies: {from: [{kubernetes.io/metadata.name: ingress}]}
`

// The chart is what a cluster takes, and with the image of a release server, proxy and agent of it
// start. The agent enrols, with the rights that the chart gives it.
func TestOnReleaseChart(t *testing.T) {
	t.Parallel()
	testkit.Release(t)
	cluster := testkit.Kubernetes(t)
	r, file := image(t)
	cluster.LoadImage(t, file)
	within := func(arguments ...string) string {
		t.Helper()
		return cluster.Kubectl(t, "", append([]string{"--namespace", "chart"}, arguments...)...)
	}

	manifests := render(t, r, "toryo", fmt.Sprintf(chartValues, r.version, 0, "127.0.0.1", "packages.example.com"))
	takesConfigurations(t, r, manifests, 3) // of server, agent and proxy
	if !strings.Contains(manifests, "public_url: https://toryo.example.com\n") || !strings.Contains(manifests, "pull_secrets:\n        - registry\n") {
		t.Errorf("the server does not know the address of the ingress, or agents not how images are pulled:\n%s", manifests)
	}
	if !strings.Contains(manifests, "warm: 2\n") {
		t.Errorf("agents are not told how many pods to keep ready:\n%s", manifests)
	}
	cluster.Kubectl(t, "", "create", "namespace", "chart")
	t.Cleanup(func() { cluster.Kubectl(t, "", "delete", "namespace", "chart", "chart-sandboxes", "--wait=false") })
	cluster.Kubectl(t, manifests, "apply", "--validate=strict", "--filename", "-")
	within("rollout", "status", "statefulset/toryo", "--timeout=180s")
	cluster.Kubectl(t, "", "--namespace", "chart-sandboxes", "rollout", "status", "deployment/toryo-egress", "--timeout=180s")
	if said := within("exec", "toryo-0", "--", "toryo", "version", "--json"); !strings.Contains(said, r.version) {
		t.Errorf("toryo version --json printed %s", said)
	}
	if said := within("get", "ingress,networkpolicy,statefulset", "--output", "name"); len(strings.Fields(said)) != 5 {
		t.Errorf("there are %s", said)
	}

	token := within("exec", "toryo-0", "--", "toryo", "agent", "token", "create", "--config", "/etc/toryo/toryo.yaml")
	config, err := os.ReadFile(cluster.AccountKubeconfig(t, "chart", "toryo-agent"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]map[string]string{
		"toryo-enrol": {"toryo-agent-0": token}, "model": {"key": "not-a-key"}, "cluster": {"kubeconfig": string(config)},
	} {
		text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": name, "namespace": "chart"}, "stringData": content})
		if err != nil {
			t.Fatal(err)
		}
		cluster.Kubectl(t, string(text), "apply", "--filename", "-")
	}
	address := within("get", "pod", "toryo-0", "--output", "jsonpath={.status.podIP}")
	proxy := func() string {
		return cluster.Kubectl(t, "", "--namespace", "chart-sandboxes", "get", "deployment/toryo-egress", "--output", "jsonpath={.metadata.generation}")
	}
	before := proxy()
	again := render(t, r, "toryo", fmt.Sprintf(chartValues, r.version, 1, address, ""))
	cluster.Kubectl(t, again, "apply", "--validate=strict", "--filename", "-")
	if after := proxy(); after == before {
		t.Error("a host was taken from the proxy, which is not started again")
	}
	within("rollout", "status", "statefulset/toryo-agent", "--timeout=180s")
	within("exec", "toryo-agent-0", "--", "timeout", "120", "sh", "-c", "until test -s /data/agent/token; do sleep 0.2; done")
	if said := within("exec", "toryo-0", "--", "toryo", "agent", "list", "--config", "/etc/toryo/toryo.yaml"); !strings.Contains(said, "toryo-agent-0") {
		t.Errorf("the agents are %s", said)
	}

	// What the chart has by itself, but for one value.
	usual := render(t, r, "other", "sandboxes: {kind: bubblewrap}")
	takesConfigurations(t, r, usual, 2)
	cluster.Kubectl(t, usual, "apply", "--dry-run=server", "--validate=strict", "--filename", "-")
}

// render is the manifests of the chart with some values, for the namespace chart.
func render(t *testing.T, r *release, name, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	tool, err := output(t.Context(), r.root, nil, filepath.Join(r.root, "scripts", "tool"), "github.com/toryo-dev/toryo/tools/helm", "helm")
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := output(t.Context(), r.root, nil, strings.TrimSpace(string(tool)), name, "chart", chartFolder, file)
	if err != nil {
		t.Fatal(err)
	}
	return string(manifests)
}

// takesConfigurations holds the configurations in manifests against the program.
func takesConfigurations(t *testing.T, r *release, manifests string, want int) {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("not-a-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := 0
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var one struct {
			Kind string
			Data map[string]string
		}
		if err := yaml.Unmarshal([]byte(document), &one); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if one.Kind != "ConfigMap" {
			continue
		}
		for name, text := range one.Data {
			found++
			file := filepath.Join(t.TempDir(), name)
			text = strings.ReplaceAll(text, "/secrets/model/key", secret) // that one is in pods
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := output(t.Context(), r.work, nil, r.programs[r.targets[0]].path, "config", "check", file); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		}
	}
	if found != want {
		t.Errorf("there are %d configurations, want %d", found, want)
	}
}
