package catalog

import (
	_ "embed"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// Model is what is known of a model.
type Model struct {
	Name    string   `json:"name"`
	Vendor  string   `json:"vendor"`
	Aliases []string `json:"aliases,omitempty"` // other names of the same model
	// Open says that the vendor gives the weights away and does not serve the model
	// itself at the address that its other models have.
	Open bool `json:"open,omitempty"`

	Context      int64 `json:"context"`                 // tokens of input and answer together
	LongestInput int64 `json:"longest_input,omitempty"` // tokens; 0 if only Context limits it
	Answer       int64 `json:"answer"`                  // tokens of the longest answer

	Prices
	Long *LongPrices `json:"long,omitempty"` // nil if every request has the same prices

	Tools  bool `json:"tools"`
	Images bool `json:"images"`
	// FixedTemperature says that the vendor refuses a temperature.
	FixedTemperature bool      `json:"fixed_temperature,omitempty"`
	Reasoning        Reasoning `json:"reasoning,omitzero"`

	Date   string `json:"date"`   // of what the source says
	Source string `json:"source"` // address of the page
	// Note says what of the row is from elsewhere, or assumed.
	Note string `json:"note,omitempty"`
}

// Prices is what a million tokens cost at the vendor's own address, in US dollars. A
// price that is not known is zero.
type Prices struct {
	Input      float64 `json:"input,omitempty"`
	Cached     float64 `json:"cached,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
	Output     float64 `json:"output,omitempty"`
}

// LongPrices are the prices of a request whose input has more tokens than Over.
type LongPrices struct {
	Over int64 `json:"over"`
	Prices
}

// Way is how the reasoning of a model is asked for.
type Way string

// The ways. A model without one does not reason.
const (
	Effort   Way = "effort"   // by a word for how much
	Budget   Way = "budget"   // by the number of tokens that it may take
	Adaptive Way = "adaptive" // by a word, and the model decides when; Anthropic's newer way
	Switch   Way = "switch"   // on or off, and nothing in between
	Always   Way = "always"   // not at all: it always reasons
)

// Reasoning is what a model takes as its control of reasoning.
type Reasoning struct {
	Way    Way      `json:"way,omitempty"`
	Levels []string `json:"levels,omitempty"` // the words, from least to most
	Min    int64    `json:"min,omitempty"`    // the least budget
	Max    int64    `json:"max,omitempty"`    // the largest budget; 0 if only the answer limits it
	// Off is the word that switches it off, [Omit] if it is off when nothing is asked
	// for, or nothing if it cannot be switched off.
	Off string `json:"off,omitempty"`
	// Returned is the field in which the model's servers insist on getting back what it
	// thought.
	Returned string `json:"returned,omitempty"`
}

// Omit is the [Reasoning.Off] of a model that only reasons when it is asked to.
const Omit = "omit"

type vendor struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider"` // as the configuration names whose API is spoken
	Hosts    []string `json:"hosts"`    // where its prices are valid
}

type table struct {
	Vendors []vendor `json:"vendors"`
	Models  []Model  `json:"models"`
}

//go:embed models.json
var file []byte

// read reads the file once. A file that cannot be read is a mistake in this package,
// which its test finds.
var read = sync.OnceValue(func() table {
	var all table
	if err := json.Unmarshal(file, &all); err != nil {
		panic("models.json: " + err.Error())
	}
	return all
})

// All returns all models, in the order of the file.
func All() []Model { return slices.Clone(read().Models) }

// Find returns the model of this name. It may have a path before it, as servers for
// many vendors write it, the prefix of a cloud, and a date or "latest" behind it.
func Find(name string) (Model, bool) {
	for _, form := range forms(name) {
		for _, model := range read().Models {
			if model.Name == form || slices.Contains(model.Aliases, form) {
				return model, true
			}
		}
	}
	return Model{}, false
}

// FindOwn is [Find] for a name by which the vendor itself, or any server for open models,
// knows the model. A name that only a cloud or a server for many vendors has says nothing
// about where the model is.
func FindOwn(name string) (Model, bool) {
	model, found := Find(name)
	whole := strings.ToLower(strings.TrimSpace(name))
	if !found || model.Name == whole || slices.Contains(model.Aliases, whole) {
		return model, found
	}
	last := whole[strings.LastIndex(whole, "/")+1:]
	if cloud.MatchString(last) || versioned.MatchString(last) || !model.Open && last != strings.TrimPrefix(whole, "models/") {
		return Model{}, false
	}
	return model, true
}

var (
	// cloud is what Amazon writes before the name of a model: region and vendor.
	cloud = lazyregexp.New(`^(?:(?:us|us-gov|eu|apac|jp|au|global)\.)?(?:anthropic|openai|deepseek|mistral|meta|qwen)\.`)
	// dated is what follows a name: a date, a version of a cloud, or "latest".
	dated = lazyregexp.New(`(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d|-latest|@default)?(?:-v\d+(?::\d+)?)?$`)
	// versioned is what only clouds write behind a name.
	versioned = lazyregexp.New(`@|-v\d+(?::\d+)?$`)
)

// forms are the spellings under which a name is looked for, the whole first.
func forms(name string) []string {
	whole := strings.ToLower(strings.TrimSpace(name))
	last := whole[strings.LastIndex(whole, "/")+1:]
	bare := cloud.ReplaceAllString(last, "")
	all := []string{whole, last, bare, dated.ReplaceAllString(bare, "")}
	return slices.Compact(all)
}

// Provider is the provider of the configuration whose API the vendor speaks.
func (m Model) Provider() string {
	if m.Open {
		return "openai" // the API that servers for open models have
	}
	return m.vendor().Provider
}

// ServedBy reports whether the base URL, or none, is the vendor's own address for this
// model. At any other address its prices are not known.
func (m Model) ServedBy(baseURL string) bool {
	if m.Open {
		return false
	}
	if baseURL == "" {
		return slices.Contains([]string{"anthropic", "openai", "google"}, m.Vendor)
	}
	at, err := url.Parse(baseURL)
	return err == nil && slices.Contains(m.vendor().Hosts, strings.ToLower(at.Hostname()))
}

func (m Model) vendor() vendor {
	for _, v := range read().Vendors {
		if v.Name == m.Vendor {
			return v
		}
	}
	return vendor{}
}
