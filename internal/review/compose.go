package review

import (
	"io/fs"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Material is what a conversation is about.
type Material struct {
	Question  string
	Purpose   string // 出題趣旨
	Grading   string // 採点実感
	Judgement judge.Judgement
	Sections  []judge.Section
}

// Composition is a conversation as the model is given it.
type Composition struct {
	Request  llm.Request
	Language task.Language
	Turn     int
	Numbers  []int // of the sections that Specified and Related are about
	// MentionTurn and Mentioned are what the thread remembers of mentions once the
	// turn is answered.
	MentionTurn int
	Mentioned   []int
}

// persistence is for how many turns after a mention its sections are still given.
const persistence = 2

// Compose puts together what the model is given for the input: the context, the
// history or its summaries, and the question, in the language of the thread. Prompts
// replace built-in ones and may be nil. History has a user's message and its answer for
// each turn, in order.
func Compose(prompts fs.FS, material Material, thread store.Thread, history []store.Message, input string) (Composition, error) {
	w, err := newWording(languageOr(thread.Language), prompts)
	if err != nil {
		return Composition{}, err
	}
	return compose(w, material, thread, history, input, whole), nil
}

func compose(w wording, material Material, thread store.Thread, history []store.Message, input string, how extent) Composition {
	c := Composition{
		Language: w.language, Turn: len(history)/2 + 1,
		MentionTurn: thread.LastSectionMentionTurn, Mentioned: thread.LastSectionParagraphNumbers,
	}
	if mentioned := Mentions(input, w.language); len(mentioned) > 0 {
		c.MentionTurn, c.Mentioned = c.Turn, mentioned
	}
	if c.MentionTurn > 0 && c.Turn <= c.MentionTurn+persistence {
		c.Numbers = c.Mentioned
	}
	array := []llm.Message{contextMessage(material, w, c.Numbers, input)}
	array = append(array, w.past(thread, history, how)...)
	array = append(array, llm.UserText(w.asked(input)))
	c.Request = llm.Request{System: w.system, Messages: array, Pinned: 1, PinnedParts: 1, Run: thread.ID}
	return c
}

// past is what was said before: the summaries, the last exchange that they are of, and
// everything after it; or the history as it is while nothing is summarised.
func (w wording) past(thread store.Thread, history []store.Message, how extent) []llm.Message {
	upTo := how.summarised(len(history) / 2)
	thread = w.withExcerpts(how.shortened(thread, upTo), history, upTo)
	var past []llm.Message
	if thread.SummaryUpToTurn > 0 {
		past = append(past, llm.UserText(w.text("conversation.summaries")+"\n"+thread.ConversationSummary))
		history = history[min(2*(thread.SummaryUpToTurn-1), len(history)):]
	}
	for _, message := range history {
		past = append(past, llm.Message{Role: roleOf(message.Role), Parts: []llm.Part{llm.TextPart(how.message(message.Content))}})
	}
	return past
}

func roleOf(role store.MessageRole) llm.Role {
	if role == store.AssistantMessage {
		return llm.Assistant
	}
	return llm.User
}

// contextMessage is the context. Its first part is the same in every turn, so that
// the provider's cache serves it.
func contextMessage(material Material, w wording, numbers []int, input string) llm.Message {
	always := block(w.text("conversation.question"), "question", material.Question) + "\n\n" + block(w.text("conversation.overall"), "review", material.Judgement.Overall)
	var blocks []string
	add := func(heading, source, text string) {
		if text != "" {
			blocks = append(blocks, block(heading, source, text))
		}
	}
	if containsAny(input, purposeWords) {
		add(w.text("conversation.purpose"), "purpose", material.Purpose)
	}
	if containsAny(input, gradingWords) {
		add(w.text("conversation.grading"), "grading impressions", material.Grading)
	}
	if len(numbers) > 0 {
		add(w.text("conversation.specified"), "answer", Specified(material.Sections, numbers))
		add(w.text("conversation.related"), "review", related(material.Judgement, numbers))
	}
	message := llm.Message{Role: llm.User, Parts: []llm.Part{llm.TextPart(always)}}
	if len(blocks) > 0 {
		message.Parts = append(message.Parts, llm.TextPart("\n"+strings.Join(blocks, "\n\n")))
	}
	return message
}

// block is a heading and a text from outside: data, whatever it says.
func block(heading, source, text string) string {
	return heading + "\n" + llm.Quote(llm.Origin{Source: source}, text)
}

func containsAny(input string, words []string) bool {
	input = strings.ToLower(input)
	for _, word := range words {
		if strings.Contains(input, word) {
			return true
		}
	}
	return false
}

// related is the items about the sections, one on each line.
func related(j judge.Judgement, numbers []int) string {
	var lines []string
	for _, item := range j.Related(numbers) {
		lines = append(lines, item.Field+": "+string(item.JSON))
	}
	return strings.Join(lines, "\n")
}
