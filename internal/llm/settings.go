package llm

import (
	"log/slog"
	"net/url"

	"github.com/toryo-dev/toryo/internal/task"
)

// Settings is the llm section of the configuration. A role or a phase may
// override any of it.
type Settings struct {
	Provider          string   `yaml:"provider"` // anthropic, openai, gemini, script
	Model             string   `yaml:"model"`
	API               string   `yaml:"api"` // openai only: responses or chat
	BaseURL           string   `yaml:"base_url"`
	APIKeyFile        string   `yaml:"api_key_file"`
	APIKeyEnvironment string   `yaml:"api_key_environment"`
	Script            string   `yaml:"script"` // script only: the script file
	MaxTokens         int64    `yaml:"max_tokens"`
	ContextLength     int64    `yaml:"context_length"`
	Temperature       *float64 `yaml:"temperature"`
	FunctionCalling   *bool    `yaml:"function_calling"`
	Prices            *Prices  `yaml:"prices"`
}

// Providers lists the providers that a configuration may name.
var Providers = []string{"anthropic", "openai", "gemini", "script"}

// Override returns the settings with everything that other sets put over them.
// Another provider brings its own address, key and model: those of the old one
// do not carry over.
func (s Settings) Override(other Settings) Settings {
	if other.Provider != "" && other.Provider != s.Provider {
		s.Provider, s.Model, s.API, s.BaseURL = other.Provider, "", "", ""
		s.APIKeyFile, s.APIKeyEnvironment, s.Script = "", "", ""
		s.ContextLength, s.Prices, s.FunctionCalling = 0, nil, nil
	}
	if other.Model != "" && other.Model != s.Model {
		s.Model, s.ContextLength, s.Prices = other.Model, 0, nil
	}
	setIf(&s.API, other.API)
	setIf(&s.BaseURL, other.BaseURL)
	setIf(&s.APIKeyFile, other.APIKeyFile)
	setIf(&s.APIKeyEnvironment, other.APIKeyEnvironment)
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

// Validate says what is wrong with the settings, every problem with its key.
func (s Settings) Validate() []error {
	var problems []error
	wrong := func(key, format string, args ...any) {
		problem := task.Errorf(task.BadConfig, "llm."+key+": "+format, args...)
		problems = append(problems, problem)
	}
	switch s.Provider {
	case "anthropic", "openai", "gemini":
		if s.Model == "" {
			wrong("model", "is missing")
		}
	case "script":
		if s.Script == "" && s.BaseURL == "" {
			wrong("script", "is missing: it names the script file")
		}
	default:
		wrong("provider", "%q is none of anthropic, openai, gemini, script", s.Provider)
	}
	if s.API != "" && (s.Provider != "openai" || s.API != "chat" && s.API != "responses") {
		wrong("api", "%q: it is chat or responses, and for openai only", s.API)
	}
	if address, err := url.Parse(s.BaseURL); s.BaseURL != "" && (err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https") {
		wrong("base_url", "%q is not an http address", s.BaseURL)
	}
	if s.APIKeyFile != "" && s.APIKeyEnvironment != "" {
		wrong("api_key_file", "and llm.api_key_environment are both set")
	}
	if s.MaxTokens < 0 {
		wrong("max_tokens", "is negative")
	}
	if s.ContextLength < 0 || s.ContextLength > 0 && s.ContextLength <= s.MaxTokens {
		wrong("context_length", "%d leaves no room beside max_tokens %d", s.ContextLength, s.MaxTokens)
	}
	if s.Temperature != nil && (*s.Temperature < 0 || *s.Temperature > 2) {
		wrong("temperature", "%g is not between 0 and 2", *s.Temperature)
	}
	return problems
}

// Endpoint is the settings as an adapter wants them, with the key that was read
// from the file or the environment.
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
