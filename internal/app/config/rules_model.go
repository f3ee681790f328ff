package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/catalog"
	"github.com/toryo-dev/toryo/internal/task"
)

// checkModels checks the model, and what the overrides make of it.
func (l *loader) checkModels() {
	l.checkModel(l.schema.sections["llm"], l.config.ModelFor())
	if l.config.LLM.Fallback != (ModelOverride{}) {
		l.checkFallback(l.schema.sections["llm.fallback"])
	}
	overrides, roles := l.schema.sections["llm_overrides"], l.schema.sections["roles"]
	for _, name := range slices.Sorted(maps.Keys(l.config.LLMOverrides)) {
		if l.checkOverrideName(overrides.entrySection(name)) {
			l.checkModel(overrides.entrySection(name), l.config.ModelFor(name))
		}
	}
	for _, name := range l.config.RoleNames() {
		if _, twice := l.config.LLMOverrides[name]; !twice {
			l.checkModel(roles.entrySection(name), l.config.ModelFor(name))
		}
	}
}

// checkModel checks a model as far as this section has a part in it.
func (l *loader) checkModel(at *section, llm LLM) {
	own := func(name string) string { return join(at.path, name) }
	known := llm.Provider != "" && llm.Provider != "script"
	l.checkOnlyFor(own("script"), "script", llm.Script, llm.Provider)
	if llm.Provider != "azure" {
		l.checkOnlyFor(own("api"), "openai", llm.API, llm.Provider)
	}
	l.checkCloud(at, llm)
	if l.anySet(own("provider"), own("model")) {
		paths := []string{own("provider"), own("model"), "llm.provider", "llm.model"}
		switch {
		case llm.Provider == "" && llm.Model != "" && (at.path == "llm" || l.config.LLM.Model == ""):
			l.conflict(complain(hintForProvider(llm.Model), "a model is named, but no provider"), paths...)
		case known && llm.Model == "":
			l.conflict(complain("name the model", "%s needs the name of a model", llm.Provider), paths...)
		}
	}
	if l.anySet(own("provider")) {
		l.checkProvider(at, llm)
	}
	if l.anySet(own("max_tokens"), own("context_length"), own("model"), own("base_url")) && llm.MaxTokens >= llm.ContextLength {
		l.conflict(complain("leave room for what is sent", "max_tokens (%d) must be less than context_length (%d)", llm.MaxTokens, llm.ContextLength),
			own("max_tokens"), own("context_length"), "llm.max_tokens", "llm.context_length")
	}
	l.checkKnown(at, llm)
}

// hintForProvider says what to set for a model whose vendor is not known. Some names only a cloud has.
func hintForProvider(model string) string {
	if _, is := llm.Spoken("bedrock", model); is {
		return "set it to bedrock, if this is the name of the model there"
	}
	if _, is := llm.Spoken("vertex", model); is && strings.Contains(model, "@") {
		return "set it to vertex, if this is the name of the model there"
	}
	return "set it to anthropic, openai, gemini, azure, bedrock, vertex or script"
}

// checkFallback checks the second model, which has to be another one.
func (l *loader) checkFallback(at *section) {
	second := l.config.fallback()
	if second.Place() == l.config.ModelFor().Place() {
		l.conflict(complain("name another model, or another provider or base_url", "the fallback is the model itself"), join(at.path, "model"), join(at.path, "provider"), at.path)
		return
	}
	own, llm := l.config.LLM.Fallback, l.config.LLM
	if own.BaseURL == "" && second.Provider != "azure" && second.isElsewhere() && !llm.isElsewhere() {
		hint := "set its base_url: to that of its vendor, or of llm if that server has it"
		if model, _ := catalog.FindOwn(own.Model); model.Provider() != llm.Provider {
			hint = "set its provider to " + model.Provider() + ", or its base_url to say that the server of llm has it"
		}
		l.warn(complain(hint, "the fallback %s is asked at the address of llm", show(second.Model)), join(at.path, "model"))
	}
	l.checkModel(at, second)
}

// isElsewhere tests whether a model that only its vendor has is asked at the address of another one,
// such as a gateway.
func (l LLM) isElsewhere() bool {
	model, known := catalog.FindOwn(l.Model)
	return known && !model.Open && l.BaseURL != "" && !model.ServedBy(l.BaseURL)
}

