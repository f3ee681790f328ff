package program

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// rules is a file with rules of Prometheus.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

// TestAlerts: what the alerts in deploy/ look at is what a real server measures, and
// docs/operations.md says of each what to do.
func TestAlerts(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "sqlite")
	here.environ = append(here.environ, "TORYO_GITEA_URL=http://127.0.0.1:1", "TORYO_GITEA_OWNER=team", "TORYO_GITEA_BOT_NAME=bot", "TORYO_GITEA_TOKEN=a token of Gitea")
	server := here.start(t, "serve")
	defer server.stop(t)
	measured := read(t, server.url+"/metrics") + read(t, server.url+"/metrics") // the second has the first request
	if want := `toryo_tasks{state="queued"} 0`; !strings.Contains(measured, want) {
		t.Errorf("%s is not measured", want)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "prometheus", "toryo.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	operations, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all rules
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, group := range all.Groups {
		for _, rule := range group.Rules {
			alerts++
			for _, name := range regexp.MustCompile(`toryo_[a-z_]+(\{[a-z]+="[a-z_]+"\})?`).FindAllString(rule.Expr, -1) {
				if !strings.Contains(measured, "\n"+strings.TrimSuffix(name, "}")) {
					t.Errorf("%s looks at %s, which is not measured", rule.Alert, name)
				}
			}
			if rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s says nothing", rule.Alert)
			}
			if !strings.Contains(string(operations), "`"+rule.Alert+"`") {
				t.Errorf("docs/operations.md does not say what to do about %s", rule.Alert)
			}
		}
	}
	if alerts == 0 {
		t.Error("there are no alerts")
	}
}

func read(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := new(http.Client).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, answer.Status, err)
	}
	return string(text)
}
