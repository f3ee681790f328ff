package config

import (
	"slices"
	"strconv"

	"github.com/toryo-dev/toryo/internal/llm/catalog"
)

// The defaults of a model of which nothing is known.
const (
	defaultMaxTokens     = 8192
	defaultContextLength = 128_000
)

// leastContext is the shortest context that can be worked with.
const leastContext = 1024

// mostMaxTokens is the longest answer that is allowed without being set. Models can
// answer longer, but each call reserves the cost of its longest answer in the budget.
const mostMaxTokens = 32_768

// mostContext is the longest context that is used without being set. Models take in more,
// but each turn of a long conversation is paid for.
const mostContext = 200_000

// Known is the model with what is known of it where nothing is set: limits, and prices
// where the vendor serves it. At another address its prices are not known, and a server may
// be set up with less than the model can do. A context that nobody asked for ends where
// longer requests cost more.
func (l LLM) Known() LLM {
	model, known := l.Find()
	answer, context := int64(defaultMaxTokens), int64(defaultContextLength)
	switch {
	case known && (model.ServedBy(l.BaseURL) || l.isCloud()):
		answer, context = min(model.Answer, mostMaxTokens), min(model.Context, mostContext)
	case known:
		answer, context = min(model.Answer, answer), min(model.Context, context)
	}
	if l.ContextLength > 0 {
		context = int64(l.ContextLength)
	}
	if l.MaxTokens == 0 {
		l.MaxTokens = int(min(answer, context/4))
	}
	if l.ContextLength == 0 {
		if longest := usualInput(model); longest > 0 {
			context = min(context, longest+int64(l.MaxTokens))
		}
		l.ContextLength = int(context)
	}
	// Prices that are set may be in another currency, so that the others are not filled in.
	if known && !l.OwnPrices && l.Prices == (Prices{}) && l.Provider == model.Provider() && model.ServedBy(l.BaseURL) {
		l.Prices, l.VendorPrices = Prices(model.Prices), true
	}
	return l
}

// usualInput is the longest input that the model takes at its usual prices, 0 if only its
// context limits it.
func usualInput(model catalog.Model) int64 {
	if model.Long != nil {
		return model.Long.Over
	}
	return model.LongestInput
}

// Find looks for what is known of the model. The name of a script means nothing.
func (l LLM) Find() (catalog.Model, bool) {
	if l.Provider == "script" {
		return catalog.Model{}, false
	}
	return catalog.Find(l.Model)
}

// LongPrices are the prices of long requests, and whether there are any: where prices are set
// there are no others.
func (l LLM) LongPrices() (long catalog.LongPrices, are bool) {
	if model, _ := l.Find(); l.VendorPrices && model.Long != nil {
		return *model.Long, true
	}
	return long, false
}

// within is the model with limits that were set for another one, and no more than it takes, or than
// is assumed of a model that is not known. Limits of one that is not known, at a server of others, are
// believed of the other models there.
func (l LLM) within(before LLM) LLM {
	model, known := l.Find()
	if !known {
		if _, known := before.Find(); !known && l.BaseURL != "" && l.BaseURL == before.BaseURL && l.Provider == before.Provider {
			return l
		}
		model.Answer, model.Context = defaultMaxTokens, defaultContextLength
	}
	l.MaxTokens = int(min(int64(l.MaxTokens), model.Answer))
	l.ContextLength = int(min(int64(l.ContextLength), model.Context))
	return l
}

// Use is how the model is used, for what its table knows.
func (l LLM) Use() catalog.Use {
	return catalog.Use{Provider: l.Provider, Model: l.Model, BaseURL: l.BaseURL, MaxTokens: int64(l.Known().MaxTokens)}
}

// vendors are the providers that an override by the name of a model alone may leave. Where
// models of several vendors are to be had at one provider, it stays there.
var vendors = []string{"", "anthropic", "openai", "gemini", "script"}

// inferProviders gives models that are named alone the provider of their vendor. An
// override or fallback at the address of another one stays there.
func (l *loader) inferProviders() {
	l.config.LLM.OwnPrices = l.anySet("llm.prices.input", "llm.prices.cached", "llm.prices.cache_write", "llm.prices.output")
	l.inferProvider(l.schema.sections["llm"], l.config.LLM)
	l.inferOverride(l.schema.sections["llm.fallback"], l.config.LLM.Fallback)
	for _, part := range []string{"llm_overrides", "roles"} {
		all := l.schema.sections[part]
		for _, name := range all.entryNames(&l.config) {
			own := l.config.LLMOverrides[name]
			if part == "roles" {
				own = l.config.Roles[name].ModelOverride
			}
			l.inferOverride(all.entrySection(name), own)
		}
	}
}

func (l *loader) inferOverride(at *section, own ModelOverride) {
	if l.config.LLM.atVendor() && own.BaseURL == "" && slices.Contains(vendors, l.config.LLM.Provider) {
		l.inferProvider(at, LLM{Provider: own.Provider, Model: own.Model})
	}
}

// atVendor says that no server of others is configured.
func (l LLM) atVendor() bool {
	known, found := providerKeys[l.Provider]
	return l.BaseURL == "" || found && known.serves(l.BaseURL)
}

