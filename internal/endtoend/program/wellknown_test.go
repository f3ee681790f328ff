package program

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
)

// arrival is a request as a server got it.
type arrival struct {
	host   string
	path   string
	header http.Header
}

// recorder refuses every request and remembers it.
type recorder struct {
	mu   sync.Mutex
	seen []arrival
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, arrival{request.Host, request.URL.Path, request.Header})
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, `{"message": "no", "error": {"message": "no", "type": "authentication_error"}}`)
}

func (r *recorder) arrivals() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// vendorHosts are the servers that the vendors' keys are for.
var vendorHosts = []string{"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "api.github.com", "gitlab.com"}

// vendors stands in for the servers of the vendors: a proxy on loopback that leads
// every connection to one server with a certificate for their names. The variables
// make a program use it.
func vendors(t *testing.T) (*recorder, []string) {
	t.Helper()
	certificateFile, keyFile := certificateFor(t, vendorHosts)
	pair, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	seen := new(recorder)
	site := httptest.NewUnstartedServer(seen)
	site.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	site.StartTLS()
	t.Cleanup(site.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		there, err := new(net.Dialer).DialContext(t.Context(), "tcp", site.Listener.Addr().String())
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer func() { _ = there.Close() }()
		w.WriteHeader(http.StatusOK)
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = here.Close() }()
		go func() {
			_, _ = io.Copy(there, buffered)
			_ = there.Close()
		}()
		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(proxy.Close)
	return seen, []string{"HTTPS_PROXY=" + proxy.URL, "https_proxy=" + proxy.URL, "NO_PROXY=", "no_proxy=", "SSL_CERT_FILE=" + certificateFile, "TORYO_LLM_RETRIES=0"}
}

// everyKey sets each of the variables that Toryo may take a credential from.
func everyKey() (environ []string) {
	for _, name := range config.WellKnownVariables() {
		environ = append(environ, name+"="+valueOf(name))
	}
	return environ
}

func valueOf(name string) string { return "value-of-" + strings.ToLower(name) }

// carried lists the credentials that a request has in it, by their variables.
func carried(a arrival) (names []string) {
	var all strings.Builder
	_ = a.header.Write(&all)
	all.WriteString(a.path)
	for _, name := range config.WellKnownVariables() {
		if strings.Contains(all.String(), valueOf(name)) {
			names = append(names, name)
		}
	}
	return names
}

// run runs toryo with a configuration and more variables, and returns what it said.
// That it fails is expected: nobody lets it in.
func (p place) run(t *testing.T, configuration string, environ []string, args ...string) string {
	t.Helper()
	p.environ = slices.Concat(p.environ, environ)
	command := p.command(t, args...)
	command.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(command.Dir, "toryo.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	said, _ := command.CombinedOutput()
	for _, name := range config.WellKnownVariables() {
		if strings.Contains(string(said), valueOf(name)) {
			t.Errorf("toryo %s prints the value of %s: %s", args, name, said)
		}
	}
	return string(said)
}

// A key that people have set for the vendor's own programs reaches the vendor, in
// the place where it belongs, and no other key goes with it.
func TestWellKnownKeysReachTheirVendor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		configuration, host, variable, header string
		unset                                 string // a variable that is set to nothing
	}{
		{"llm: {provider: anthropic, model: m}", "api.anthropic.com", "ANTHROPIC_API_KEY", "X-Api-Key", ""},
		{"llm: {provider: openai, model: m}", "api.openai.com", "OPENAI_API_KEY", "Authorization", ""},
		{"llm: {provider: openai, model: m, base_url: 'https://api.openai.com/v1'}", "api.openai.com", "OPENAI_API_KEY", "Authorization", ""},
		{"llm: {provider: gemini, model: m}", "generativelanguage.googleapis.com", "GOOGLE_API_KEY", "X-Goog-Api-Key", ""},
		{"llm: {provider: gemini, model: m}", "generativelanguage.googleapis.com", "GEMINI_API_KEY", "X-Goog-Api-Key", "GOOGLE_API_KEY"},
		{"github: {owner: team, bot_name: bot}", "api.github.com", "GH_TOKEN", "Authorization", ""},
		{"github: {owner: team, bot_name: bot}", "api.github.com", "GITHUB_TOKEN", "Authorization", "GH_TOKEN"},
		{"gitlab: {projects: [team/app], bot_name: bot}", "gitlab.com", "GITLAB_TOKEN", "Private-Token", ""},
	} {
		t.Run(c.variable+" "+c.configuration, func(t *testing.T) {
			t.Parallel()
			seen, environ := vendors(t)
			environ = slices.Concat(environ, everyKey())
			if c.unset != "" {
				environ = append(environ, c.unset+"=")
			}
			said := newPlace(t, "sqlite").run(t, c.configuration, environ, "doctor", "--online")
			arrived := seen.arrivals()
			if len(arrived) == 0 {
				t.Fatalf("nothing arrived: %s", said)
			}
			for _, a := range arrived {
				if a.host != c.host || !slices.Equal(carried(a), []string{c.variable}) || !strings.HasSuffix(a.header.Get(c.header), valueOf(c.variable)) {
					t.Errorf("%s%s got %q, and %s is %q", a.host, a.path, carried(a), c.header, a.header.Get(c.header))
				}
			}
		})
	}
}

