package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// wellKnown are environment variables in which people have a credential already,
// because the programs of its vendor read them. Toryo takes one when it has no
// value of its own.
type wellKnown struct {
	names []string // the first that is set counts
	// host is the only server that the credential is sent to, over HTTPS. Without
	// one it goes to the address that is configured.
	host string
}

// providerKeys are the keys of models, by provider. Google documents that
// GOOGLE_API_KEY goes before GEMINI_API_KEY.
var providerKeys = map[string]wellKnown{
	"anthropic": {names: []string{"ANTHROPIC_API_KEY"}, host: "api.anthropic.com"},
	"openai":    {names: []string{"OPENAI_API_KEY"}, host: "api.openai.com"},
	"gemini":    {names: []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"}, host: "generativelanguage.googleapis.com"},
	"bedrock":   {names: []string{"AWS_BEARER_TOKEN_BEDROCK"}, host: "amazonaws.com"}, // never at a base_url
}

// forgeTokens are the tokens of forges. The order of GitHub's is that of gh, which
// does not send them to GitHub Enterprise Server either. A Gitea has no address
// that could be told from others: whoever sets gitea.url says where its token goes.
var forgeTokens = map[task.Forge]wellKnown{
	task.GitHub: {names: []string{"GH_TOKEN", "GITHUB_TOKEN"}, host: "github.com"},
	task.GitLab: {names: []string{"GITLAB_TOKEN"}, host: "gitlab.com"},
	task.Gitea:  {names: []string{"GITEA_TOKEN"}},
}

// WellKnownVariables lists the variables of other programs that Toryo takes
// credentials from.
func WellKnownVariables() []string {
	var names []string
	for _, one := range providerKeys {
		names = append(names, one.names...)
	}
	for _, one := range forgeTokens {
		names = append(names, one.names...)
	}
	slices.Sort(names)
	return names
}

// serves says that the credential may be sent to the address.
func (w wellKnown) serves(address string) bool {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return false
	}
	return w.host == "" || at.Scheme == "https" && strings.EqualFold(strings.TrimSuffix(at.Host, ":443"), w.host)
}

// servesModel is [wellKnown.serves] for a base_url, which is nothing at the
// provider's own address.
func (w wellKnown) servesModel(baseURL string) bool { return baseURL == "" || w.serves(baseURL) }

// in finds the variable that counts, and its value. One that is set to nothing
// counts as not set.
func (w wellKnown) in(environ []string) (name, value string) {
	for _, name := range w.names {
		for _, line := range environ {
			found, value, _ := strings.Cut(line, "=")
			if found == name && strings.TrimSpace(value) != "" {
				return name, value
			}
		}
	}
	return "", ""
}

// readWellKnown takes the credentials that are still missing from the variables of
// other programs.
func (l *loader) readWellKnown(environ []string) {
	for _, forge := range l.config.ConfiguredForges() {
		l.takeToken(forge, environ)
	}
	l.takeKeys(environ)
}

// takeToken gives a forge that is configured the token it lacks. A GitHub App
// needs none.
func (l *loader) takeToken(forge task.Forge, environ []string) {
	token, address := l.schema.byPath[join(string(forge), "token")], join(string(forge), "url")
	if l.isGiven(token) || l.bad[address] {
		return
	}
	if forge == task.GitHub && (l.config.GitHub.DescribesApp() || l.anyBad(appKeys...)) {
		return
	}
	known := forgeTokens[forge]
	if name, value := known.in(environ); name != "" && known.serves(l.config.Account(forge).URL) {
		l.setText(Origin{source: fromEnvironment, name: name, wellKnown: true}, token, value)
	}
}

// isGiven says that somebody set a secret or named a file for it, even if the
// value was refused.
func (l *loader) isGiven(secret *key) bool {
	named := secret.fileKey()
	return l.isSet(secret) || l.isSet(named) || l.anyBad(secret.path, named.path)
}

// takeKeys takes the keys of the providers that the configuration names. That of
// an override is looked up when the model is chosen, because only then it is known
// where it goes.
func (l *loader) takeKeys(environ []string) {
	for provider, known := range providerKeys {
		name, value := known.in(environ)
		if name == "" || !slices.Contains(l.config.providers(), provider) {
			continue
		}
		value = strings.TrimRight(value, "\r\n")
		key, at := l.schema.byPath["llm.api_key"], Origin{source: fromEnvironment, name: name, wellKnown: true}
		l.redactor.Add(value)
		if wrong := key.checkText(value); wrong != nil {
			l.problem(at, "", wrong)
			continue
		}
		if l.config.VendorKeys == nil {
			l.config.VendorKeys = make(map[string]redact.Secret)
		}
		l.config.VendorKeys[provider] = redact.Secret(value)
		if l.config.LLM.Provider == provider && !l.isGiven(key) && !l.bad["llm.base_url"] && known.servesModel(l.config.LLM.BaseURL) {
			l.set(at, key, redact.Secret(value), nil)
		}
		l.noteOverrides(provider, at)
	}
}

