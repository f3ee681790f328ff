package site

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/llm/cloud"
	"github.com/toryo-dev/toryo/internal/llm/gemini"
	"github.com/toryo-dev/toryo/internal/llm/openai"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/redact/rules"
	"github.com/toryo-dev/toryo/internal/task"
)

// Models makes the models that the configuration names.
type Models struct {
	config   config.Config
	redactor llm.Redactor
	ledger   llm.Ledger   // nil if nothing is counted against the budget
	outages  *llm.Outages // of all that the owner makes models for
	log      *slog.Logger
}

// NewModels makes what models are made with. Nothing is counted without a ledger.
//
// The outages belong to whoever reads the configuration. A new key needs a new start, which
// begins without any.
func NewModels(c config.Config, ledger llm.Ledger, outages *llm.Outages, log *slog.Logger) (*Models, error) {
	redactor, err := rules.New(c.Redactor())
	if err != nil {
		return nil, err
	}
	return &Models{config: c, redactor: redactor, ledger: ledger, outages: outages, log: log}, nil
}

// Model is the model for what the names say, as in [config.Config.ModelFor], with
// everything that a call to it passes through, and with the fallback that is configured.
func (m *Models) Model(account llm.Account, names ...string) (llm.Model, error) {
	chosen := m.config.ModelFor(names...)
	first, err := m.wrapped(account, chosen, chosen.Retries)
	if err != nil {
		return nil, err
	}
	other, configured := m.config.FallbackFor(names...)
	if !configured {
		return first, nil
	}
	if lacks := other.Lacking(); lacks != "" { // the first may do without it
		m.log.Warn("the fallback cannot be asked", "provider", other.Provider, "model", other.Model, "lacks", lacks)
		return first, nil
	}
	second, err := m.wrapped(account, other, other.Retries)
	if err != nil { // likewise
		m.log.Warn("the fallback cannot be asked", "provider", other.Provider, "model", other.Model, "error", err)
		return first, nil
	}
	probe, err := m.wrapped(account, chosen, 0)
	if err != nil {
		return nil, err
	}
	return llm.WithFallback(llm.Fallback{
		First: first, Probe: probe, Second: second, Server: chosen.Place(), Outages: m.outages, Logger: m.log,
	}), nil
}

// wrapped is a model with its own layers: its key, its prices and its budget.
func (m *Models) wrapped(account llm.Account, chosen config.LLM, retries int) (llm.Model, error) {
	adapter, err := Connect(chosen)
	if err != nil {
		return nil, err
	}
	return llm.Wrap(adapter, llm.Layers{
		Retry:     llm.RetryPolicy{Tries: uint(retries) + 1},
		TextCalls: !chosen.FunctionCalling,
		Images:    imagesOf(chosen),
		NoKey:     chosen.APIKey == "" && chosen.Provider != "script" && chosen.Credentials == "",
		Ledger:    m.ledger,
		Account:   account,
		Redactor:  m.redactor,
		Logger:    m.log,
	}), nil
}

// Connect makes the adapter of the chosen provider. It makes no call.
func Connect(chosen config.LLM) (llm.Model, error) { return connectThrough(chosen, nil) }

// connectThrough is Connect by a transport; nil means the standard one.
func connectThrough(chosen config.LLM, through http.RoundTripper) (llm.Model, error) {
	chosen = chosen.Known()
	if lacks := chosen.Lacking(); lacks != "" {
		return nil, task.Errorf(task.BadConfig, "the model cannot be asked: %s", lacks).WithHint("%s", doctor.HintForModel(chosen))
	}
	endpoint := llm.Endpoint{
		Model: chosen.Model, BaseURL: chosen.BaseURL, Key: chosen.APIKey.Reveal(),
		MaxTokens: int64(chosen.MaxTokens), ContextLength: int64(chosen.ContextLength),
		Temperature: chosen.Temperature, Prices: pricesOf(chosen), Silence: chosen.Timeout, Transport: through,
	}
	endpoint.Reasoning, _ = chosen.Use().Reasoning(chosen.Reasoning) // what it differs in was said by the check
	if known, found := chosen.Find(); found {
		endpoint.NoReasoning = known.Reasoning.Way == ""
		if known.FixedTemperature {
			endpoint.Temperature = nil
		}
	}
	if place, is := placeOf(chosen); is {
		return connectCloud(chosen, place, endpoint)
	}
	switch chosen.Provider {
	case "anthropic":
		return anthropic.New(endpoint), nil
	case "openai":
		return openai.New(endpoint, openai.API(chosen.API))
	case "gemini":
		return newGemini(endpoint)
	case "script":
		loaded, err := script.Load(chosen.Script)
		if err != nil {
			return nil, err
		}
		return script.NewModel(loaded, endpoint), nil
	}
	return nil, task.Errorf(task.BadConfig, "there is no provider %q", chosen.Provider).WithHint("set llm.provider to anthropic, openai, gemini, azure, bedrock, vertex or script")
}

