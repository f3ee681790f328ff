package script

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Record is a request that the script was asked.
type Record struct {
	At      time.Time
	Wire    string // "direct", "anthropic", "openai-chat", "openai-responses", "gemini"
	Rule    string // the rule that answered, "" when none did
	Request llm.Request
	// Body is the request as it came over HTTP; Ordered is the part of it that
	// a provider caches, in the order tools, system prompt, messages. Both are
	// empty for a direct request.
	Body    []byte
	Ordered []byte
	Header  map[string]string
}

// Player plays a script and records what it was asked. It may be used by several
// goroutines.
type Player struct {
	script *Script
	now    func() time.Time

	mu      sync.Mutex
	used    map[string][]int // by run, for each rule
	prompts map[string][]string
	records []Record
	calls   int
}

// NewPlayer returns a player at the start of its script.
func NewPlayer(script *Script) *Player {
	return &Player{script: script, now: time.Now, used: map[string][]int{}, prompts: map[string][]string{}}
}

// Records returns every request so far, oldest first.
func (p *Player) Records() []Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Record(nil), p.records...)
}

// played is an answer with everything filled in.
type played struct {
	rule   string
	number int // of the request: clients join answers with the same id
	parts  []llm.Part
	stop   string
	usage  llm.Usage
	plan   Answer // delay, pace, cut, error
}

// id is that of the answer.
func (a *played) id(prefix string) string { return prefix + strconv.Itoa(a.number) }

// play finds the rule for the request, counts it and records the request.
func (p *Player) play(record Record) (played, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	record.At = p.now()
	rule, groups := p.choose(record.Request)
	if rule != nil {
		record.Rule = rule.Name
	}
	p.records = append(p.records, record)
	usage := p.estimate(record)
	if rule == nil {
		return played{}, fmt.Errorf("no rule of the script holds for turn %d in phase %q whose last message is %q",
			turnOf(record.Request), record.Request.Phase, textfmt.Shorten(lastText(record.Request), 200))
	}
	answer := played{rule: rule.Name, number: len(p.records), plan: rule.Answer, usage: usage}
	p.fill(&answer, rule.Answer, record.Request, groups)
	return answer, nil
}

func (p *Player) choose(request llm.Request) (*Rule, []string) {
	used := p.used[request.Run]
	if used == nil {
		used = make([]int, len(p.script.Rules))
		p.used[request.Run] = used
	}
	for i := range p.script.Rules {
		rule := &p.script.Rules[i]
		if rule.Times > 0 && used[i] >= rule.Times {
			continue
		}
		if groups, holds := rule.When.holds(request); holds {
			used[i]++
			return rule, groups
		}
	}
	return nil, nil
}

func (w When) holds(request llm.Request) (groups []string, holds bool) {
	last := lastText(request)
	switch {
	case w.Phase != "" && w.Phase != request.Phase,
		w.System != "" && !strings.Contains(request.System, w.System),
		w.Last != "" && !strings.Contains(last, w.Last),
		w.Turn != 0 && w.Turn != turnOf(request),
		w.Tool != "" && !w.hasResult(request):
		return nil, false
	}
	if w.matches != nil {
		groups = w.matches.FindStringSubmatch(last)
		return groups, groups != nil
	}
	return nil, true
}

func (w When) hasResult(request llm.Request) bool {
	if len(request.Messages) == 0 {
		return false
	}
	for _, result := range request.Messages[len(request.Messages)-1].Results() {
		if result.Name == w.Tool && (w.Failed == nil || *w.Failed == result.Error) {
			return true
		}
	}
	return false
}

func turnOf(request llm.Request) int {
	turn := 1
	for _, message := range request.Messages {
		if message.Role == llm.Assistant {
			turn++
		}
	}
	return turn
}

