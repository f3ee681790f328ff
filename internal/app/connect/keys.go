package connect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// sending is a key of a model, and whom it is sent to.
type sending struct {
	key     redact.Secret
	address string // the provider, and its address if it is not its own
}

// sendings are the keys of all models of a configuration, with what each model is for. The keys
// that the programs of a provider have go to the provider alone, whatever is configured.
func sendings(c config.Config) map[sending]string {
	all := map[sending]string{}
	addModel := func(llm config.LLM, what string) {
		if llm.APIKey == "" || llm.Provider == "" || llm.Provider == "script" || llm.APIKey == c.VendorKeys[llm.Provider] {
			return
		}
		one := sending{llm.APIKey, strings.TrimSpace(llm.Provider + " " + strings.TrimSuffix(llm.BaseURL, "/"))}
		if _, known := all[one]; !known {
			all[one] = what
		}
	}
	add := func(names ...string) { addModel(c.ModelFor(names...), strings.Join(names, " and ")) }
	add()
	if second, configured := c.FallbackFor(); configured {
		addModel(second, "llm.fallback")
	}
	names := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(c.LLMOverrides)), slices.Collect(maps.Keys(c.Roles)))))
	for _, name := range slices.Compact(names) {
		add(name)
	}
	for role := range c.Roles { // a phase goes over the role that is in it
		for name := range c.LLMOverrides {
			add(role, name)
		}
	}
	return all
}

// checkKeys makes sure that another model takes no key along that was not given for it: one in a
// variable, or one of a role that is asked where the general model is. Such a key was given
// for the address which that had before.
func (w *work) checkKeys(after config.Config, report config.Report) error {
	if w.answers.Model.Provider == "" {
		return nil
	}
	before := sendings(w.loaded)
	for one, what := range sendings(after) {
		if _, same := before[one]; same || one.key == w.answers.Model.Key.Value {
			continue
		}
		if what != "" {
			return task.Errorf(task.Conflict, "the key of the model for %s would be sent to %s", what, one.address).
				WithHint("give that model a base_url or a provider of its own in %s", w.ConfigFile)
		}
		origin := fmt.Sprint(report.Origin("llm.api_key"))
		return task.Errorf(task.Conflict, "the key that is set by %s would be sent to %s", origin, one.address).
			WithHint("it was not given for that; start the server without it, or give the key of this model there")
	}
	return nil
}
