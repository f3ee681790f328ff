package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	compose "github.com/compose-spec/compose-go/v2/types"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigs "sigs.k8s.io/yaml"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func deployed(name string) string { return filepath.Join("..", "..", "deploy", name) }

// takesCommand checks that the program takes the words: the command is there, and
// so is every flag.
func takesCommand(t *testing.T, words []string) {
	t.Helper()
	p := site.Program{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Now: time.Now}
	command, rest, err := rootCommand(p).Find(words)
	if err != nil {
		t.Errorf("toryo %v: %v", words, err)
		return
	}
	if err := command.ParseFlags(rest); err != nil {
		t.Errorf("toryo %v: %v", words, err)
	}
	if !command.Runnable() || command.Flags().NArg() > 0 {
		t.Errorf("toryo %v is no whole command", words)
	}
}

// modelKeys are the files in which the agents find the key of their model.
var modelKeys = struct{ systemd, compose, kubernetes string }{
	systemd:    "/run/credentials/toryo-agent.service/model-key",
	compose:    "/run/secrets/model-key",
	kubernetes: "/secrets/model/key",
}

// canWork checks that an agent with a configuration lacks nothing of its model: without, it ends.
func canWork(t *testing.T, text, key string) {
	t.Helper()
	c := takesConfiguration(t, text)
	if lacks := c.LLM.Lacking(); lacks != "" || c.LLM.BaseURL == "" && c.LLM.APIKey == "" {
		t.Errorf("the agent has no model (%s) in\n%s", lacks, text)
	}
	if !strings.Contains(text, "api_key_file: "+key+"\n") {
		t.Errorf("the key of the model is not in %s in\n%s", key, text)
	}
}

// takesConfiguration checks a configuration with the real loader. Secrets are made
// up where the file says that they are.
func takesConfiguration(t *testing.T, text string) config.Config {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("postgres://toryo:x@database/toryo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{"/run/secrets/database-url", "/secrets/database/url", modelKeys.systemd, modelKeys.compose, modelKeys.kubernetes} {
		text = strings.ReplaceAll(text, named, secret)
	}
	file := filepath.Join(dir, "toryo.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, report := config.Load(file, nil, nil)
	if err := report.Err(); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	return loaded
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(deployed("Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	user := ""
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(string(text), "\\\n", " ")))
	for lines.Scan() {
		instruction, rest, _ := strings.Cut(lines.Text(), " ")
		switch instruction {
		case "USER":
			user = rest
		case "CMD":
			if err := sigs.Unmarshal([]byte(rest), &words); err != nil {
				t.Errorf("CMD: %v", err)
			}
		case "RUN":
			if strings.Contains(rest, "go build") && !strings.Contains(rest, "CGO_ENABLED=0") {
				t.Errorf("%s does not build what make build does", rest)
			}
		case "", "#", "FROM", "WORKDIR", "COPY", "ARG", "ENV", "VOLUME", "EXPOSE", "ENTRYPOINT":
		default:
			t.Errorf("%q is no instruction", lines.Text())
		}
	}
	if user == "" || strings.HasPrefix(user, "0") || strings.HasPrefix(user, "root") {
		t.Errorf("it runs as %q", user)
	}
	takesCommand(t, words)
}

func TestCompose(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{deployed("compose/compose.yaml")}, cli.WithInterpolation(false))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for name, service := range project.Services {
		if service.Image != "toryo" {
			kinds[service.Image]++
			continue
		}
		kinds[service.Command[0]]++
		takesCommand(t, service.Command)
		mounted(t, name, service)
		given := slices.ContainsFunc(service.Secrets, func(s compose.ServiceSecretConfig) bool {
			return "/run/secrets/"+s.Source == modelKeys.compose && project.Secrets[s.Source].File != ""
		})
		if service.Command[0] == "agent" && !given {
			t.Errorf("%s is not given the key of the model", name)
		}
	}
	if kinds["serve"] != 1 || kinds["agent"] != 2 || kinds["postgres:17"] != 1 {
		t.Errorf("there are %v", kinds)
	}
	if c := takesConfiguration(t, contentOf(t, "compose/toryo.yaml")); c.Database.Driver != "postgres" {
		t.Errorf("the server uses %s", c.Database.Driver)
	}
	canWork(t, contentOf(t, "compose/agent.yaml"), modelKeys.compose)
}

// mounted checks that the configuration that a command names is there.
func mounted(t *testing.T, name string, service compose.ServiceConfig) {
	t.Helper()
	at := slices.Index(service.Command, "--config")
	found := slices.ContainsFunc(service.Volumes, func(v compose.ServiceVolumeConfig) bool {
		_, err := os.Stat(v.Source)
		return v.Target == service.Command[at+1] && err == nil
	})
	if !found {
		t.Errorf("%s has no %s", name, service.Command[at+1])
	}
}

func contentOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(deployed(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSystemd(t *testing.T) {
	t.Parallel()
	canWork(t, contentOf(t, "systemd/agent.yaml"), modelKeys.systemd)
	if unit := contentOf(t, "systemd/toryo-agent.service"); !strings.Contains(unit, "\nLoadCredential="+filepath.Base(modelKeys.systemd)+":") {
		t.Error("the agent is not given the key of the model")
	}
	dir := t.TempDir()
	var units []string
	for _, name := range []string{"toryo.service", "toryo-agent.service", "toryo-up.service"} {
		text := contentOf(t, "systemd/"+name)
		_, line, _ := strings.Cut(text, "ExecStart=/usr/local/bin/toryo ")
		line, _, _ = strings.Cut(line, "\n")
		takesCommand(t, strings.Fields(line))
		// The program is not installed here.
		unit := filepath.Join(dir, name)
		if err := os.WriteFile(unit, []byte(strings.ReplaceAll(text, "/usr/local/bin/toryo", "/bin/true")), 0o600); err != nil {
			t.Fatal(err)
		}
		units = append(units, unit)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		testkit.LeaveOut(t, "systemd-analyze")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said, err := exec.CommandContext(ctx, "systemd-analyze", append([]string{"verify", "--man=no", "--recursive-errors=no"}, units...)...).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(said)) > 0 {
		t.Errorf("%v: %s", err, said)
	}
}

func TestKubernetes(t *testing.T) {
	t.Parallel()
	pods := 0
	for _, file := range []string{"kubernetes/server.yaml", "kubernetes/agents.yaml", "kubernetes/egress.yaml"} {
		documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(contentOf(t, file))))
		for {
			text, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if checkManifest(t, text) {
				pods++
			}
		}
	}
	if pods != 3 {
		t.Errorf("there are %d sets of pods", pods)
	}
}

// checkManifest reads a manifest as the types of Kubernetes say, with no unknown
// field, and reports whether it is about pods.
func checkManifest(t *testing.T, text []byte) bool {
	t.Helper()
	strict := func(into any) {
		t.Helper()
		if err := sigs.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	var kind struct{ Kind string }
	if err := sigs.Unmarshal(text, &kind); err != nil {
		t.Fatal(err)
	}
	switch kind.Kind {
	case "ConfigMap":
		var found core.ConfigMap
		strict(&found)
		for name, file := range found.Data {
			takesConfiguration(t, file)
			if name == "agent.yaml" {
				canWork(t, file, modelKeys.kubernetes)
			}
		}
	case "Service":
		var found core.Service
		strict(&found)
		// Agents renew their leases also at a server that is not ready.
		if found.Name == "toryo" && !found.Spec.PublishNotReadyAddresses {
			t.Error("a server with a full disk cannot be reached")
		}
	case "StatefulSet":
		var found apps.StatefulSet
		strict(&found)
		checkPods(t, found.Name, found.Spec.Selector.MatchLabels["app"], found.Spec.Template, found.Spec.VolumeClaimTemplates)
		return true
	case "Deployment":
		var found apps.Deployment
		strict(&found)
		checkPods(t, found.Name, found.Spec.Selector.MatchLabels["app"], found.Spec.Template, nil)
		return true
	default:
		t.Errorf("there is a %q", kind.Kind)
	}
	return false
}

func checkPods(t *testing.T, name, app string, pod core.PodTemplateSpec, claims []core.PersistentVolumeClaim) {
	t.Helper()
	if pod.Labels["app"] == "" || pod.Labels["app"] != app {
		t.Errorf("%s selects other pods than it makes", name)
	}
	if secure := pod.Spec.SecurityContext; secure == nil || secure.RunAsNonRoot == nil || !*secure.RunAsNonRoot {
		t.Errorf("%s may run as root", name)
	}
	volumes := map[string]bool{}
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = true
	}
	for _, claim := range claims {
		volumes[claim.Name] = true
	}
	for _, container := range pod.Spec.Containers {
		takesCommand(t, container.Args)
		given := slices.ContainsFunc(container.VolumeMounts, func(m core.VolumeMount) bool {
			return m.MountPath == filepath.Dir(modelKeys.kubernetes)
		})
		if container.Args[0] == "agent" && !given {
			t.Errorf("%s is not given the key of the model", name)
		}
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				t.Errorf("%s has no volume %s", name, mount.Name)
			}
		}
	}
}
