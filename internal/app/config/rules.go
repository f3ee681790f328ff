package config

import (
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// checkTogether checks the rules that tie several keys together. Each looks only
// at keys whose own value is right, so that one slip is reported once.
func (l *loader) checkTogether() {
	for _, forge := range []task.Forge{task.GitHub, task.GitLab, task.Gitea} {
		l.checkLabels(string(forge))
	}
	l.checkForges()
	l.checkDatabase()
	l.checkModel()
	l.checkEnvironments()
}

// conflict reports a problem between keys, at the first of them that somebody
// set.
func (l *loader) conflict(wrong *complaint, paths ...string) {
	for _, path := range paths {
		if l.bad[path] {
			return
		}
	}
	key, at := l.placeOf(paths)
	l.report.Problems = append(l.report.Problems, l.make(at, key, wrong))
}

// placeOf finds where to point at: the first key that somebody set, or else the
// section of the first key, or else the file.
func (l *loader) placeOf(paths []string) (string, Origin) {
	for _, path := range paths {
		if at := l.report.origins[path]; !at.IsDefault() {
			return path, at
		}
	}
	section, _, _ := strings.Cut(paths[0], ".")
	return paths[0], l.inFile(l.sections[section])
}

// checkLabels makes sure that the label tells the state. Forges do not
// distinguish small and capital letters in labels.
func (l *loader) checkLabels(forge string) {
	var labels []*key
	for _, m := range l.schema.sections[forge].members {
		if m.key != nil && m.key.format == "label" {
			labels = append(labels, m.key)
		}
	}
	for i, label := range labels {
		text := shown(label.load(&l.config))
		if forge == string(task.GitLab) && strings.Contains(text, ",") {
			l.conflict(complain("remove the comma", "GitLab does not allow a comma in a label"), label.path)
		}
		for _, other := range labels[:i] {
			if strings.EqualFold(text, shown(other.load(&l.config))) {
				l.conflict(complain("give every state a label of its own", "%s and %s have the same text %s", other.name, label.name, show(text)), label.path, other.path)
			}
		}
	}
}

// checkForges makes sure that a forge which is configured is so in full.
func (l *loader) checkForges() {
	needs := map[task.Forge][]string{
		task.GitHub: {"owner", "bot_name"},
		task.GitLab: {"projects", "bot_name"},
		task.Gitea:  {"url", "owner", "bot_name"},
	}
	for _, forge := range l.config.ConfiguredForges() {
		for _, name := range needs[forge] {
			k := l.schema.byPath[join(string(forge), name)]
			if !l.isSet(k) {
				l.conflict(complain("set it, or remove what else is set for "+string(forge), "%s is configured (%s), but this key is missing", forge, l.configuredBy(forge)), k.path)
			}
		}
		token := l.schema.byPath[join(string(forge), "token")]
		l.missingSecret(token, fmt.Sprintf("%s is configured (%s), but there is no token", forge, l.configuredBy(forge)))
	}
}

// configuredBy is the origin of the first key that makes a forge configured.
func (l *loader) configuredBy(forge task.Forge) Origin {
	for _, name := range []string{"token", "token_file", "owner", "projects", "url"} {
		if at := l.report.origins[join(string(forge), name)]; !at.IsDefault() {
			return at
		}
	}
	return Origin{}
}

// isSet says whether a key has a value that is not nothing.
func (l *loader) isSet(k *key) bool { return shown(k.load(&l.config)) != "" }

// missingSecret warns when a secret is not there. It is no problem, so that a file
// can be checked where its secrets are not.
func (l *loader) missingSecret(secret *key, message string) {
	named := l.schema.fileKey(secret)
	if l.isSet(secret) || l.bad[secret.path] || l.bad[named.path] {
		return
	}
	_, at := l.placeOf([]string{secret.path})
	l.warning(at, secret.path, complain(fmt.Sprintf("set %s or %s", secret.variable(), named.path), "%s", message))
}

func (l *loader) checkDatabase() {
	given := l.config.Database.URL != ""
	switch {
	case l.config.Database.Driver == "postgres" && !given && !l.bad["database.url_file"]:
		l.conflict(complain("set TORYO_DATABASE_URL or database.url_file", "postgres needs the URL of the database"), "database.driver", "database.url")
	case l.config.Database.Driver == "sqlite" && given:
		l.conflict(complain("set database.driver: postgres, or remove the URL", "the URL of a database is given, but the driver is sqlite"), "database.driver", "database.url")
	}
}

func (l *loader) checkModel() {
	llm := l.config.LLM
	switch {
	case llm.Provider == "" && llm.Model != "":
		l.conflict(complain("set it to anthropic, openai, gemini or script", "a model is named, but no provider"), "llm.provider", "llm.model")
	case llm.Provider != "" && llm.Provider != "script" && llm.Model == "":
		l.conflict(complain("name the model", "%s needs the name of a model", llm.Provider), "llm.model", "llm.provider")
	}
	if llm.Provider != "" && llm.Provider != "script" && llm.BaseURL == "" {
		l.missingSecret(l.schema.byPath["llm.api_key"], llm.Provider+" needs a key, and there is none")
	}
	if llm.MaxTokens >= llm.ContextLength {
		l.conflict(complain("leave room for what is sent", "max_tokens (%d) must be less than context_length (%d)", llm.MaxTokens, llm.ContextLength), "llm.max_tokens", "llm.context_length")
	}
}

func (l *loader) checkEnvironments() {
	executor := l.config.CommandExecutor
	if _, known := executor.Environments[executor.DefaultEnvironment]; known || l.bad["command_executor.environments."+executor.DefaultEnvironment] {
		return
	}
	var names []string
	for _, k := range l.schema.inForce(&l.config) {
		if k.entry != "" {
			names = append(names, k.entry)
		}
	}
	l.conflict(complain("use "+listed(names), "there is no environment %s", show(executor.DefaultEnvironment)), "command_executor.default_environment")
}
