package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testkit.StopKubernetes()
	os.Exit(code)
}

// image makes that of the working tree and returns its file.
func image(t *testing.T) (r *release, file string) {
	t.Helper()
	debs := testkit.ImagePackages(t)
	r = byHandRelease(t, target{"linux", here.arch})
	r.image, r.debs, r.level = imageWithPackages, debs, gzip.BestSpeed
	for _, step := range []func(context.Context) error{r.compileAll, r.collectDocuments, r.writeImages, r.writeBills} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return r, filepath.Join(r.making, r.named("image_linux_"+here.arch+".tar"))
}

// engine asks a Docker Engine.
type engine struct {
	t    *testing.T
	http http.Client
}

func dockerEngine(t *testing.T) *engine {
	t.Helper()
	const variable = "TORYO_TEST_DOCKER"
	socket, found := strings.CutPrefix(os.Getenv(variable), "unix://")
	if !found {
		testkit.LeaveOut(t, "a Docker Engine ("+variable+")")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &engine{t: t, http: http.Client{Transport: transport}}
}

func (e *engine) ask(ctx context.Context, method, path string, body io.Reader, kind string) []byte {
	e.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, body)
	if err != nil {
		e.t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	answer, err := e.http.Do(request)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		e.t.Fatalf("%s %s: %s %v\n%s", method, path, answer.Status, err, said)
	}
	return said
}

// run runs a command in a container as the image says, on files that it cannot write, and
// returns what it prints.
func (e *engine) run(image string, entrypoint []string, arguments ...string) string {
	e.t.Helper()
	asked, err := json.Marshal(map[string]any{
		"Image": image, "Entrypoint": entrypoint, "Cmd": arguments, "Tty": true,
		"HostConfig": map[string]any{"ReadonlyRootfs": true, "NetworkMode": "none", "CapDrop": []string{"ALL"}, "SecurityOpt": []string{"no-new-privileges"}},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	var made struct{ ID string }
	if err := json.Unmarshal(e.ask(e.t.Context(), http.MethodPost, "/containers/create", bytes.NewReader(asked), "application/json"), &made); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		e.ask(context.WithoutCancel(e.t.Context()), http.MethodDelete, "/containers/"+made.ID+"?force=true&v=true", nil, "")
	})
	e.ask(e.t.Context(), http.MethodPost, "/containers/"+made.ID+"/start", nil, "")
	var ended struct{ StatusCode int }
	if err := json.Unmarshal(e.ask(e.t.Context(), http.MethodPost, "/containers/"+made.ID+"/wait", nil, ""), &ended); err != nil {
		e.t.Fatal(err)
	}
	said := string(e.ask(e.t.Context(), http.MethodGet, "/containers/"+made.ID+"/logs?stdout=true&stderr=true", nil, ""))
	if ended.StatusCode != 0 {
		e.t.Fatalf("%v %v ended with %d: %s", entrypoint, arguments, ended.StatusCode, said)
	}
	return strings.ReplaceAll(said, "\r\n", "\n")
}

