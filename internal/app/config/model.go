package config

import (
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/redact"
)

// The names in llm_overrides that are neither phases nor roles: the models that
// write summaries, talk about reviews and review documents.
const (
	SummaryModel = "summary"
	ChatModel    = "chat"
	ReviewModel  = "review"
)

// LLM is the section "llm".
type LLM struct {
	Provider        string        `key:"provider" enum:"anthropic openai gemini azure bedrock vertex script" usual:"true" about:"Whose API is spoken; openai also serves compatible servers, azure, bedrock and vertex are the clouds of Microsoft, Amazon and Google, script is the scripted model of tests and the demo. Without it that of the model's vendor, if the model is known."`
	Model           string        `key:"model" format:"word" usual:"true" about:"Name of the model, as the provider spells it."`
	API             string        `key:"api" enum:"chat responses" about:"Which API of openai is spoken; without it responses, and chat at a base_url, since that is what other servers have."`
	BaseURL         string        `key:"base_url" format:"url" example:"http://127.0.0.1:11434/v1" about:"Address of the API, when it is not the provider's own."`
	Script          string        `key:"script" format:"file" example:"scripts/demo.yaml" about:"File that the scripted model follows; toryo script check looks at it."`
	APIKey          redact.Secret `key:"api_key" about:"Key for the API."`
	APIKeyFile      string        `key:"api_key_file" example:"/run/secrets/llm-api-key" about:"File that holds the key and nothing else."`
	MaxTokens       int           `key:"max_tokens" default:"0" min:"0" max:"10000000" about:"Longest answer of the model, in tokens, with what it thinks. 0 means as known of the model, 32768 at most; 8192 at most at a base_url that is not the vendor's, or if nothing is known."`
	ContextLength   int           `key:"context_length" default:"0" min:"0" max:"100000000" about:"How many tokens the model can take in, its answer included. 0 means as known of the model, 200000 at most, and up to where requests cost more; 128000 at most at a base_url that is not the vendor's, or if nothing is known."`
	Reasoning       string        `key:"reasoning" format:"reasoning" example:"medium" about:"How much the model thinks before it answers: off, low, medium, high or the most tokens for it. Without it the model's own default."`
	Temperature     *float64      `key:"temperature" min:"0" max:"2" example:"0.2" about:"Sampling temperature; without it the model's own is used."`
	FunctionCalling bool          `key:"function_calling" default:"true" about:"Whether the model takes tools by its API; if not, it is asked to write its calls as JSON."`
	Images          string        `key:"images" enum:"auto on off" default:"auto" about:"Whether the model is shown the images of issues and comments; auto means if it is known to see images."`
	Timeout         time.Duration `key:"timeout" default:"5m" min:"1s" max:"24h" about:"For how long the model may be silent; an answer that keeps coming may take longer."`
	Retries         int           `key:"retries" default:"5" min:"0" max:"100" about:"How often a call is made again after an error that may pass."`
	Prices          Prices        `key:"prices" about:"What a million tokens cost, in your currency. If none is set they are as known of the model, in US dollars, where its vendor serves it; else unknown."`
	Cloud
	Fallback  ModelOverride   `key:"fallback" about:"A second model, which answers while the model of a call is down or out of quota, whichever model that is. What is not set is as in llm; another provider or base_url needs a key of its own."`
	Variables *CloudVariables // that hold credentials; see ModelFor

	VendorPrices bool // Prices are those of the vendor, because none are set; see Known
	OwnPrices    bool // prices are set, if only to 0
}

// Prices is the section "llm.prices".
type Prices struct {
	Input      float64 `key:"input" default:"0" min:"0" max:"1000000" about:"Tokens that are sent."`
	Cached     float64 `key:"cached" default:"0" min:"0" max:"1000000" about:"Sent tokens that the provider had in its cache; 0 means as input."`
	CacheWrite float64 `key:"cache_write" default:"0" min:"0" max:"1000000" about:"Sent tokens that the provider put into its cache; 0 means as input."`
	Output     float64 `key:"output" default:"0" min:"0" max:"1000000" about:"Tokens that are answered."`
}

