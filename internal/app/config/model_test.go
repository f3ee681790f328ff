package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestModelFor(t *testing.T) {
	t.Parallel()
	warm, cold, most, no, price := 0.9, 0.0, 100, false, 7.5
	base := LLM{
		Provider: "anthropic", Model: "strong", APIKey: "key-of-llm", APIKeyFile: "f", MaxTokens: 8192, ContextLength: 128000,
		Temperature: &warm, FunctionCalling: true, Timeout: time.Minute, Retries: 5, Prices: Prices{Input: 1, Cached: 2, Output: 3},
	}
	config := Config{
		LLM: base,
		LLMOverrides: map[string]ModelOverride{
			"planning":   {},
			"execution":  {Model: "quick", MaxTokens: &most, FunctionCalling: &no, Prices: PricesOverride{Output: &price}},
			"summary":    {Provider: "openai", Model: "small", BaseURL: "http://127.0.0.1:1/v1"},
			"reflection": {BaseURL: "https://proxy.example.com"},
			"complete":   {Provider: "gemini", Model: "g", APIKey: "key-of-gemini", APIKeyFile: "g"},
			"same":       {Provider: "anthropic", Model: "other"},
			"scripted":   {Provider: "script", Script: "s.yaml"},
			"compatible": {API: "responses", Prices: PricesOverride{CacheWrite: &price}},
		},
		Roles: map[string]Role{"CODER": {ModelOverride: ModelOverride{Temperature: &cold, Model: "coder"}}},
	}
	for name, test := range map[string]struct {
		names  []string
		change func(*LLM)
	}{
		"nothing":           {nil, func(*LLM) {}},
		"a name not known":  {[]string{"lunch"}, func(*LLM) {}},
		"an empty override": {[]string{"planning"}, func(*LLM) {}},
		"some keys": {[]string{"execution"}, func(m *LLM) {
			m.Model, m.MaxTokens, m.FunctionCalling, m.Prices, m.OwnPrices = "quick", 100, false, Prices{Output: 7.5}, true
		}},
		"the key does not go to another provider": {[]string{"summary"}, func(m *LLM) {
			m.Provider, m.Model, m.BaseURL, m.APIKey, m.APIKeyFile, m.Prices = "openai", "small", "http://127.0.0.1:1/v1", "", "", Prices{}
		}},
		"the key does not go to another address": {[]string{"reflection"}, func(m *LLM) {
			m.BaseURL, m.APIKey, m.APIKeyFile = "https://proxy.example.com", "", ""
		}},
		"another provider with its key": {[]string{"complete"}, func(m *LLM) {
			m.Provider, m.Model, m.APIKey, m.APIKeyFile, m.Prices = "gemini", "g", "key-of-gemini", "g", Prices{}
		}},
		"another address keeps the prices": {[]string{"reflection"}, func(m *LLM) {
			m.BaseURL, m.APIKey, m.APIKeyFile = "https://proxy.example.com", "", ""
		}},
		"a script of its own": {[]string{"scripted"}, func(m *LLM) {
			*m = LLM{Provider: "script", Script: "s.yaml", MaxTokens: m.MaxTokens, ContextLength: m.ContextLength,
				Temperature: m.Temperature, FunctionCalling: true, Timeout: m.Timeout, Retries: m.Retries}
		}},
		"the API of a compatible server": {[]string{"summary", "compatible"}, func(m *LLM) {
			m.Provider, m.Model, m.BaseURL, m.APIKey, m.APIKeyFile, m.Prices = "openai", "small", "http://127.0.0.1:1/v1", "", "", Prices{CacheWrite: 7.5}
			m.API, m.OwnPrices = "responses", true
		}},
		"the same provider keeps its key": {[]string{"same"}, func(m *LLM) { m.Model, m.Prices = "other", Prices{} }},
		"a role":                          {[]string{"CODER"}, func(m *LLM) { m.Model, m.Temperature, m.Prices = "coder", &cold, Prices{} }},
		"a phase of a role": {[]string{"CODER", "execution"}, func(m *LLM) {
			m.Model, m.Temperature, m.MaxTokens, m.FunctionCalling, m.Prices, m.OwnPrices = "quick", &cold, 100, false, Prices{Output: 7.5}, true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := base
			test.change(&want)
			if diff := cmp.Diff(want, config.ModelFor(test.names...)); diff != "" {
				t.Errorf("model (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(base, config.LLM); diff != "" {
		t.Errorf("the model itself changed (-want +got):\n%s", diff)
	}
}

// A role leads away from llm, and a phase back to it: what is set for llm counts again, and nothing
// that was for the other.
func TestAnOverrideThatLeadsBack(t *testing.T) {
	t.Parallel()
	most, low, context, price := 500, 300, 20_000, 9.0
	azure := LLM{
		Provider: "azure", Model: "own-model", BaseURL: "https://one.example.com", APIKey: "own", APIKeyFile: "own-file", API: "chat",
		MaxTokens: 60_000, ContextLength: 900_000, Prices: Prices{Input: 1, Output: 2}, OwnPrices: true,
		Cloud: Cloud{Deployment: "own-deployment", APIVersion: "v1", Credentials: "token_file", CredentialsFile: "own-token"},
	}
	back := ModelOverride{Provider: "azure", Model: "own-model", BaseURL: "https://one.example.com"}
	for name, test := range map[string]struct {
		role, phase ModelOverride
		change      func(*LLM)
	}{
		"from another provider": {
			ModelOverride{Provider: "openai", Model: "other", APIKey: "of-openai", API: "responses", Prices: PricesOverride{Input: &price}}, back, func(*LLM) {},
		},
		"from another address": {
			ModelOverride{BaseURL: "https://two.example.com", Model: "other", APIKey: "of-two", API: "responses", Cloud: Cloud{Region: "r", Deployment: "d", Credentials: "metadata"}}, back, func(*LLM) {},
		},
		"from another address with the model": {
			ModelOverride{BaseURL: "https://two.example.com", APIKey: "of-two", Prices: PricesOverride{Input: &price}, Cloud: Cloud{Deployment: "d"}}, back, func(*LLM) {},
		},
		"from another model": {
			ModelOverride{Model: "other", Cloud: Cloud{Deployment: "d"}, Prices: PricesOverride{Input: &price}}, ModelOverride{Model: "own-model"}, func(*LLM) {},
		},
		"to another model there": {
			ModelOverride{Provider: "openai", Model: "other", APIKey: "of-openai", Prices: PricesOverride{Input: &price}},
			ModelOverride{Provider: "azure", BaseURL: "https://one.example.com", Model: "third"},
			func(m *LLM) {
				m.Model, m.Deployment, m.Prices, m.OwnPrices, m.MaxTokens, m.ContextLength = "third", "", Prices{}, false, 8192, 128_000
			},
		},
		"with a key of its own": {
			ModelOverride{Provider: "openai", Model: "other", APIKey: "of-openai"},
			ModelOverride{Provider: "azure", Model: "own-model", BaseURL: "https://one.example.com", APIKey: "of-phase"},
			func(m *LLM) { m.APIKey, m.APIKeyFile = "of-phase", "" },
		},
		"with limits of the role": {
			ModelOverride{Provider: "openai", Model: "other", APIKey: "of-openai", MaxTokens: &most, ContextLength: &context}, back,
			func(m *LLM) { m.MaxTokens, m.ContextLength = most, context },
		},
		"with a limit of the phase": {
			ModelOverride{Provider: "openai", Model: "other", MaxTokens: &most}, ModelOverride{Provider: "azure", Model: "own-model", BaseURL: "https://one.example.com", MaxTokens: &low},
			func(m *LLM) { m.MaxTokens = low },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Config{LLM: azure, Roles: map[string]Role{"CODER": {ModelOverride: test.role}}, LLMOverrides: map[string]ModelOverride{"planning": test.phase}}
			want := azure
			test.change(&want)
			if diff := cmp.Diff(want, config.ModelFor("CODER", "planning")); diff != "" {
				t.Errorf("model (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACostLimitNeedsPrices(t *testing.T) {
	t.Parallel()
	const model = "llm: {provider: openai, model: m, context_length: 32000, base_url: 'http://h'"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"without prices": {
			model + "}\nbudget:\n  day_cost: 5\n",
			[]string{"f:3:3: budget.day_cost: without prices no cost is counted against this limit; set llm.prices"},
		},
		"with prices": {model + ", prices: {input: 1, output: 1}}\nbudget: {day_cost: 5}\n", nil},
		"with one of them": {
			model + ", prices: {output: 1}}\nbudget: {day_cost: 5}\n",
			[]string{"f:2:10: budget.day_cost: without a price of input no cost of what is sent is counted against this limit; set llm.prices"},
		},
		"override with one of them": {
			"llm: {model: claude-opus-5-5}\nbudget: {day_cost: 5}\nllm_overrides:\n  summary: {prices: {cached: 1, input: 1}}\n",
			[]string{"f:4:3: llm_overrides.summary: without a price of output no cost of answers of this model is counted against the budget; set its prices"},
		},
		"limit of tokens": {model + "}\nbudget: {day_tokens: 5}\n", nil},
		"override without": {
			model + ", prices: {input: 1, output: 1}}\nbudget: {day_cost: 5}\nllm_overrides:\n  summary: {model: small}\n  planning: {temperature: 0}\n",
			[]string{"f:4:3: llm_overrides.summary: without prices no cost of this model is counted against the budget; set its prices"},
		},
		"scripted model":   {"llm: {provider: script, script: /dev/null}\nbudget: {task_cost: 5}\n", nil},
		"no model at all":  {"budget: {task_cost: 5}\n", nil},
		"limit that is no": {model + "}\nbudget: {task_cost: 0}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, report := parse("f", []byte(test.text), []string{"ANTHROPIC_API_KEY=k"}, nil)
			if diff := cmp.Diff(test.want, lines(report.Warnings)); diff != "" || len(report.Problems) > 0 {
				t.Errorf("%v, warnings (-want +got):\n%s", lines(report.Problems), diff)
			}
		})
	}
}
