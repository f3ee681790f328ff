package site

import (
	"log/slog"
	"net/http"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/llm/gemini"
	"github.com/toryo-dev/toryo/internal/llm/openai"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/redact/rules"
	"github.com/toryo-dev/toryo/internal/task"
)

// Models makes the models that the configuration names.
type Models struct {
	config   config.Config
	redactor llm.Redactor
	ledger   llm.Ledger // nil if nothing is counted against the budget
	log      *slog.Logger
}

// NewModels makes what models are made with. Nothing is counted without a ledger.
func NewModels(c config.Config, ledger llm.Ledger, log *slog.Logger) (*Models, error) {
	redactor, err := rules.New(c.Redactor())
	if err != nil {
		return nil, err
	}
	return &Models{config: c, redactor: redactor, ledger: ledger, log: log}, nil
}

// Model is the model for what the names say, as in [config.Config.ModelFor], with
// everything that a call to it passes through.
func (m *Models) Model(account llm.Account, names ...string) (llm.Model, error) {
	chosen := m.config.ModelFor(names...)
	adapter, err := Connect(chosen)
	if err != nil {
		return nil, err
	}
	return llm.Wrap(adapter, llm.Layers{
		Retry:     llm.RetryPolicy{Tries: uint(chosen.Retries) + 1},
		TextCalls: !chosen.FunctionCalling,
		Images:    imagesOf(chosen),
		NoKey:     chosen.APIKey == "" && chosen.Provider != "script",
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
	if lacks := chosen.Lacking(); lacks != "" {
		return nil, task.Errorf(task.BadConfig, "the model cannot be asked: %s", lacks).WithHint("%s", doctor.HintForModel(chosen))
	}
	endpoint := llm.Endpoint{
		Model: chosen.Model, BaseURL: chosen.BaseURL, Key: chosen.APIKey.Reveal(),
		MaxTokens: int64(chosen.MaxTokens), ContextLength: int64(chosen.ContextLength),
		Temperature: chosen.Temperature, Prices: pricesOf(chosen.Prices), Silence: chosen.Timeout, Transport: through,
	}
	switch chosen.Provider {
	case "anthropic":
		return anthropic.New(endpoint), nil
	case "openai":
		return openai.New(endpoint, openai.API(chosen.API))
	case "gemini":
		model, err := gemini.New(endpoint)
		if err != nil {
			return nil, err
		}
		return model, nil
	case "script":
		loaded, err := script.Load(chosen.Script)
		if err != nil {
			return nil, err
		}
		return script.NewModel(loaded, endpoint), nil
	}
	return nil, task.Errorf(task.BadConfig, "there is no provider %q", chosen.Provider).WithHint("set llm.provider to anthropic, openai, gemini or script")
}

func pricesOf(p config.Prices) llm.Prices {
	return llm.Prices{
		Input: llm.MoneyOf(p.Input), Cached: llm.MoneyOf(p.Cached),
		CacheWrite: llm.MoneyOf(p.CacheWrite), Output: llm.MoneyOf(p.Output),
	}
}

// LimitsOf is the budget as the ledger knows it.
func LimitsOf(b config.Budget) llm.Limits {
	return llm.Limits{
		Task: llm.Amount{Tokens: int64(b.TaskTokens), Money: llm.MoneyOf(b.TaskCost)},
		Day:  llm.Amount{Tokens: int64(b.DayTokens), Money: llm.MoneyOf(b.DayCost)},
	}
}
