package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/redact"
)

// wellKnownEnvironment sets every variable that a credential may be taken from, to
// its own name in small letters.
func wellKnownEnvironment() (environ []string) {
	for _, name := range WellKnownVariables() {
		environ = append(environ, name+"="+strings.ToLower(name))
	}
	return environ
}

// TestWellKnownTokens is the table of who gets a token from which variable.
func TestWellKnownTokens(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "token")
	if err := os.WriteFile(file, []byte("from-a-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	const github, gitlab, gitea = "owner: o, bot_name: b", "projects: [o/p], bot_name: b", "owner: o, bot_name: b"
	for name, c := range map[string]struct {
		text    string
		environ []string
		want    string // of the forge that the text names
	}{
		"github":                  {text: "github: {" + github + "}", want: "gh_token"},
		"github, one is empty":    {text: "github: {" + github + "}", environ: []string{"GH_TOKEN="}, want: "github_token"},
		"github, one is a space":  {text: "github: {" + github + "}", environ: []string{"GH_TOKEN= "}, want: "github_token"},
		"github, both are empty":  {text: "github: {" + github + "}", environ: []string{"GH_TOKEN=", "GITHUB_TOKEN="}},
		"github, Toryo's own":     {text: "github: {" + github + "}", environ: []string{"TORYO_GITHUB_TOKEN=own"}, want: "own"},
		"github, Toryo's empty":   {text: "github: {" + github + "}", environ: []string{"TORYO_GITHUB_TOKEN="}, want: "gh_token"},
		"github, a file":          {text: "github: {token_file: token, " + github + "}", want: "from-a-file"},
		"github, a missing file":  {text: "github: {token_file: nothing, " + github + "}"},
		"github, an App":          {text: "github: {app_id: 7, " + github + "}"},
		"github, a part of one":   {text: "github: {app_installation_id: 7, " + github + "}"},
		"github, a wrong App":     {text: "github: {app_id: seven, " + github + "}"},
		"github, a slash":         {text: "github: {url: 'https://github.com/', " + github + "}", want: "gh_token"},
		"github, no encryption":   {text: "github: {url: 'http://github.com', " + github + "}"},
		"github, enterprise":      {text: "github: {url: 'https://github.example.com', " + github + "}"},
		"github, a look-alike":    {text: "github: {url: 'https://github.com.example.com', " + github + "}"},
		"github, as a user name":  {text: "github: {url: 'https://github.com@example.com', " + github + "}"},
		"github, another port":    {text: "github: {url: 'https://github.com:8443', " + github + "}"},
		"github, a wrong address": {text: "github: {url: 'nowhere', " + github + "}"},
		"gitlab":                  {text: "gitlab: {" + gitlab + "}", want: "gitlab_token"},
		"gitlab of one's own":     {text: "gitlab: {url: 'https://gitlab.example.com', " + gitlab + "}"},
		"gitea":                   {text: "gitea: {url: 'https://gitea.example.com', " + gitea + "}", want: "gitea_token"},
		"gitea without address":   {text: "gitea: {" + gitea + "}"},
	} {
		config, report := parse(filepath.Join(folder, "toryo.yaml"), []byte(c.text), latest(wellKnownEnvironment(), c.environ), nil)
		tokens := map[string]redact.Secret{"github": config.GitHub.Token, "gitlab": config.GitLab.Token, "gitea": config.Gitea.Token}
		asked, _, _ := strings.Cut(c.text, ":")
		for forge, token := range tokens {
			if want := c.want; forge != asked && token != "" || forge == asked && token.Reveal() != want {
				t.Errorf("%s: %s has %q (%s), want %q; problems %v", name, forge, token.Reveal(), report.Origin(forge+".token"), want, report.Problems)
			}
		}
	}
}

// latest is an environment in which each variable is there once.
func latest(first, over []string) (environ []string) {
	set := make(map[string]string)
	for _, line := range append(first, over...) {
		name, value, _ := strings.Cut(line, "=")
		set[name] = value
	}
	for name, value := range set {
		environ = append(environ, name+"="+value)
	}
	return environ
}

// TestNothingIsTakenWithoutNeed: variables that are there for other programs do not
// configure a forge, and are no secrets of ours.
func TestNothingIsTakenWithoutNeed(t *testing.T) {
	t.Parallel()
	config, report := parse("toryo.yaml", []byte("llm: {provider: anthropic, model: m, context_length: 32000, base_url: 'http://127.0.0.1:1'}"), wellKnownEnvironment(), nil)
	if forges := config.ConfiguredForges(); len(forges) > 0 || len(report.Problems)+len(report.Warnings) > 0 {
		t.Errorf("configured are %v, with %v %v", forges, report.Problems, report.Warnings)
	}
	if config.LLM.APIKey != "" || config.ModelFor("planning").APIKey != "" {
		t.Error("the key goes to another server")
	}
}

// TestWellKnownKeysOfModels: an override gets the key of the provider that it leads
// to, and only at the provider's own address, whatever lies between.
func TestWellKnownKeysOfModels(t *testing.T) {
	t.Parallel()
	const text = `
llm: {provider: openai, model: m, context_length: 32000}
llm_overrides:
  summary: {provider: anthropic, model: a}
  planning: {model: n}
  execution: {base_url: 'https://api.openai.com/v1'}
  reflection: {provider: openai}
roles:
  LOCAL: {base_url: 'http://127.0.0.1:1/v1'}
  GOOGLE: {provider: gemini, model: g}
  KEPT: {provider: gemini, model: g, api_key_file: key}
`
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "key"), []byte("kept-in-a-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"", "own-key-of-toryo"} {
		environ, ofLLM := latest(wellKnownEnvironment(), []string{"TORYO_LLM_API_KEY=" + own}), "openai_api_key"
		if own != "" {
			ofLLM = own
		}
		config, report := parse(filepath.Join(folder, "toryo.yaml"), []byte(text), environ, nil)
		if len(report.Problems)+len(report.Warnings) > 0 {
			t.Fatalf("%v %v", report.Problems, report.Warnings)
		}
		for names, want := range map[string]string{
			"":                ofLLM,
			"summary":         "anthropic_api_key",
			"planning":        ofLLM,
			"reflection":      ofLLM,
			"execution":       "openai_api_key", // llm.base_url is nothing, so that this is another one
			"LOCAL":           "",
			"LOCAL planning":  "",
			"LOCAL summary":   "anthropic_api_key",
			"LOCAL execution": "openai_api_key",
			// The provider is named again, but not its address: still the local one.
			"LOCAL reflection":  "",
			"GOOGLE":            "google_api_key",
			"GOOGLE reflection": ofLLM, // back at the provider and the address of llm
			"KEPT":              "kept-in-a-file",
		} {
			if got := config.ModelFor(strings.Fields(names)...); got.APIKey.Reveal() != want {
				t.Errorf("the model for %q (%s at %q) has the key %q, want %q", names, got.Provider, got.BaseURL, got.APIKey.Reveal(), want)
			}
		}
		var listing strings.Builder
		if err := report.Print(&listing, config); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"llm_overrides.summary.api_key = " + redact.Mask + "  (from the environment variable ANTHROPIC_API_KEY)\n",
			"llm_overrides.execution.api_key = " + redact.Mask + "  (from the environment variable OPENAI_API_KEY)\n",
			"llm_overrides.planning.api_key = \"\"  (default)\n",
			"roles.GOOGLE.api_key = " + redact.Mask + "  (from the environment variable GOOGLE_API_KEY)\n",
			"roles.LOCAL.api_key = \"\"  (default)\n",
		} {
			if !strings.Contains(listing.String(), want) {
				t.Errorf("the listing lacks %q:\n%s", want, listing.String())
			}
		}
		masked := config.Redactor().String("anthropic_api_key google_api_key gh_token")
		if masked != redact.Mask+" "+redact.Mask+" gh_token" {
			t.Errorf("masked is %q", masked)
		}
	}
}

// TestWellKnownKeyThatIsNoKey: a value that cannot be a key is a problem that names
// the variable, and is not repeated.
func TestWellKnownKeyThatIsNoKey(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"llm: {provider: openai, model: m}", "gitlab: {projects: [o/p], bot_name: b}"} {
		_, report := parse("toryo.yaml", []byte(text), []string{"OPENAI_API_KEY=two\nlines", "GITLAB_TOKEN=two\nlines"}, nil)
		if len(report.Problems) != 1 || !strings.HasSuffix(strings.Fields(report.Problems[0].String())[0], "_API_KEY:") && !strings.HasPrefix(report.Problems[0].String(), "GITLAB_TOKEN:") {
			t.Errorf("%s: problems are %v", text, report.Problems)
		}
		if strings.Contains(report.Problems[0].String(), "two") {
			t.Errorf("the value is in %v", report.Problems)
		}
	}
}