// A key for a vendor goes to no other server, whoever configured it, and not where
// an App or a value of Toryo's own is configured.
func TestWellKnownKeysGoNowhereElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		configuration string // with SITE for the server
		environ       []string
		variable      string // what arrives, or nothing
		none          bool   // nothing is asked at all
	}{
		"another model server":     {configuration: "llm: {provider: openai, model: m, base_url: 'SITE/v1'}"},
		"another Anthropic":        {configuration: "llm: {provider: anthropic, model: m, base_url: 'SITE'}"},
		"another Gemini":           {configuration: "llm: {provider: gemini, model: m, base_url: 'SITE'}"},
		"GitHub Enterprise":        {configuration: "github: {url: 'SITE', owner: team, bot_name: bot}", none: true},
		"a GitLab of one's own":    {configuration: "gitlab: {url: 'SITE', projects: [team/app], bot_name: bot}", none: true},
		"Gitea gets its own":       {configuration: "gitea: {url: 'SITE', owner: team, bot_name: bot}", variable: "GITEA_TOKEN"},
		"Gitea with Toryo's":       {configuration: "gitea: {url: 'SITE', owner: team, bot_name: bot}", environ: []string{"TORYO_GITEA_TOKEN=own"}},
		"nothing is configured":    {configuration: "language: en", none: true},
		"the SDK's other variable": {configuration: "llm: {provider: gemini, model: m}", environ: []string{"GOOGLE_GEMINI_BASE_URL=SITE", "OPENAI_BASE_URL=SITE"}, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elsewhere := new(recorder)
			site := httptest.NewServer(elsewhere)
			t.Cleanup(site.Close)
			_, environ := vendors(t)
			environ = slices.Concat(environ, everyKey())
			for _, variable := range c.environ {
				environ = append(environ, strings.ReplaceAll(variable, "SITE", site.URL))
			}
			said := newPlace(t, "sqlite").run(t, strings.ReplaceAll(c.configuration, "SITE", site.URL), environ, "doctor", "--online")
			arrived := elsewhere.arrivals()
			if c.none != (len(arrived) == 0) {
				t.Errorf("%d requests arrived: %s", len(arrived), said)
			}
			for _, a := range arrived {
				if got := strings.Join(carried(a), " "); got != c.variable {
					t.Errorf("%s got %q, want %q", a.path, got, c.variable)
				}
			}
		})
	}
}

// The key of the demo's real model may be in the vendor's variable too.
func TestDemoTakesTheVendorsKey(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "sqlite")
	unset := []string{"TORYO_LLM_API_KEY=", "ANTHROPIC_API_KEY="} // whoever runs the tests may have one
	said := here.run(t, "", unset, "demo", "--provider", "anthropic", "--model", "m")
	if !strings.Contains(said, "TORYO_LLM_API_KEY or ANTHROPIC_API_KEY") {
		t.Errorf("without a key it says %s", said)
	}
	if _, err := os.Stat(here.data); err == nil {
		t.Error("it made a folder before it knew the model")
	}
}

// Programs that Toryo starts on this machine get no credential by their
// environment.
func TestChildrenGetNoCredentials(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	dump := filepath.Join(tools, "environment")
	for _, name := range []string{"git", "bwrap"} {
		// The demo ends at once, when it makes its repository.
		script := "#!/bin/sh\nenv >>" + dump + "\n[ \"$1\" != init ] || exit 1\nPATH=${PATH#*:}\nexec " + name + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(tools, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	environ := append(everyKey(), "PATH="+tools+":"+os.Getenv("PATH"), "TORYO_GITEA_TOKEN=value-of-toryo")
	here := newPlace(t, "sqlite")
	here.run(t, "", environ, "doctor")
	here.run(t, "", environ, "demo")
	got, err := os.ReadFile(dump)
	if err != nil || strings.Count(string(got), "PATH=") < 3 {
		t.Fatalf("the programs were hardly asked: %v %s", err, got)
	}
	if strings.Contains(string(got), "value-of-") {
		t.Errorf("the environment of a program was %s", got)
	}
}

// Neither a credential that an agent has taken nor one that it left alone is in a
// sandbox.
func TestSandboxesGetNoCredentials(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	here := newPlace(t, "sqlite")
	server := here.start(t, "serve")
	defer server.stop(t)
	own := agentPlace(t)
	own.environ = slices.Concat(own.environ, everyKey(), []string{
		"TORYO_EXECUTORS_DEVELOPMENT=sh, -c, (env; cat /proc/*/environ) >README 2>/dev/null; true",
		"TORYO_LLM_PROVIDER=anthropic", "TORYO_LLM_MODEL=m",
	})
	oneTime := strings.TrimSpace(here.output(t, "agent", "token", "create"))
	works := startWorker(t, own, "--server", server.url, "--enrol", oneTime)
	<-works.lines
	giveIssue(t, here)
	awaitPull(t, here)
	if err := works.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := works.Wait(); err != nil {
		t.Errorf("it ends with %v, %s", err, works.stderr)
	}
	show := exec.CommandContext(t.Context(), "git", "--git-dir", filepath.Join(here.data, "board", "team", "app.git"), "log", "--all", "-p", "--text")
	said, err := show.Output()
	if err != nil || !strings.Contains(string(said), "+PATH=") {
		t.Fatalf("the pull request does not have the environment: %v %s", err, said)
	}
	if strings.Contains(string(said), "value-of-") {
		t.Errorf("the sandbox had %s", said)
	}
}