// newGemini is [gemini.New] as a model, which is nil with an error.
func newGemini(endpoint llm.Endpoint) (llm.Model, error) {
	model, err := gemini.New(endpoint)
	if err != nil {
		return nil, err
	}
	return model, nil
}

// placeOf is where a model of a cloud is, and whether it is one. Tokens are asked for at addresses of
// the clouds, which nobody gives on a page: a transport that holds off a machine's metadata is not
// for them.
func placeOf(chosen config.LLM) (cloud.Place, bool) {
	return cloud.Place{
		Region: chosen.Region, Project: chosen.Project, Deployment: chosen.Deployment, APIVersion: chosen.APIVersion,
		Credentials: chosen.Credentials, CredentialsFile: chosen.CredentialsFile, Profile: chosen.Profile,
		Variable: chosen.Variable,
	}, slices.Contains(config.CloudProviders, chosen.Provider)
}

// connectCloud makes the adapter of the API that is spoken reach the model in a cloud.
func connectCloud(chosen config.LLM, place cloud.Place, endpoint llm.Endpoint) (model llm.Model, err error) {
	reach := map[string]func(cloud.Place, llm.Endpoint) (llm.Endpoint, error){"azure": cloud.Azure, "bedrock": cloud.Bedrock, "vertex": cloud.Vertex}[chosen.Provider]
	if endpoint, err = reach(place, endpoint); err != nil {
		return nil, err
	}
	switch api, _ := llm.Spoken(chosen.Provider, chosen.Model); api {
	case "anthropic":
		model = anthropic.New(endpoint)
	case "gemini":
		model, err = newGemini(endpoint)
	default:
		model, err = openai.New(endpoint, azureAPI(chosen))
	}
	if err != nil {
		return nil, err
	}
	return cloud.Named(chosen.Provider, model), nil
}

// azureAPI is the API that is spoken at Azure. OpenAI's newer models take tools and reasoning
// together by Responses only. Not every dated version of the API has it.
func azureAPI(chosen config.LLM) openai.API {
	switch {
	case chosen.API != "":
		return openai.API(chosen.API)
	case chosen.APIVersion != "":
		return openai.Chat
	}
	return openai.Responses
}

// pricesOf has the prices of long requests too where those of the vendor are used.
func pricesOf(chosen config.LLM) llm.Prices {
	p := chosen.Prices
	prices := llm.Prices{
		Input: llm.MoneyOf(p.Input), Cached: llm.MoneyOf(p.Cached),
		CacheWrite: llm.MoneyOf(p.CacheWrite), Output: llm.MoneyOf(p.Output),
	}
	if long, are := chosen.LongPrices(); are {
		prices.Long = llm.LongPrices{
			Over: long.Over, Input: llm.MoneyOf(long.Input), Cached: llm.MoneyOf(long.Cached),
			CacheWrite: llm.MoneyOf(long.CacheWrite), Output: llm.MoneyOf(long.Output),
		}
	}
	return prices
}

// countSwitches shows in the metrics how often models had to be replaced by the fallback.
func countSwitches(registry *metrics.Registry, outages *llm.Outages) {
	registry.Counter("toryo_llm_fallback_total", "Times that a model of the server, or of the agent in its process, was out and the fallback took over.",
		func() float64 { return float64(outages.Switches()) })
}

// LimitsOf is the budget as the ledger knows it.
func LimitsOf(b config.Budget) llm.Limits {
	return llm.Limits{
		Task: llm.Amount{Tokens: int64(b.TaskTokens), Money: llm.MoneyOf(b.TaskCost)},
		Day:  llm.Amount{Tokens: int64(b.DayTokens), Money: llm.MoneyOf(b.DayCost)},
	}
}