// ModelOverride is a model that differs from that of the section "llm". What is
// not set is as in "llm".
type ModelOverride struct {
	Provider        string         `key:"provider" enum:"anthropic openai gemini azure bedrock vertex script" usual:"true" example:"openai" about:"Whose API is spoken."`
	Model           string         `key:"model" format:"word" usual:"true" example:"gpt-6-luna" about:"Name of the model; another provider needs one."`
	API             string         `key:"api" enum:"chat responses" about:"Which API of openai is spoken."`
	Script          string         `key:"script" format:"file" example:"scripts/summary.yaml" about:"File that the scripted model follows."`
	BaseURL         string         `key:"base_url" format:"url" usual:"true" example:"http://127.0.0.1:11434/v1" about:"Address of the API; with another provider and none here, it is the provider's own."`
	APIKey          redact.Secret  `key:"api_key" about:"Key for the API; that of llm is used only with the same provider and base_url."`
	APIKeyFile      string         `key:"api_key_file" example:"/run/secrets/summary-api-key" about:"File that holds the key and nothing else."`
	MaxTokens       *int           `key:"max_tokens" min:"1" max:"10000000" example:"4096" about:"Longest answer of the model, in tokens."`
	ContextLength   *int           `key:"context_length" min:"1024" max:"100000000" example:"32000" about:"How many tokens the model can take in, its answer included."`
	Reasoning       string         `key:"reasoning" format:"reasoning" example:"high" about:"How much the model thinks before it answers: off, low, medium, high or the most tokens for it."`
	Temperature     *float64       `key:"temperature" min:"0" max:"2" example:"0.2" about:"Sampling temperature."`
	FunctionCalling *bool          `key:"function_calling" example:"false" about:"Whether the model takes tools by its API."`
	Images          string         `key:"images" enum:"auto on off" about:"Whether the model is shown the images of issues and comments."`
	Prices          PricesOverride `key:"prices" about:"What a million tokens cost; the prices of llm are used only with the same model."`
	Cloud
}

// PricesOverride is the section "prices" of a [ModelOverride].
type PricesOverride struct {
	Input      *float64 `key:"input" min:"0" max:"1000000" about:"Tokens that are sent."`
	Cached     *float64 `key:"cached" min:"0" max:"1000000" about:"Sent tokens that the provider had in its cache."`
	CacheWrite *float64 `key:"cache_write" min:"0" max:"1000000" about:"Sent tokens that the provider put into its cache."`
	Output     *float64 `key:"output" min:"0" max:"1000000" about:"Tokens that are answered."`
}

// Lacking is what this model lacks before it can be asked, or nothing.
func (l LLM) Lacking() string {
	switch {
	case l.Provider == "":
		return "no provider is set"
	case l.Provider == "script" && l.Script == "":
		return "no script is set"
	case l.Provider != "script" && l.Model == "":
		return "no model is set"
	case l.Provider != "script" && l.APIKey == "" && l.BaseURL == "" && !l.isCloud():
		return "no key is set"
	}
	return l.lackingInCloud()
}

// ModelFor is the model for what the names say: roles, phases or one of the
// names above.
// A later name goes over an earlier one, so that a phase of a role is
// ModelFor(role, phase). A name that nothing is configured for changes nothing.
func (c Config) ModelFor(names ...string) LLM {
	llm := c.LLM
	var all []ModelOverride
	for _, name := range names {
		if role, found := c.Roles[name]; found {
			all = append(all, role.ModelOverride)
		}
		if override, found := c.LLMOverrides[name]; found {
			all = append(all, override)
		}
	}
	for at, override := range all {
		llm = c.put(override, llm, all[:at])
	}
	return c.withVendorKey(llm.Known())
}

// put puts an override over a model that has those before it. One that leads back to the provider and
// the address of llm, or to its model, begins with what is set for these; limits that an override
// before it has set stay, as far as the model takes them.
func (c Config) put(o ModelOverride, llm LLM, before []ModelOverride) LLM {
	next := o.over(llm)
	if next.isAt(c.LLM) && !llm.isAt(c.LLM) {
		llm.Provider, llm.BaseURL, llm.APIKey, llm.APIKeyFile, llm.API, llm.Cloud = c.LLM.Provider, c.LLM.BaseURL, c.LLM.APIKey, c.LLM.APIKeyFile, c.LLM.API, c.LLM.Cloud
		llm.Model, llm.Prices, llm.VendorPrices, llm.OwnPrices = "", Prices{}, false, false
		next = o.over(llm)
	}
	if next.isAt(c.LLM) && next.Model == c.LLM.Model && llm.Model != c.LLM.Model {
		llm.Model, llm.Deployment = c.LLM.Model, c.LLM.Deployment
		llm.Prices, llm.VendorPrices, llm.OwnPrices = c.LLM.Prices, c.LLM.VendorPrices, c.LLM.OwnPrices
		llm.MaxTokens, llm.ContextLength = next.MaxTokens, next.ContextLength
		if !slices.ContainsFunc(before, func(o ModelOverride) bool { return o.MaxTokens != nil }) {
			llm.MaxTokens = c.LLM.MaxTokens
		}
		if !slices.ContainsFunc(before, func(o ModelOverride) bool { return o.ContextLength != nil }) {
			llm.ContextLength = c.LLM.ContextLength
		}
		next = o.over(llm)
	}
	return next
}

