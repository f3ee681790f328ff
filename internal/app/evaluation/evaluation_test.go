package evaluation

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// A model that is named does everything, and a key goes to nobody else than it was given for.
func TestModelsByName(t *testing.T) {
	t.Parallel()
	c := config.Config{LLM: config.LLM{Provider: "anthropic", Model: "large", APIKey: "key-of-large", Prices: config.Prices{Input: 3}}, LLMOverrides: map[string]config.ModelOverride{
		"small": {Model: "small"}, "planning": {Model: "planner"},
	}}
	for name, want := range map[string]config.LLM{
		"small":           {Provider: "anthropic", Model: "small", APIKey: "key-of-large"},
		"anthropic:other": {Provider: "anthropic", Model: "other", APIKey: "key-of-large"},
		"openai:o:1":      {Provider: "openai", Model: "o:1"},
	} {
		made, err := withModel(c, name)
		is := made.ModelFor("", string(task.Planning))
		if err != nil || is.Provider != want.Provider || is.Model != want.Model || is.APIKey != want.APIKey || is.Prices != want.Prices {
			t.Errorf("%s: %+v, %v", name, is, err)
		}
	}
	for _, name := range []string{"unknown", "openai:", ":x"} {
		if _, err := withModel(c, name); task.CodeOf(err) != task.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := Options{Config: c, Models: []string{"small"}, Budget: 1}
	if _, err := o.models(); err == nil || !strings.Contains(err.Error(), "no prices of the model small") {
		t.Errorf("a budget without prices: %v", err)
	}
	o = Options{Config: c, Models: []string{"small", "small"}}
	if _, err := o.models(); task.CodeOf(err) != task.Usage {
		t.Errorf("the same model twice: %v", err)
	}
}

// Another key is the same evaluation, another setting is not.
func TestPlans(t *testing.T) {
	t.Parallel()
	hash := func(change func(*config.Config)) string {
		c := config.Default()
		change(&c)
		return Options{}.plan([]named{{"m", c}}).Models["m"]
	}
	first := hash(func(*config.Config) {})
	if hash(func(c *config.Config) { c.LLM.APIKey = "x" }) != first {
		t.Error("another key is another evaluation")
	}
	for name, change := range map[string]func(*config.Config){
		"model":   func(c *config.Config) { c.LLM.Model = "x" },
		"sandbox": func(c *config.Config) { c.Sandbox.Network.Execution = "open" },
		"budget":  func(c *config.Config) { c.Budget.TaskTokens = 1 },
	} {
		if hash(change) == first {
			t.Errorf("another %s is the same evaluation", name)
		}
	}
}

// About half of the tasks are played right, always the same ones.
func TestHalf(t *testing.T) {
	t.Parallel()
	right := 0
	for i := range 1000 {
		id := "owner__name-" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("1", i/26)
		if playsGold(PlayHalf, id) {
			right++
		}
		if !playsGold(PlayGold, id) || playsGold(PlayNonsense, id) {
			t.Fatal(id)
		}
	}
	if right < 400 || right > 600 {
		t.Errorf("%d of 1000 are played right", right)
	}
}