// The image starts as an ordinary user, on files that it cannot write, and has what the
// server and agents call.
func TestOnReleaseImage(t *testing.T) {
	t.Parallel()
	docker := dockerEngine(t)
	r, file := image(t)
	archive, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }() // it was only read
	docker.ask(t.Context(), http.MethodPost, "/images/load?quiet=true", archive, "application/x-tar")
	name := imageName + r.version
	t.Cleanup(func() {
		docker.ask(context.WithoutCancel(t.Context()), http.MethodDelete, "/images/"+name+"?force=true", nil, "")
	})

	var said struct{ Version, Commit, Date, OS, Arch string }
	if text := docker.run(name, []string{"/usr/local/bin/toryo"}, "version", "--json"); json.Unmarshal([]byte(text), &said) != nil || said.Version != r.version ||
		said.Commit != r.commit || said.Date != r.made.Format(time.RFC3339) || said.Arch != here.arch {
		t.Errorf("toryo version --json printed %s", text)
	}
	inside := docker.run(name, []string{"/bin/sh", "-c"}, `id -u; git --version; bwrap --version; test -s /etc/ssl/certs/ca-certificates.crt && echo certificates
test ! -w /usr/bin && touch /data/file && echo data; cd /data && git init --quiet x && echo repository; awk 'BEGIN { print "awk" }'; grep '^Package: git$' /var/lib/dpkg/status.d/git`)
	for _, want := range []string{fmt.Sprint(imageUser), "git version", "bubblewrap ", "certificates", "data", "repository", "awk", "Package: git"} {
		if !strings.Contains(inside, want) {
			t.Errorf("there is no %q in\n%s", want, inside)
		}
	}

	var parts bill
	if err := json.Unmarshal(fileOf(t, r, r.named("image_linux_"+here.arch+".cdx.json")), &parts); err != nil {
		t.Fatal(err)
	}
	found := map[string]component{}
	for _, one := range parts.Components {
		found[one.Name] = one
	}
	if git := found["git"]; !strings.HasPrefix(git.PackageURL, "pkg:deb/debian/git@") || !strings.HasSuffix(git.PackageURL, "&distro=debian-13") || len(git.Hashes) != 1 {
		t.Errorf("git is in the bill as %+v", git)
	}
	if cobra := found["github.com/spf13/cobra"]; len(cobra.Licenses) != 1 || cobra.Licenses[0].License.ID != "Apache-2.0" {
		t.Errorf("a module is in the bill as %+v", cobra)
	}
}

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

// chartValues are those for a cluster of one machine: nothing is kept, and the image is there.
const chartValues = `
image: {tag: "%s", pullPolicy: Never}
server: {persistence: {enabled: false}, resources: {}}
agents: {persistence: {enabled: false}, resources: {}, config: {sandbox: {memory: 1GiB}}}
sandboxes: {kind: kubernetes, namespace: chart-sandboxes, egress: {enabled: true, replicas: 1, hosts: [packages.example.com]}}
ingress: {enabled: true, className: none, tlsSecret: certificate}
networkPolicies: {from: [{kubernetes.io/metadata.name: ingress}]}
`

// The chart is what a cluster takes, and server and proxy of it start, with the image of a
// release.
func TestOnReleaseChart(t *testing.T) {
	t.Parallel()
	cluster := testkit.Kubernetes(t)
	r, file := image(t)
	cluster.LoadImage(t, file)

	manifests := render(t, r, "toryo", fmt.Sprintf(chartValues, r.version))
	takesConfigurations(t, r, manifests, 3) // of server, agent and proxy
	if !strings.Contains(manifests, "public_url: https://toryo.example.com\n") {
		t.Error("the server does not know the address of the ingress")
	}
	cluster.Kubectl(t, "", "create", "namespace", "chart")
	t.Cleanup(func() { cluster.Kubectl(t, "", "delete", "namespace", "chart", "chart-sandboxes", "--wait=false") })
	cluster.Kubectl(t, manifests, "apply", "--validate=strict", "--filename", "-")
	cluster.Kubectl(t, "", "--namespace", "chart", "rollout", "status", "statefulset/toryo", "--timeout=180s")
	cluster.Kubectl(t, "", "--namespace", "chart-sandboxes", "rollout", "status", "deployment/toryo-egress", "--timeout=180s")
	if said := cluster.Kubectl(t, "", "--namespace", "chart", "exec", "toryo-0", "--", "toryo", "version", "--json"); !strings.Contains(said, r.version) {
		t.Errorf("toryo version --json printed %s", said)
	}
	if token := cluster.Kubectl(t, "", "--namespace", "chart", "exec", "toryo-0", "--", "toryo", "agent", "token", "create", "--config", "/etc/toryo/toryo.yaml"); token == "" {
		t.Error("the server makes no token for an agent")
	}
	if said := cluster.Kubectl(t, "", "--namespace", "chart", "get", "ingress,networkpolicy,statefulset", "--output", "name"); strings.Count(said, "\n") != 4 {
		t.Errorf("there are %s", said)
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