// isAt tests whether two models are asked at one server.
func (l LLM) isAt(other LLM) bool { return l.Provider == other.Provider && l.BaseURL == other.BaseURL }

// over puts the override over a model. A key never goes to another server than
// the one that it was given for, neither an address nor the name of a model to
// another provider, and no prices to another model. Limits are carried over as far as
// the other model takes them.
func (o ModelOverride) over(llm LLM) LLM {
	before := llm
	if o.Provider != "" && o.Provider != llm.Provider {
		llm.Provider, llm.Model, llm.BaseURL, llm.APIKey, llm.APIKeyFile = o.Provider, "", "", "", ""
		llm.API, llm.Script, llm.Prices, llm.VendorPrices, llm.Cloud = "", "", Prices{}, false, Cloud{}
		llm.OwnPrices = false
	}
	if o.BaseURL != "" && o.BaseURL != llm.BaseURL {
		llm.BaseURL, llm.APIKey, llm.APIKeyFile, llm.Credentials, llm.CredentialsFile = o.BaseURL, "", "", "", ""
	}
	if o.Model != "" && o.Model != llm.Model {
		llm.Model, llm.Prices, llm.VendorPrices, llm.OwnPrices, llm.Deployment = o.Model, Prices{}, false, false, ""
		llm = llm.within(before)
	}
	llm.Cloud = o.Cloud.over(llm.Cloud)
	if o.API != "" {
		llm.API = o.API
	}
	if o.Images != "" {
		llm.Images = o.Images
	}
	if o.Script != "" {
		llm.Script = o.Script
	}
	if o.APIKey != "" || o.APIKeyFile != "" {
		llm.APIKey, llm.APIKeyFile = o.APIKey, o.APIKeyFile
	}
	if o.Reasoning != "" {
		llm.Reasoning = o.Reasoning
	}
	if o.Temperature != nil {
		llm.Temperature = o.Temperature
	}
	overwrite(&llm.MaxTokens, o.MaxTokens)
	overwrite(&llm.ContextLength, o.ContextLength)
	overwrite(&llm.FunctionCalling, o.FunctionCalling)
	if o.Prices != (PricesOverride{}) {
		llm.VendorPrices, llm.OwnPrices = false, true
	}
	overwrite(&llm.Prices.Input, o.Prices.Input)
	overwrite(&llm.Prices.Cached, o.Prices.Cached)
	overwrite(&llm.Prices.CacheWrite, o.Prices.CacheWrite)
	overwrite(&llm.Prices.Output, o.Prices.Output)
	return llm
}

// overwrite sets a value if there is another.
func overwrite[T any](value, other *T) {
	if other != nil {
		*value = *other
	}
}

// ContextStorage is the section "context_storage".
type ContextStorage struct {
	CompressionThreshold float64 `key:"compression_threshold" default:"0.7" min:"0.1" max:"0.95" about:"Share of context_length at which the older part of a conversation is shortened."`
	KeepRecentMessages   int     `key:"keep_recent_messages" default:"5" min:"1" max:"1000" about:"How many of the last messages are then left as they are."`
}

// Budget is the section "budget".
type Budget struct {
	TaskTokens int     `key:"task_tokens" default:"0" min:"0" max:"1000000000000" about:"Tokens for one task, sent and answered."`
	TaskCost   float64 `key:"task_cost" default:"0" min:"0" max:"1000000000" about:"Cost of one task, in the currency of the prices."`
	DayTokens  int     `key:"day_tokens" default:"0" min:"0" max:"1000000000000" about:"Tokens for all tasks of a day together, in UTC."`
	DayCost    float64 `key:"day_cost" default:"0" min:"0" max:"1000000000" about:"Cost of all tasks of a day together."`
}

// MCPServer is an entry of the section "mcp_servers".
type MCPServer struct {
	Command     Command       `key:"command" usual:"true" example:"[tickets-mcp, --read-only]" about:"Program to start, as a list of words; it is talked to over its standard input and output."`
	URL         string        `key:"url" format:"url" example:"https://mcp.example.com/mcp" about:"Address of a server that speaks streamable HTTP, in place of a command."`
	Environment []string      `key:"environment" format:"variable" example:"[TICKETS_URL]" about:"Names of environment variables of Toryo that the program is given; it gets no others but the search path."`
	Timeout     time.Duration `key:"timeout" default:"60s" min:"1s" max:"24h" about:"Longest wait for its start and for each call."`
	InSandbox   bool          `key:"in_sandbox" default:"true" about:"Whether the program runs in the sandbox; if not, it runs beside the agent."`
}