// lastText is all that the last message says, results included.
func lastText(request llm.Request) string {
	if len(request.Messages) == 0 {
		return ""
	}
	var texts []string
	for _, part := range request.Messages[len(request.Messages)-1].Parts {
		switch {
		case part.Result != nil:
			texts = append(texts, part.Result.Text)
		case part.Text != "":
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (p *Player) fill(answer *played, plan Answer, request llm.Request, groups []string) {
	expand := expander(groups, turnOf(request))
	if plan.Thinking != "" || plan.Redacted {
		answer.parts = append(answer.parts, llm.Part{Thinking: &llm.Thinking{Text: expand(plan.Thinking)}})
	}
	if plan.Text != "" {
		answer.parts = append(answer.parts, llm.TextPart(expand(plan.Text)))
	}
	for _, call := range plan.Calls {
		p.calls++
		id := call.ID
		if id == "" && !call.NoID {
			id = "call_" + strconv.Itoa(p.calls)
		}
		answer.parts = append(answer.parts, llm.CallPart(llm.Call{ID: id, Name: call.Name, Arguments: call.text(expand)}))
	}
	answer.stop = plan.Stop
	if answer.stop == "" {
		answer.stop = stopEnd
		if len(plan.Calls) > 0 {
			answer.stop = stopCalls
		}
	}
	if plan.Usage != nil {
		answer.usage = *plan.Usage
		return
	}
	written, thought := 0, 0
	for _, part := range answer.parts {
		size := llm.Message{Parts: []llm.Part{part}}.Size()
		written += size
		if part.Thinking != nil {
			thought += size
		}
	}
	answer.usage.Output, answer.usage.Reasoning = tokensOf(written), tokensOf(thought)
}

func (c Call) text(expand func(string) string) string {
	if c.Raw != "" {
		return expand(c.Raw)
	}
	if c.Arguments == nil {
		return "{}"
	}
	data, err := json.Marshal(expandAll(c.Arguments, expand))
	if err != nil {
		return "{}" // what came from YAML with text keys always goes into JSON
	}
	return string(data)
}

func expandAll(value any, expand func(string) string) any {
	switch value := value.(type) {
	case string:
		return expand(value)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = expandAll(item, expand)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, item := range value {
			object[key] = expandAll(item, expand)
		}
		return object
	}
	return value
}

// expander fills in ${1}, ${turn} and $$.
func expander(groups []string, turn int) func(string) string {
	pairs := []string{"$$", "$", "${turn}", strconv.Itoa(turn)}
	for i, group := range groups {
		pairs = append(pairs, "${"+strconv.Itoa(i)+"}", group)
	}
	return strings.NewReplacer(pairs...).Replace
}

// scriptRatio is the bytes per token of a model that counts nothing.
const scriptRatio = 4

func tokensOf(bytes int) int64 { return int64((bytes + scriptRatio - 1) / scriptRatio) }

// cachedPrompts is how many requests of a run the cache that is played knows: those of
// vendors keep what was sent for minutes, whatever was sent after it.
const cachedPrompts = 4

// estimate plays the provider's cache: what a request has in common with the
// start of one of the last of its run counts as cached.
func (p *Player) estimate(record Record) llm.Usage {
	prompt := string(record.Ordered)
	if prompt == "" {
		prompt = directPrompt(record.Request)
	}
	known, cached := p.prompts[record.Request.Run], 0
	for _, before := range known {
		cached = max(cached, CommonPrefix(before, prompt))
	}
	p.prompts[record.Request.Run] = append(known[max(0, len(known)+1-cachedPrompts):], prompt)
	return llm.Usage{Input: tokensOf(len(prompt)), Cached: int64(cached / scriptRatio)}
}

func directPrompt(request llm.Request) string {
	data, err := json.Marshal(struct {
		Tools    []llm.Tool
		System   string
		Messages []llm.Message
	}{request.Tools, request.System, request.Messages})
	if err != nil {
		return ""
	}
	return string(data)
}

// CommonPrefix returns how many bytes both texts begin with.
func CommonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