// noteOverrides says of the overrides that lead to a provider where their key
// comes from.
func (l *loader) noteOverrides(provider string, at Origin) {
	l.noteFallback(provider, at)
	for _, part := range []string{"llm_overrides", "roles"} {
		all := l.schema.sections[part]
		for _, name := range all.entryNames(&l.config) {
			entry := all.entrySection(name)
			own, _ := entry.find("api_key")
			if !l.anySet(join(entry.path, "provider"), join(entry.path, "base_url")) || l.isGiven(own.key) {
				continue
			}
			if chosen := l.config.ModelFor(name); chosen.Provider == provider && chosen.APIKey == l.config.VendorKeys[provider] {
				l.report.origins[own.key.path] = at
			}
		}
	}
}

// noteFallback says the same of the fallback.
func (l *loader) noteFallback(provider string, at Origin) {
	own := l.schema.byPath["llm.fallback.api_key"]
	if l.config.LLM.Fallback == (ModelOverride{}) || l.isGiven(own) {
		return
	}
	if second := l.config.fallback(); second.Provider == provider && second.APIKey == l.config.VendorKeys[provider] {
		l.report.origins[own.path] = at
	}
}

// providers lists the providers that the configuration names.
func (c Config) providers() []string {
	all := []string{c.LLM.Provider, c.LLM.Fallback.Provider}
	for _, override := range c.LLMOverrides {
		all = append(all, override.Provider)
	}
	for _, role := range c.Roles {
		all = append(all, role.Provider)
	}
	return all
}

// withVendorKey gives a model that has no key that of its provider, if it is asked
// at the provider's own address.
func (c Config) withVendorKey(llm LLM) LLM {
	llm.Variables = c.CloudVariables
	if llm.APIKey == "" && llm.APIKeyFile == "" && llm.asksByKey() && providerKeys[llm.Provider].servesModel(llm.BaseURL) {
		llm.APIKey = c.VendorKeys[llm.Provider]
	}
	return llm
}

// WithVendorKeys is the configuration with the keys of providers that are named on the command
// line, out of the variables of their own programs. They are among its secrets.
func (c Config) WithVendorKeys(environ []string, providers ...string) Config {
	keys := make(map[string]redact.Secret, len(c.VendorKeys)+len(providers))
	for _, provider := range providers {
		if _, value := providerKeys[provider].in(environ); value != "" {
			keys[provider] = redact.Secret(strings.TrimRight(value, "\r\n"))
		}
	}
	maps.Copy(keys, c.VendorKeys)
	c.VendorKeys = keys
	return c
}

// FindKey is the key for a model that is named on the command line, out of the
// variables that [LLM.KeyVariables] lists.
func (l LLM) FindKey(environ []string) redact.Secret {
	_, value := wellKnown{names: l.KeyVariables()}.in(environ)
	return redact.Secret(strings.TrimRight(value, "\r\n"))
}

// KeyVariables lists the variables from which the key of this model is taken, in
// their order.
func (l LLM) KeyVariables() []string {
	names := []string{Variable("llm.api_key")}
	if known := providerKeys[l.Provider]; known.servesModel(l.BaseURL) {
		names = append(names, known.names...)
	}
	return names
}

// KeyVariable is the variable in which the key of this model is, or nothing.
func (l LLM) KeyVariable(environ []string) string {
	name, _ := wellKnown{names: l.KeyVariables()}.in(environ)
	return name
}

// VendorKey is the key of a provider that was found in a variable.
type VendorKey struct {
	Provider string
	Variable string
}

// FindVendorKeys lists the providers whose key is in a variable of their own programs.
func FindVendorKeys(environ []string) []VendorKey {
	var found []VendorKey
	for _, provider := range slices.Sorted(maps.Keys(providerKeys)) {
		if name, _ := providerKeys[provider].in(environ); name != "" {
			found = append(found, VendorKey{provider, name})
		}
	}
	return found
}

// FindToken is the token for a forge at an address, and the variable that it is in; both are
// empty if there is none.
func FindToken(forge task.Forge, address string, environ []string) (variable string, token redact.Secret) {
	variable, value := wellKnown{names: tokenVariables(forge, address)}.in(environ)
	return variable, redact.Secret(strings.TrimRight(value, "\r\n"))
}

// tokenVariables lists the variables from which the token of a forge at an address
// is taken, in their order.
func tokenVariables(forge task.Forge, address string) []string {
	names := []string{Variable(string(forge) + ".token")}
	if known := forgeTokens[forge]; known.serves(address) {
		names = append(names, known.names...)
	}
	return names
}

// wellKnownNote says in the template what else a secret is taken from.
func wellKnownNote(k *key) string {
	if k.name == "api_key" {
		return " Without it, the variable of the provider's own programs counts, at the provider's own address only: " +
			"ANTHROPIC_API_KEY, OPENAI_API_KEY, AWS_BEARER_TOKEN_BEDROCK, or GOOGLE_API_KEY and then GEMINI_API_KEY."
	}
	for forge, known := range forgeTokens {
		if k.path != join(string(forge), "token") {
			continue
		}
		note := " Without it, " + strings.Join(known.names, " and then ") + " counts"
		if known.host != "" {
			note += ", for https://" + known.host + " only"
		}
		return note + "."
	}
	return ""
}
