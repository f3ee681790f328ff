package llm

import "log/slog"

// Settings is the llm section of the configuration. A role or a phase may
// override any of it.
type Settings struct {
	Provider        string // anthropic, openai, gemini, script
	Model           string
	API             string // openai only: responses or chat
	BaseURL         string
	Script          string // script only: the script file
	MaxTokens       int64
	ContextLength   int64
	Temperature     *float64
	FunctionCalling *bool // nil means true
	Prices          *Prices
}

// Override returns the settings with everything that other sets put over them.
// Another provider brings its own address and model, another model its own limits
// and prices: those of the old one do not carry over.
func (s Settings) Override(other Settings) Settings {
	if other.Provider != "" && other.Provider != s.Provider {
		s.Provider, s.Model, s.API, s.BaseURL = other.Provider, "", "", ""
		s.Script, s.ContextLength, s.Prices, s.FunctionCalling = "", 0, nil, nil
	}
	if other.Model != "" && other.Model != s.Model {
		s.Model, s.ContextLength, s.Prices = other.Model, 0, nil
	}
	setIf(&s.API, other.API)
	setIf(&s.BaseURL, other.BaseURL)
	setIf(&s.Script, other.Script)
	setIf(&s.MaxTokens, other.MaxTokens)
	setIf(&s.ContextLength, other.ContextLength)
	setIf(&s.Temperature, other.Temperature)
	setIf(&s.FunctionCalling, other.FunctionCalling)
	setIf(&s.Prices, other.Prices)
	return s
}

func setIf[T comparable](target *T, value T) {
	var zero T
	if value != zero {
		*target = value
	}
}

// Endpoint is the settings as an adapter wants them, with the provider's key.
func (s Settings) Endpoint(key string) Endpoint {
	endpoint := Endpoint{
		Model: s.Model, BaseURL: s.BaseURL, Key: key, MaxTokens: s.MaxTokens,
		ContextLength: s.ContextLength, Temperature: s.Temperature, Silence: DefaultSilence,
	}
	if s.Prices != nil {
		endpoint.Prices = *s.Prices
	}
	return endpoint
}

// Layers is what [Wrap] puts around an adapter. What is not set is left out, but
// the retry layer is always there.
type Layers struct {
	Retry     RetryPolicy
	TextCalls bool // the model has no tool calls of its own
	Ledger    Ledger
	Account   Account
	Redactor  Redactor
	Logger    *slog.Logger
}

// Wrap puts the layers around an adapter: secrets are taken out first, each try
// is admitted by the budget for itself, and the text protocol is closest to the
// model.
func Wrap(model Model, layers Layers) Model {
	logger := layers.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if layers.TextCalls {
		model = TextCalls(model)
	}
	if layers.Ledger != nil {
		model = Budgeted(model, layers.Ledger, layers.Account, logger)
	}
	model = Retrying(model, layers.Retry, logger)
	if layers.Redactor != nil {
		model = Redacting(model, layers.Redactor)
	}
	return model
}
