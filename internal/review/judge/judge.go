package judge

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/prompt"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed prompts/*.md
var embedded embed.FS

const (
	toolName = "submit_review"
	// defaultTries is how often a model may hand in a judgement that cannot be
	// used.
	defaultTries = 3
)

// Judge asks a model for judgements.
type Judge struct {
	Model llm.Model
	// Tries is how often the model is asked for a judgement that can be used; 0
	// means 3. Calls that fail are tried again by the model's own layers.
	Tries int
	// Prompts has files that replace the built-in prompts of the same names; it may be
	// nil.
	Prompts fs.FS
	// Run and Phase are told to a scripted model.
	Run   string
	Phase task.Phase
	Log   *slog.Logger // may be nil
}

// Judged is a judgement that was validated.
type Judged struct {
	JSON     json.RawMessage // in the form of the schema
	Usage    llm.Usage
	Cost     llm.Money
	Scripted bool
	Standin  *llm.Standin // another model judged than the one that is configured, if so
	form     form
}

// UnusableError says what is wrong with the last answer of a model that has given none that can be
// used.
type UnusableError struct{ Problem error }

// Error implements error.
func (e UnusableError) Error() string { return e.Problem.Error() }

// Unwrap returns the problem.
func (e UnusableError) Unwrap() error { return e.Problem }

// Judge asks for the judgement of a paper. The error is that of the model, or
// Unavailable if no answer of it can be used.
func (j Judge) Judge(ctx context.Context, paper Paper) (Judged, error) {
	prompts, err := readPrompts(j.Prompts)
	if err != nil {
		return Judged{}, err
	}
	request := j.request(prompts, paper)
	var judged Judged
	tries := j.Tries
	if tries == 0 {
		tries = defaultTries
	}
	var problem error
	for range tries {
		response, err := j.Model.Chat(ctx, request, nil)
		if err != nil {
			return Judged{}, fmt.Errorf("ask for a judgement: %w", err)
		}
		judged.Usage = judged.Usage.Add(response.Usage)
		judged.Cost += response.Cost
		judged.Scripted, judged.Standin = response.Scripted, response.Standin
		judged.form, problem = read(response, paper)
		if problem == nil {
			judged.JSON, err = json.Marshal(judged.form)
			return judged, err
		}
		if j.Log != nil {
			j.Log.WarnContext(ctx, "a review result is invalid", "error", problem)
		}
		complaint := prompt.Fill(prompts.retry, map[string]string{"problem": problem.Error()})
		request.Messages = append(request.Messages, response.Message, answerTo(response.Message, complaint))
	}
	return Judged{}, task.Wrap(task.Unavailable, UnusableError{problem}, "the model gave no judgement that can be used").
		WithHint("try again, or use another model")
}

// prompts are those of a judgement.
type prompts struct{ review, pull, retry, tool string }

func readPrompts(replaced fs.FS) (read prompts, err error) {
	for _, one := range []struct {
		name string
		into *string
	}{
		{"review.md", &read.review}, {"review_pull.md", &read.pull}, {"review_retry.md", &read.retry}, {"review_tool.md", &read.tool},
	} {
		if *one.into, err = prompt.Read(embedded, replaced, one.name); err != nil {
			return prompts{}, err
		}
	}
	return read, nil
}

func (j Judge) request(prompts prompts, paper Paper) llm.Request {
	pull := ""
	if paper.Hunks != nil {
		pull = prompts.pull + "\n"
	}
	system := prompt.Fill(prompts.review, map[string]string{"tool": toolName, "pull": pull, "language": paper.Language.Name()}) +
		"\n\n" + llm.UntrustedRule
	if paper.Instructions != "" {
		system += "\n" + paper.Instructions
	}
	var answer strings.Builder
	if len(paper.Cut) > 0 {
		answer.WriteString(messages.Text(paper.Language, "judge.cut", strings.Join(paper.Cut, ", ")) + "\n\n")
	}
	for _, section := range paper.Sections {
		answer.WriteString(llm.QuoteSection(section.Number, section.Text) + "\n\n")
	}
	parts := []llm.Part{llm.TextPart(llm.Quote(llm.Origin{Source: "question"}, paper.Question))}
	if paper.Notes != "" {
		parts = append(parts, llm.TextPart(llm.Pinned("review_notes", paper.Notes)))
	}
	return llm.Request{
		System:   system,
		Tools:    []llm.Tool{{Name: toolName, Description: prompts.tool, Schema: []byte(schemaText)}},
		Messages: []llm.Message{{Role: llm.User, Parts: append(parts, llm.TextPart(llm.Quote(llm.Origin{Source: "answer"}, answer.String())))}},
		Pinned:   1, Run: j.Run, Phase: j.Phase,
	}
}

// answerTo answers a judgement that cannot be used: every call of it, or its text.
func answerTo(said llm.Message, text string) llm.Message {
	message := llm.Message{Role: llm.User}
	for _, call := range said.Calls() {
		message.Parts = append(message.Parts, llm.ResultPart(llm.Result{CallID: call.ID, Name: call.Name, Text: text, Error: true}))
	}
	if len(message.Parts) == 0 {
		message.Parts = []llm.Part{llm.TextPart(text)}
	}
	return message
}

// read takes the judgement out of an answer: the arguments of the call, or an
// object in the text.
func read(response llm.Response, paper Paper) (form, error) {
	if response.Stop == llm.StopMaxTokens {
		return form{}, errors.New("it was cut off because it is too long")
	}
	for _, call := range response.Message.Calls() {
		if call.Name == toolName {
			return readForm(call.Arguments, paper)
		}
	}
	text := response.Message.Text()
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from {
		return form{}, errors.New("there is no JSON object in it")
	}
	return readForm(text[from:to+1], paper)
}
