package gemini

import "github.com/toryo-dev/toryo/internal/llm"

// answer is what has come of a streamed answer.
type answer struct {
	maker   string
	begun   bool
	model   string
	parts   []llm.Part
	finish  string
	blocked string
	usage   llm.Usage
}

func (a *answer) take(chunk chunk, sink llm.Sink) {
	a.begun = true
	if chunk.ModelVersion != "" {
		a.model = chunk.ModelVersion
	}
	if usage := chunk.UsageMetadata; usage != nil {
		a.usage = llm.Usage{
			Input:  usage.PromptTokenCount + usage.ToolUsePromptTokenCount,
			Cached: usage.CachedContentTokenCount,
			Output: usage.CandidatesTokenCount + usage.ThoughtsTokenCount, Reasoning: usage.ThoughtsTokenCount,
		}
	}
	if feedback := chunk.PromptFeedback; feedback != nil && feedback.BlockReason != "" {
		a.blocked = "the prompt was blocked: " + feedback.BlockReason + " " + feedback.BlockReasonMessage
	}
	for _, candidate := range chunk.Candidates {
		if candidate.FinishReason != "" {
			a.finish = candidate.FinishReason
			a.setBlocked(candidate)
		}
		for _, part := range candidate.Content.Parts {
			a.add(part, sink)
		}
	}
}

func (a *answer) setBlocked(candidate candidate) {
	switch candidate.FinishReason {
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE":
		a.blocked = "the answer was blocked: " + candidate.FinishReason + " " + candidate.FinishMessage
	}
}

func (a *answer) add(part part, sink llm.Sink) {
	switch {
	case part.FunctionCall != nil:
		arguments := part.FunctionCall.Args
		if len(arguments) == 0 {
			arguments = []byte("{}")
		}
		call := llm.Call{ID: part.FunctionCall.ID, Name: part.FunctionCall.Name, Arguments: string(arguments)}
		if len(part.ThoughtSignature) > 0 {
			call.Signature, call.SignedBy = part.ThoughtSignature, a.maker
		}
		a.parts = append(a.parts, llm.CallPart(call))
		sink.Send(llm.Delta{CallName: part.FunctionCall.Name})
		return
	case part.Thought:
		a.addThinking(part.Text, nil)
		sink.Send(llm.Delta{Thinking: part.Text})
	case part.Text != "":
		if last := len(a.parts) - 1; last >= 0 && a.parts[last].Text != "" {
			a.parts[last].Text += part.Text
		} else {
			a.parts = append(a.parts, llm.TextPart(part.Text))
		}
		sink.Send(llm.Delta{Text: part.Text})
	}
	if len(part.ThoughtSignature) > 0 {
		a.addThinking("", part.ThoughtSignature)
	}
}

func (a *answer) addThinking(text string, data []byte) {
	if last := len(a.parts) - 1; last >= 0 && a.parts[last].Thinking != nil && data == nil {
		a.parts[last].Thinking.Text += text
		return
	}
	a.parts = append(a.parts, llm.Part{Thinking: &llm.Thinking{Maker: a.maker, Text: text, Data: data}})
}

// stopReason also looks at the calls: the API says STOP for those too.
func (a *answer) stopReason() llm.StopReason {
	switch {
	case a.finish == finishMaxTokens:
		return llm.StopMaxTokens
	case len(llm.Message{Parts: a.parts}.Calls()) > 0:
		return llm.StopCalls
	case a.finish == finishStop:
		return llm.StopEnd
	}
	return llm.StopOther
}
