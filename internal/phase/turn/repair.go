package turn

import (
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/tool"
)

var notInName = lazyregexp.New(`[^a-zA-Z0-9_-]+`)

const longestName = 64

// repair makes an answer into one that every provider takes back: each call has an
// ID of its own and a name that a tool could have, there are not too many of
// them, and the text is not too long. The notes are for the model.
func (l *loop) repair(response llm.Response) (llm.Message, []string) {
	var notes []string
	message := llm.Message{Role: llm.Assistant}
	calls, dropped := 0, 0
	for _, part := range response.Message.Parts {
		switch {
		case part.Call != nil:
			if calls == l.Limits.Calls {
				dropped++
				continue
			}
			calls++
			message.Parts = append(message.Parts, llm.CallPart(l.repairCall(*part.Call, calls)))
		case part.Text != "":
			text := tool.Shorten(strings.ToValidUTF8(part.Text, "\uFFFD"), l.Limits.Answer)
			if strings.TrimSpace(text) != "" {
				message.Parts = append(message.Parts, llm.TextPart(text))
			}
		case part.Thinking != nil:
			message.Parts = append(message.Parts, part)
		}
	}
	if dropped > 0 {
		notes = append(notes, fmt.Sprintf("Your answer had %d calls. The first %d were done and the others were not: %d are the most in one answer.",
			calls+dropped, calls, l.Limits.Calls))
	}
	return message, notes
}

func (l *loop) repairCall(call llm.Call, number int) llm.Call {
	call.Arguments = strings.ToValidUTF8(call.Arguments, "\uFFFD")
	call.Name = strings.TrimPrefix(call.Name, "functions.")
	call.Name = strings.Trim(notInName.ReplaceAllString(call.Name, "_"), "_")
	if len(call.Name) > longestName {
		call.Name = call.Name[:longestName]
	}
	if call.Name == "" {
		call.Name = "unnamed"
	}
	id := notInName.ReplaceAllString(call.ID, "_")
	if id == "" || len(id) > longestName || l.used[id] {
		id = fmt.Sprintf("call_%d_%d", l.outcome.Turns, number)
	}
	for extra := 2; l.used[id]; extra++ {
		id = fmt.Sprintf("call_%d_%d_%d", l.outcome.Turns, number, extra)
	}
	l.used[id] = true
	call.ID = id
	return call
}

// redactMessage takes secrets out of what is kept of an answer. The calls that
// are carried out are the original ones.
func (l *loop) redactMessage(message llm.Message) llm.Message {
	if l.Redactor == nil {
		return message
	}
	parts := make([]llm.Part, len(message.Parts))
	for i, part := range message.Parts {
		part.Text = l.Redactor.String(part.Text)
		if part.Call != nil {
			call := *part.Call
			call.Arguments = l.Redactor.String(call.Arguments)
			part.Call = &call
		}
		parts[i] = part
	}
	return llm.Message{Role: message.Role, Parts: parts}
}

func (l *loop) redactResponse(response llm.Response) llm.Response {
	response.Message = l.redactMessage(response.Message)
	return response
}

func (l *loop) redactDone(done tool.Done) tool.Done {
	if l.Redactor == nil {
		return done
	}
	done.Call.Arguments = l.Redactor.String(done.Call.Arguments)
	done.Output.Text = l.Redactor.String(done.Output.Text)
	done.Output.Whole = l.Redactor.String(done.Output.Whole)
	done.Result.Text = l.Redactor.String(done.Result.Text)
	return done
}
