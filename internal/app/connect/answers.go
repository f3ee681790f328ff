package connect

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// Answers are what an installation is to be.
type Answers struct {
	// Forge is where issues are; [task.Board] for the built-in board alone.
	Forge task.Forge
	URL   string
	Token Secret
	// App is a GitHub App that acts as the bot, in place of a token; without an ID there is
	// none.
	App App
	// Repositories get labels and a webhook. On the board the first is the name under which
	// Import goes there.
	Repositories []string
	Owner        string // not for GitLab, which has a list of projects
	Bot          string
	Import       string // a folder or an address that git can clone; empty for none

	Sandbox string // sandbox.kind
	Model   Model

	DataDir   string // data_dir, if it is to be written; else empty
	Addr      string // server.addr, if it is to be written; else empty
	PublicURL string // server.public_url, if it is to be written; else empty
	// Webhook says whether webhooks are to be created, which the forge delivers to HookBase:
	// where the server is reached.
	Webhook  bool
	HookBase string
}

// Model is the model to use. Without a provider nothing about it is written.
type Model struct {
	Provider string
	Name     string
	BaseURL  string
	Script   string // of the scripted model
	Key      Secret
	Cloud    config.Cloud // of a model in a cloud
}

// cloudKeys are the keys of the file that say where a model of a cloud is, and how it is told who
// asks.
func (m Model) cloudKeys() map[string]string {
	return map[string]string{
		"llm.region": m.Cloud.Region, "llm.project": m.Cloud.Project, "llm.deployment": m.Cloud.Deployment, "llm.api_version": m.Cloud.APIVersion,
		"llm.credentials": m.Cloud.Credentials, "llm.credentials_file": m.Cloud.CredentialsFile, "llm.profile": m.Cloud.Profile,
	}
}

// Secret is a secret and where it is: one that the configuration has already, or that is in a
// variable or in a file of the user's own, stays there. Else Value is written to a file in the
// data directory.
type Secret struct {
	Value      redact.Secret
	Configured bool
	Variable   string
	File       string
}

// stays reports whether the secret is somewhere already, or there is none.
func (s Secret) stays() bool {
	return s.Value == "" || s.Configured || s.Variable != "" || s.File != ""
}

// settings are the keys that the answers set, except those of files with secrets.
func (a Answers) settings(loaded config.Config) map[string]string {
	set := map[string]string{}
	put := func(key, value string) {
		if value != "" {
			set[key] = value
		}
	}
	put("data_dir", a.DataDir)
	put("server.addr", a.Addr)
	put("server.public_url", a.PublicURL)
	if a.Sandbox != "" && a.Sandbox != loaded.Sandbox.Kind {
		put("sandbox.kind", a.Sandbox)
	}
	put("llm.provider", a.Model.Provider)
	put("llm.model", a.Model.Name)
	put("llm.base_url", a.Model.BaseURL)
	put("llm.script", a.Model.Script)
	for key, value := range a.Model.cloudKeys() {
		put(key, value)
	}
	section := string(a.Forge)
	switch a.Forge {
	case task.GitHub, task.Gitea:
		put(section+".owner", a.Owner)
		if a.App.ID != 0 {
			put("github.app_id", strconv.FormatInt(a.App.ID, 10))
			put("github.app_name", a.App.Slug)
		}
	case task.GitLab:
		projects := a.Repositories
		if sameHook(a.URL, loaded.GitLab.URL) { // those of another GitLab are not there
			projects = withAll(loaded.GitLab.Projects, a.Repositories)
		}
		put(section+".projects", strings.Join(projects, ","))
	default:
		return set
	}
	put(section+".bot_name", a.Bot)
	if address := strings.TrimSuffix(a.URL, "/"); address != KindOf(a.Forge).URL || address != strings.TrimSuffix(loaded.Account(a.Forge).URL, "/") {
		put(section+".url", address)
	}
	return set
}

// obsolete are keys that would contradict the answers: the file of a secret that comes from
// elsewhere now, a GitHub App in whose place there is a token, and what was said about another
// model.
func (a Answers) obsolete(set map[string]string) []string {
	var keys []string
	without := func(key string, is bool) {
		if _, given := set[key]; is && !given {
			keys = append(keys, key)
		}
	}
	without(string(a.Forge)+".token_file", a.Token.Variable != "" || a.App.ID != 0)
	without("github.app_installation_id", a.App.ID != 0) // of another App
	replaced := a.Forge == task.GitHub && a.Token.Value != "" && !a.Token.Configured
	for _, key := range []string{"github.app_id", "github.app_installation_id", "github.app_name", "github.app_private_key_file"} {
		without(key, replaced)
	}
	if a.Model.Provider != "" {
		without("llm.api_key_file", !a.Model.Key.Configured)
		without("llm.model", a.Model.Name == "")
		without("llm.base_url", true)
		without("llm.script", true)
		for _, key := range slices.Sorted(maps.Keys(a.Model.cloudKeys())) {
			without(key, true)
		}
	}
	return keys
}

// withAll adds what is not in a list yet.
func withAll(list, more []string) []string {
	all := append([]string(nil), list...)
	for _, one := range more {
		addOnce(&all, one)
	}
	return all
}

// inConfig is how the configuration file names a file: from its own folder if it is below
// that, so that the whole can be moved, and in full else.
func inConfig(configFile, path string) (string, error) {
	base, err := filepath.Abs(filepath.Dir(configFile))
	if err != nil {
		return "", err
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(base, full)
	if err != nil || below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator)) {
		return full, nil //nolint:nilerr // there is no way from one to the other: another disk
	}
	return filepath.ToSlash(below), nil
}