func (l *loader) inferProvider(at *section, model LLM) {
	provider, _ := at.find("provider")
	known, found := catalog.FindOwn(model.Model)
	if model.Provider != "" || !found || l.bad[provider.key.path] {
		return
	}
	l.set(l.report.origins[join(at.path, "model")], provider.key, known.Provider(), nil)
}

// checkKnown says what is not known of a model, and what of its settings it does not
// take. Each is said where it is set.
func (l *loader) checkKnown(at *section, llm LLM) {
	own := func(name string) string { return join(at.path, name) }
	if llm.ContextLength < leastContext && l.anySet(own("context_length")) {
		l.conflict(complain("the least is "+strconv.Itoa(leastContext), "%d is too small", llm.ContextLength), own("context_length"))
	}
	l.checkServed(at, llm)
	if model, known := llm.Find(); known && model.FixedTemperature && llm.Temperature != nil && l.anySet(own("temperature"), own("model")) {
		l.warn(complain("remove it", "the model %s takes no temperature, so it is not sent", show(llm.Model)), own("temperature"), own("model"))
	}
	l.checkReasoning(at, llm)
	l.checkPrices(at, llm)
}

// checkPrices says where prices of the table are counted beside others, and where prices that
// are set are counted for requests that cost more.
func (l *loader) checkPrices(at *section, llm LLM) {
	own := func(name string) string { return join(at.path, name) }
	model, known := llm.Find()
	if !known || !model.ServedBy(llm.BaseURL) || llm.Provider != model.Provider() {
		return
	}
	switch {
	case at.path != "llm" && llm.VendorPrices && l.config.LLM.Prices != (Prices{}) && llm.Model != l.config.LLM.Model && l.anySet(own("model")):
		l.warn(complain("set its prices", "the prices of %s are in US dollars, and llm.prices are counted with them", show(llm.Model)), own("model"))
	case !llm.VendorPrices && model.Long != nil && int64(llm.ContextLength) > model.Long.Over && l.anySet(own("context_length")):
		l.warn(complain("set the higher prices, or a smaller context_length", "requests over %d tokens cost more, and are counted at the prices that are set", model.Long.Over), own("context_length"))
	}
}

// checkServed says of a model that it is not known, or not served by its provider.
func (l *loader) checkServed(at *section, llm LLM) {
	own := func(name string) string { return join(at.path, name) }
	model, known := llm.Find()
	remote := llm.Provider != "" && llm.Provider != "script"
	switch {
	case !remote || llm.Model == "" || !l.anySet(own("model"), own("base_url")):
	case !known && l.anySet(own("model")) && !l.anySet(own("context_length")) && l.config.LLM.ContextLength != llm.ContextLength:
		l.sayUnknown(llm, own("model"))
	case known && llm.BaseURL == "" && llm.Provider == model.Provider() && !model.ServedBy(""):
		l.conflict(complain("set base_url to the address of a server that has it", "%s itself does not serve the model %s", llm.Provider, show(llm.Model)), own("model"), own("base_url"))
	}
}

// sayUnknown says once of a model that nothing is known of it.
func (l *loader) sayUnknown(llm LLM, path string) {
	about := complain("set context_length and max_tokens, and prices for a budget in money",
		"nothing is known of the model %s; it is used with a context of %d tokens and answers of %d", show(llm.Model), llm.ContextLength, llm.MaxTokens)
	if !slices.ContainsFunc(l.report.Warnings, func(said Problem) bool { return said.Message == about.message }) {
		l.warn(about, path)
	}
}

func (l *loader) checkReasoning(at *section, llm LLM) {
	own := func(name string) string { return join(at.path, name) }
	if llm.Reasoning == "" || llm.Provider == "" || !l.anySet(own("reasoning"), own("model"), own("max_tokens")) {
		return
	}
	// A number that was set for another model is limited when it is asked for.
	if tokens, err := strconv.Atoi(llm.Reasoning); err == nil && tokens >= llm.MaxTokens && l.anySet(own("reasoning"), own("max_tokens")) {
		l.conflict(complain("raise max_tokens, or lower reasoning", "reasoning (%d) must be less than max_tokens (%d), which it is a part of", tokens, llm.MaxTokens),
			own("reasoning"), own("max_tokens"), "llm.reasoning", "llm.max_tokens")
		return
	}
	if _, note := llm.Use().Reasoning(llm.Reasoning); note != "" {
		l.warn(complain("", "%s", note), own("reasoning"), own("model"), "llm.reasoning")
	}
}

// warn is a warning about keys, at the first of them that somebody set.
func (l *loader) warn(about *complaint, paths ...string) {
	if l.anyBad(paths...) {
		return
	}
	key, at := l.placeOf(paths)
	l.warning(at, key, about)
}

func checkReasoningSetting(text string) *complaint {
	const hint = "use off, low, medium, high or a number of tokens"
	switch text {
	case catalog.Off, catalog.Low, catalog.Medium, catalog.High:
		return nil
	}
	if tokens, err := strconv.Atoi(text); err != nil || tokens < 1 || tokens > 10_000_000 || strconv.Itoa(tokens) != text {
		return complain(hint, "%s is neither a level nor a number of tokens", show(text))
	}
	return nil
}
