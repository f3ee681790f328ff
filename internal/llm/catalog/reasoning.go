package catalog

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/toryo-dev/toryo/internal/llm"
)

// Use is how a model is used.
type Use struct {
	Provider  string // of the configuration
	Model     string
	BaseURL   string // "" for the provider's own
	MaxTokens int64  // of an answer
}

// The settings of reasoning besides a number of tokens. None is none of them.
const (
	Off    = "off"
	Low    = "low"
	Medium = "medium"
	High   = "high"
)

// Reasoning is how a setting is asked for: one of the words above, or a number of tokens.
// The note is for people, and says how it differs from what they set; it is empty if it
// does not. Without a setting the model does as it does by itself.
func (u Use) Reasoning(setting string) (asked llm.Reasoning, note string) {
	model, known := Find(u.Model)
	api, _ := llm.Spoken(u.Provider, u.Model)
	control := guess(api, setting)
	if known {
		control = u.controlOf(model, api)
	}
	switch {
	case setting == "", control.Way == "" && setting == Off:
	case control.Way == "":
		note = "the model does not reason, so nothing is asked for"
	case control.Way == Always:
		note = "the model always reasons, and takes no word for how much"
	case setting == Off:
		asked, note = control.off(api)
	default:
		asked, note = control.on(setting, u.MaxTokens)
	}
	asked.Returned = control.Returned
	return asked, note
}

var (
	words = []string{Low, Medium, High}
	// common is what servers for the models of others take.
	common = Reasoning{Way: Effort, Levels: words, Off: "none"}
	// manual is Anthropic's older way, which servers that speak its API know.
	manual = Reasoning{Way: Budget, Min: 1024, Off: "disabled"}
)

// controlOf is the control of a known model where it is used. Another server than the
// vendor's own is asked in the way that most have. Azure has OpenAI's models as OpenAI has
// them; those of others it serves as most servers do.
func (u Use) controlOf(model Model, api string) Reasoning {
	control := model.Reasoning
	if control.Way == "" || control.Way == Always {
		return control
	}
	other := control
	own := model.ServedBy(u.BaseURL) || u.Provider == "azure" && model.ServedBy("") && model.Provider() == api
	switch {
	case api == "openai" && !own:
		other = common
	case api == "anthropic" && control.Way != Budget && control.Way != Adaptive:
		other = manual
	}
	other.Returned = control.Returned
	return other
}

// guess is the control of a model that is not known: the newest way of the API that takes
// such a setting.
func guess(api, setting string) Reasoning {
	_, err := strconv.Atoi(setting)
	number := err == nil
	switch {
	case api == "anthropic" && number:
		return manual
	case api == "anthropic":
		return Reasoning{Way: Adaptive, Levels: words, Off: "disabled"}
	case api == "gemini" && (number || setting == Off):
		return Reasoning{Way: Budget, Off: "disabled"}
	case api == "script":
		return Reasoning{}
	}
	return common
}

// off switches reasoning off, or asks for as little as can be.
func (r Reasoning) off(api string) (llm.Reasoning, string) {
	switch {
	case r.Off == Omit:
		return llm.Reasoning{}, ""
	case r.Off == "" && r.Way == Budget:
		least := max(r.Min, 1)
		return llm.Reasoning{Budget: least, MinBudget: r.Min}, fmt.Sprintf("reasoning of this model cannot be switched off; it gets the least, %d tokens", least)
	case r.Off == "":
		return r.byWord(r.Levels[0]), fmt.Sprintf("reasoning of this model cannot be switched off; it gets the least, %s", r.Levels[0])
	case r.Off == "none":
		return llm.Reasoning{Effort: "none"}, ""
	case r.Way == Budget && api != "anthropic":
		return llm.Reasoning{Budget: llm.NoBudget}, ""
	}
	return llm.Reasoning{Type: r.Off}, ""
}

// on asks for as much reasoning as is set.
func (r Reasoning) on(setting string, maxTokens int64) (llm.Reasoning, string) {
	tokens, err := strconv.ParseInt(setting, 10, 64)
	number := err == nil
	switch {
	case r.Way == Switch:
		return llm.Reasoning{Type: "enabled"}, ""
	case r.Way == Budget && !number:
		return llm.Reasoning{Budget: r.within(shareOf(setting, maxTokens)), MinBudget: r.Min}, ""
	case r.Way == Budget:
		asked := llm.Reasoning{Budget: r.within(tokens), MinBudget: r.Min}
		if asked.Budget != tokens {
			return asked, fmt.Sprintf("the model takes no budget of %d tokens; %d are used", tokens, asked.Budget)
		}
		return asked, ""
	}
	wanted := setting
	if number {
		wanted = levelOf(tokens)
	}
	level := r.nearest(wanted)
	switch {
	case number:
		return r.byWord(level), fmt.Sprintf("the model takes a word and no number of tokens; %s is used", level)
	case level != wanted:
		return r.byWord(level), fmt.Sprintf("the model has no level %s; %s is used", wanted, level)
	}
	return r.byWord(level), ""
}

func (r Reasoning) byWord(level string) llm.Reasoning {
	if r.Way == Adaptive {
		return llm.Reasoning{Type: "adaptive", Effort: level}
	}
	return llm.Reasoning{Effort: level}
}

// within brings a budget into the range that the model takes.
func (r Reasoning) within(tokens int64) int64 {
	if r.Max > 0 {
		tokens = min(tokens, r.Max)
	}
	return max(tokens, r.Min, 1)
}

// shareOf is the part of the longest answer that a level may take.
func shareOf(level string, maxTokens int64) int64 {
	switch level {
	case Low:
		return maxTokens / 5
	case Medium:
		return maxTokens / 2
	}
	return maxTokens * 4 / 5
}

// levelOf is the level that comes close to a number of tokens.
func levelOf(tokens int64) string {
	switch {
	case tokens <= 4096:
		return Low
	case tokens <= 16_384:
		return Medium
	}
	return High
}

var levels = []string{"minimal", Low, Medium, High, "xhigh", "max"}

// nearest is the level that the model has: the same, else the next above, else the most.
func (r Reasoning) nearest(wanted string) string {
	for _, level := range r.Levels {
		if slices.Index(levels, level) >= slices.Index(levels, wanted) {
			return level
		}
	}
	return r.Levels[len(r.Levels)-1]
}