// checkProvider checks that there is what the provider needs besides a model.
func (l *loader) checkProvider(at *section, llm LLM) {
	switch {
	case llm.Provider == "script" && llm.Script == "":
		l.conflict(complain("name its file", "the scripted model needs a script"), join(at.path, "script"), join(at.path, "provider"))
	case llm.Provider != "" && llm.Provider != "script" && !llm.isCloud() && llm.BaseURL == "" && llm.APIKey == "":
		if at.path != "llm" && llm.Provider == l.config.LLM.Provider && l.config.LLM.BaseURL == "" {
			return // the key is that of llm, where it is said
		}
		secret, _ := at.find("api_key")
		l.missingSecret(secret.key, llm.Provider+" needs a key, and there is none", llm.KeyVariables()[1:]...)
	}
}

// checkOnlyFor makes sure that a key which has a meaning for one provider only is
// not set for another.
func (l *loader) checkOnlyFor(path, provider, value, is string) {
	if l.anySet(path) && value != "" && is != provider {
		l.conflict(complain("set provider: "+provider+", or remove it", "only the provider %s has this", provider), path)
	}
}

// anySet says whether somebody set one of the keys.
func (l *loader) anySet(paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return !l.report.origins[path].IsDefault() })
}

// reservedNames are the names in llm_overrides that are not roles.
func reservedNames() []string {
	names := []string{SummaryModel, ChatModel, ReviewModel}
	for _, phase := range task.Phases {
		names = append(names, string(phase))
	}
	return names
}

// checkOverrideName makes sure that an override has an effect, and one that can
// be told.
func (l *loader) checkOverrideName(at *section) bool {
	names := append(reservedNames(), l.config.RoleNames()...)
	if !slices.Contains(names, at.name) {
		hint := "use a phase, " + SummaryModel + ", " + ChatModel + ", " + ReviewModel + " or a label that stands in roles"
		for _, name := range names {
			if nearest(at.name, []string{strings.ToLower(name)}) != "" {
				hint = "did you mean " + name + "?"
				break
			}
		}
		l.conflict(complain(hint, "there is no phase and no role of this name"), at.path)
		return false
	}
	if l.config.Roles[at.name].ModelOverride != (ModelOverride{}) {
		l.conflict(complain("keep one of the two", "the model of this role is also set in roles (%s)", l.firstLine(l.schema.sections["roles"].entrySection(at.name))), at.path)
		return false
	}
	return true
}

// firstLine is where a section of the file begins.
func (l *loader) firstLine(at *section) Origin { return l.inFile(l.sections[at.path]) }

// checkBudget warns of a limit that never comes into force, or not for every
// model.
func (l *loader) checkBudget() {
	if l.config.Budget.TaskCost == 0 && l.config.Budget.DayCost == 0 {
		return
	}
	first := l.config.ModelFor()
	if lacks := first.unpriced(); lacks != "" {
		path, at := l.placeOf([]string{"budget.task_cost", "budget.day_cost"})
		l.warning(at, path, complain("set llm.prices", "without %s is counted against this limit", lacks))
		return
	}
	check := func(path string, llm LLM) {
		if lacks := llm.unpriced(); lacks != "" {
			l.warning(l.inFile(l.sections[path]), path, complain("set its prices", "without %s of this model is counted against the budget", lacks))
		}
	}
	if l.config.LLM.Fallback != (ModelOverride{}) {
		check("llm.fallback", l.config.fallback())
	}
	for _, name := range slices.Sorted(maps.Keys(l.config.LLMOverrides)) {
		check(l.schema.sections["llm_overrides"].entrySection(name).path, l.config.ModelFor(name))
	}
}

// unpriced says which prices are missing and what is therefore not counted, or nothing.
func (l LLM) unpriced() string {
	switch {
	case l.Provider == "" || l.Provider == "script":
		return ""
	case l.Prices == (Prices{}):
		return "prices no cost"
	case l.Prices.Input == 0:
		return "a price of input no cost of what is sent"
	case l.Prices.Output == 0:
		return "a price of output no cost of answers"
	}
	return ""
}

// checkServers makes sure that every MCP server can be talked to in one way.
func (l *loader) checkServers() {
	for _, name := range slices.Sorted(maps.Keys(l.config.MCPServers)) {
		server := l.config.MCPServers[name]
		path := join("mcp_servers", pathName(name))
		switch {
		case len(server.Command) == 0 && server.URL == "":
			l.conflict(complain("set command or url", "the server has neither a command nor a URL"), path, path+".command", path+".url")
		case len(server.Command) > 0 && server.URL != "":
			l.conflict(complain("set only one of them", "the server has both a command and a URL"), path+".command", path+".url")
		}
	}
}
