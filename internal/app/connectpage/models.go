package connectpage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/web"
)

// providers are those whose models can be connected on the page. The scripted model, which is for
// tests, and the models of clouds, which need more than a key, are shown where they are configured.
var providers = []string{"anthropic", "openai", "gemini"}

const script = "script"

// modelCards are the cards of the providers.
func (p *Page) modelCards(now present) []web.ModelConnection {
	inUse := p.modelsInUse(now)
	var all []web.ModelConnection
	for _, provider := range slices.Concat(providers, config.CloudProviders, []string{script}) {
		one := web.ModelConnection{Provider: provider, Fixed: !slices.Contains(providers, provider), Running: inUse, Models: uses(now.Config, provider)}
		if one.Connected = len(one.Models) > 0; !one.Connected && one.Fixed {
			continue
		}
		own := config.LLM{Provider: provider}
		if names := own.KeyVariables(); len(names) > 0 {
			one.Variable = names[len(names)-1]
		}
		one.Key = p.keyOrigin(now, provider)
		if now.LLM.Provider == provider {
			one.BaseURL = now.LLM.BaseURL
		}
		p.mu.Lock()
		one.Check, one.Done = p.models[provider], p.done[provider]
		p.mu.Unlock()
		all = append(all, one)
	}
	return all
}

// names are those that the configuration has models for, besides the general one.
func names(c config.Config) []string {
	return slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(c.LLMOverrides)), slices.Collect(maps.Keys(c.Roles)))))
}

// uses are the models of a provider, and what for. What is the same as in general is not named.
func uses(c config.Config, provider string) []web.ModelUse {
	var all []web.ModelUse
	if c.LLM.Provider == provider {
		all = append(all, web.ModelUse{Model: cmp.Or(c.LLM.Model, c.LLM.Script)})
	}
	for _, name := range slices.Compact(names(c)) {
		if other := c.ModelFor(name); other.Provider == provider && (other.Provider != c.LLM.Provider || other.Model != c.LLM.Model || other.BaseURL != c.LLM.BaseURL) {
			all = append(all, web.ModelUse{For: name, Model: other.Model})
		}
	}
	return all
}

// chosen is the model of a provider that is tested: the general one, or else the first other.
func chosen(c config.Config, provider string) (config.LLM, bool) {
	all := uses(c, provider)
	if len(all) == 0 {
		return config.LLM{}, false
	}
	return c.ModelFor(all[0].For), true // an empty name changes nothing
}

// keyOrigin says where the key of a provider comes from.
func (p *Page) keyOrigin(now present, provider string) web.Origin {
	llm, is := chosen(now.Config, provider)
	if variable, _ := p.keyInEnvironment(now, provider); !is && variable != "" {
		return web.Origin{Kind: "variable", Name: variable}
	}
	switch {
	case provider == script || llm.APIKey == "":
		return web.Origin{Kind: "none"}
	case llm.APIKeyFile != "" && now.report.Origin("llm.api_key").String() != llm.KeyVariable(p.Environ):
		return web.Origin{Kind: "file", Name: p.inFull(llm.APIKeyFile)}
	}
	return web.Origin{Kind: "variable", Name: llm.KeyVariable(p.Environ)}
}

// try asks a model something short, as toryo doctor does. A script is only read: each question
// would count as one of its own.
func (p *Page) try(ctx context.Context, llm config.LLM, clean func(string) string) web.ModelCheck {
	llm.Retries = 0
	begun := p.Now()
	finding := doctor.Model(ctx, llm, func(ctx context.Context) (string, error) {
		if llm.Provider == script {
			return "is a script, which is not asked", nil
		}
		if llm.BaseURL != "" {
			if err := mayAsk(ctx, llm.BaseURL); err != nil {
				return "", err
			}
		}
		if err := p.Ask(ctx, llm, p.Client.Transport); err != nil {
			return "", err
		}
		return fmt.Sprintf("answered after %s", p.Now().Sub(begun).Round(time.Millisecond)), nil
	})
	return web.ModelCheck{At: p.Now(), OK: finding.Status == doctor.OK, Said: clean(finding.Found), Hint: clean(finding.Hint)}
}

func (p *Page) keepModel(provider string, check web.ModelCheck) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.models[provider] = check
}

// TestModel implements [web.Connecting]. That the model does not work is no error: it is shown.
func (p *Page) TestModel(ctx context.Context, provider string) error {
	now := p.read()
	llm, is := chosen(now.Config, provider)
	if !is {
		return task.Errorf(task.NotFound, "no model of this provider is connected")
	}
	p.keepModel(provider, p.try(ctx, llm, now.clean))
	return nil
}

// ConnectModel implements [web.Connecting].
func (p *Page) ConnectModel(ctx context.Context, form web.ModelForm) error {
	end, err := p.begin()
	if err != nil {
		return p.shown(ctx, err, p.cleaner(p.Running, form.Key))
	}
	defer end()
	now := p.read()
	clean := p.cleaner(now.Config, form.Key)
	if err := checkModel(form); err != nil {
		return p.shown(ctx, err, clean)
	}
	key := p.keyFor(now, form)
	if key.Value == "" && form.BaseURL == "" {
		return task.Errorf(task.Invalid, "give the key of the model")
	}
	var keys []string
	if !key.Configured && key.Variable != config.Variable("llm.api_key") { // what the environment has would go over it, and to another address
		keys = []string{"llm.api_key", "llm.api_key_file"}
	}
	if err := p.notOverridden(map[string]string{"llm.provider": form.Provider, "llm.model": form.Model, "llm.base_url": form.BaseURL}, keys...); err != nil {
		return p.shown(ctx, err, clean)
	}
	llm := config.Default().LLM
	if now.LLM.Provider == form.Provider {
		llm = now.LLM // with its limits
	}
	llm.Provider, llm.Model, llm.BaseURL, llm.Script, llm.APIKey = form.Provider, form.Model, form.BaseURL, "", key.Value
	llm.Cloud = config.Cloud{}
	check := p.try(ctx, llm, p.cleaner(now.Config, key.Value))
	if !check.OK {
		return p.shown(ctx, task.Errorf(task.Invalid, "the model does not work: %s", check.Said).WithHint("%s", check.Hint), clean)
	}
	p.keepModel(form.Provider, check)
	return p.apply(ctx, now, form.Provider, connect.Answers{
		Model: connect.Model{Provider: form.Provider, Name: form.Model, BaseURL: form.BaseURL, Key: key},
	})
}

// checkModel refuses what the configuration would not take.
func checkModel(form web.ModelForm) error {
	if !slices.Contains(providers, form.Provider) {
		return task.Errorf(task.Invalid, "there is no such provider")
	}
	if form.Model == "" {
		return task.Errorf(task.Invalid, "name the model, as the provider spells it")
	}
	if err := config.CheckValue("llm.model", form.Model); err != nil || form.BaseURL == "" {
		return err
	}
	return config.CheckValue("llm.base_url", form.BaseURL)
}
