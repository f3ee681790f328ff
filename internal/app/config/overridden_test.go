package config

import (
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/redact"
)

// What is about to be written is loaded as if it were there, and nothing is read of files that are
// planned.
func TestLoadPlanned(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "toryo.yaml")
	text := []byte("gitea:\n  url: https://git.example.com\n  owner: team\n  bot_name: bot\n  token_file: data/secrets/token\n")
	planned := map[string]redact.Secret{filepath.Join(filepath.Dir(file), "data", "secrets", "token"): "t0k3n-t0k3n"}
	c, report := LoadPlanned(file, text, planned, nil, nil)
	if err := report.Err(); err != nil || len(report.Warnings) > 0 || c.Gitea.Token.Reveal() != "t0k3n-t0k3n" {
		t.Errorf("%v, %v", err, report.Warnings)
	}
	if _, report = LoadPlanned(file, text, nil, nil, nil); report.Err() == nil {
		t.Error("a file that is neither there nor planned is no problem")
	}
}

// A change that a variable goes over is named with it; one that says the same is none.
func TestOverridden(t *testing.T) {
	t.Parallel()
	changes := Changes{Set: map[string]string{"gitea.owner": "team", "gitlab.projects": "a/b,c/d", "llm.max_tokens": "100"}, Remove: []string{"llm.base_url"}}
	edited, err := Edit(nil, changes)
	if err != nil {
		t.Fatal(err)
	}
	for variable, want := range map[string]string{
		"TORYO_GITEA_OWNER=others":                  "gitea.owner",
		"TORYO_GITEA_OWNER=team":                    "",
		"TORYO_GITLAB_PROJECTS=a/b":                 "gitlab.projects",
		"TORYO_GITLAB_PROJECTS=a/b,c/d":             "",
		"TORYO_LLM_MAX_TOKENS=100":                  "",
		"TORYO_LLM_BASE_URL=http://127.0.0.1:1/v1":  "llm.base_url",
		"TORYO_LLM_PROVIDER=openai":                 "",
		"TORYO_GITEA_URL=https://gitea.example.com": "",
	} {
		c, report := LoadText("toryo.yaml", edited, []string{variable}, nil)
		key, by := report.Overridden(c, changes)
		if key != want || (key == "") != (by == "") {
			t.Errorf("%s: %q by %q, want %q", variable, key, by, want)
		}
	}
}
