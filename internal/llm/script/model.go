package script

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/llm"
)

const provider = "script"

// Model is a script as a model in this process.
type Model struct {
	*Player
	endpoint llm.Endpoint
}

var _ llm.Model = (*Model)(nil)

// NewModel returns a model that plays the script. Of the endpoint it uses the
// limits and prices.
func NewModel(script *Script, endpoint llm.Endpoint) *Model {
	endpoint.Model = script.Model
	return &Model{Player: NewPlayer(script), endpoint: endpoint}
}

// Info implements [llm.Model].
func (m *Model) Info() llm.Info {
	info := m.endpoint.Info(provider)
	info.Scripted = true
	return info
}

// CountTokens implements [llm.Model].
func (m *Model) CountTokens(_ context.Context, request llm.Request) (int64, error) {
	return tokensOf(len(directPrompt(request))), nil
}

// Chat implements [llm.Model].
func (m *Model) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	if err := check(request); err != nil {
		return llm.Response{}, llm.StatusError(provider, http.StatusBadRequest, nil, "", err.Error(), err)
	}
	answer, err := m.play(Record{Wire: "direct", Request: request})
	if err != nil {
		return llm.Response{}, llm.StatusError(provider, http.StatusBadRequest, nil, "", err.Error(), err)
	}
	if err := lifecycle.Sleep(ctx, answer.plan.Delay); err != nil {
		return llm.Response{}, err
	}
	if failure := answer.plan.Error; failure != nil && failure.After == 0 {
		return llm.Response{}, failure.asError()
	}
	for i, piece := range pieces(answer.parts) {
		if err := m.breaks(answer, i); err != nil {
			return llm.Response{}, err
		}
		if err := lifecycle.Sleep(ctx, answer.plan.Pace); err != nil {
			return llm.Response{}, err
		}
		sink.Send(piece.delta())
	}
	if answer.plan.Cut > 0 || answer.plan.Error != nil {
		return llm.Response{}, m.breaks(answer, max(answer.plan.Cut, 1<<30))
	}
	if answer.stop == stopRefusal {
		return llm.Response{}, &llm.Error{Kind: llm.Refused, Provider: provider, Detail: "the script refuses", Usage: answer.usage}
	}
	return llm.Response{
		Message: llm.Message{Role: llm.Assistant, Parts: answer.parts},
		Stop:    stopReasons[answer.stop], Usage: answer.usage,
		Cost: m.endpoint.Prices.Cost(answer.usage), Model: m.endpoint.Model, Scripted: true,
	}, nil
}

var stopReasons = map[string]llm.StopReason{
	stopEnd: llm.StopEnd, stopCalls: llm.StopCalls, stopMaxTokens: llm.StopMaxTokens,
}

// breaks is the error with which the answer breaks off after so many pieces.
func (m *Model) breaks(answer played, sent int) error {
	if cut := answer.plan.Cut; cut > 0 && sent >= cut {
		return llm.NewError(llm.CutStream, provider, errors.New("the script cuts the answer"))
	}
	if failure := answer.plan.Error; failure != nil && failure.After > 0 && sent >= failure.After {
		return failure.asError()
	}
	return nil
}

func (f Failure) asError() *llm.Error {
	return llm.StatusError(provider, f.status(), f.header(), f.Type, f.Message, errors.New(f.Message))
}

func (f Failure) status() int {
	if f.Status == 0 {
		return http.StatusOK
	}
	return f.Status
}

func (f Failure) header() http.Header {
	header := http.Header{}
	if f.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatFloat(f.RetryAfter.Seconds(), 'f', -1, 64))
	}
	return header
}

// piece is a piece of a streamed answer: of the part with the given number.
type piece struct {
	part     int
	first    bool // of its part
	last     bool // of its part
	text     string
	thinking string
	call     *llm.Call
	fragment string // of the call's arguments
}

func (p piece) delta() llm.Delta {
	switch {
	case p.call != nil && p.first:
		return llm.Delta{CallName: p.call.Name}
	case p.thinking != "":
		return llm.Delta{Thinking: p.thinking}
	}
	return llm.Delta{Text: p.text}
}

// pieceSize is the number of characters of a piece; long texts come in larger
// ones, so that a million characters do not make a hundred thousand events.
const pieceSize = 20

// pieces cuts an answer as a provider streams it. An empty answer has none.
func pieces(parts []llm.Part) []piece {
	var all []piece
	for number, part := range parts {
		whole := part.Text
		switch {
		case part.Call != nil:
			whole = part.Call.Arguments
		case part.Thinking != nil:
			whole = part.Thinking.Text
		}
		cuts := cut(whole)
		for i, text := range cuts {
			p := piece{part: number, first: i == 0, last: i == len(cuts)-1}
			switch {
			case part.Call != nil:
				p.call, p.fragment = part.Call, text
			case part.Thinking != nil:
				p.thinking = text
			default:
				p.text = text
			}
			all = append(all, p)
		}
	}
	return all
}

func cut(text string) []string {
	size := max(pieceSize, len(text)/200)
	var cuts []string
	runes := []rune(text)
	for len(runes) > size {
		cuts = append(cuts, string(runes[:size]))
		runes = runes[size:]
	}
	return append(cuts, string(runes))
}
