package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// ask puts a message into a thread. A script is sent the answer as it comes; a
// plain form waits for it. The answer goes on when the reader goes away.
func (p *Pages) ask(w http.ResponseWriter, r *http.Request, v visit) {
	id, who := r.PathValue("id"), v.user.Login
	message := review.Message{Content: r.PostFormValue("content"), Repeat: r.PostFormValue("repeat")}
	var turn *review.Turn
	err := p.audited(r.Context(), who, "chat.ask", r.URL.Path, func() (err error) {
		turn, err = p.Reviews.Ask(r.Context(), who, id, message)
		return err
	})
	switch {
	case err != nil:
		p.fail(w, r, v, err)
	case strings.Contains(r.Header.Get("Accept"), "text/event-stream"):
		p.streamAnswer(w, r, v, turn)
	default:
		p.awaitAnswer(w, r, v, turn)
	}
}

func (p *Pages) awaitAnswer(w http.ResponseWriter, r *http.Request, v visit, turn *review.Turn) {
	if _, err := turn.Follow(r.Context(), nil); err != nil {
		p.fail(w, r, v, err)
		return
	}
	thread, err := p.Reviews.Thread(r.Context(), v.user.Login, r.PathValue("id"))
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	http.Redirect(w, r, "/reviews/"+thread.ReviewID+"?thread="+thread.ID+"#chat-form", http.StatusSeeOther)
}

// piece is an event of an answer on its way to a page.
type piece struct {
	Text    string `json:"text,omitempty"`
	Restart bool   `json:"restart,omitempty"`
	HTML    string `json:"html,omitempty"`
}

// streamAnswer sends what was asked, the pieces of the answer, and then the answer
// as it is to be shown.
func (p *Pages) streamAnswer(w http.ResponseWriter, r *http.Request, v visit, turn *review.Turn) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	to := stream{w, http.NewResponseController(w)}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	pieces := make(chan review.Piece)
	type ending struct {
		answer store.Message
		err    error
	}
	ended := make(chan ending, 1)
	go func() { // ends with the turn or with the context
		answer, err := turn.Follow(ctx, func(one review.Piece) {
			select {
			case pieces <- one:
			case <-ctx.Done():
			}
		})
		ended <- ending{answer, err}
	}()
	err := p.sendMessage(ctx, v, to, "asked", review.Said{Message: turn.Asked})
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for err == nil {
		select {
		case one := <-pieces:
			err = to.sendJSON("delta", piece{Text: one.Text, Restart: one.Restart})
		case <-alive.C:
			if _, err = io.WriteString(w, ": alive\n\n"); err == nil {
				err = to.control.Flush()
			}
		case end := <-ended:
			p.endAnswer(ctx, v, to, end.answer, end.err)
			return
		}
	}
}

// endAnswer sends the last event. Who is gone finds the answer on the page.
func (p *Pages) endAnswer(ctx context.Context, v visit, to stream, answer store.Message, err error) {
	var said review.Said
	if err == nil {
		said, err = p.Reviews.Answer(ctx, v.user.Login, answer)
	}
	if err == nil {
		err = p.sendMessage(ctx, v, to, "message", said)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	text := v.t("problem.title")
	if coded, found := task.AsError(err); found && coded.Code != task.Internal {
		text = coded.Message
	}
	if err := to.sendJSON("problem", piece{Text: text}); err != nil {
		p.Log.DebugContext(ctx, "client disconnected", "error", err)
	}
}

func (p *Pages) sendMessage(ctx context.Context, v visit, to stream, event string, said review.Said) error {
	var html bytes.Buffer
	if err := messageCard(v, said).Render(ctx, &html); err != nil {
		return err
	}
	return to.sendJSON(event, piece{HTML: html.String()})
}

func (s stream) sendJSON(event string, data any) error {
	encoded, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return s.send(event, "", string(encoded))
}

var (
	element      = regexp.MustCompile(`<[^>]*>`)
	sectionNamed = regexp.MustCompile(`§(\p{Nd}+)`)
	wide         = strings.NewReplacer("０", "0", "１", "1", "２", "2", "３", "3", "４", "4", "５", "5", "６", "6", "７", "7", "８", "8", "９", "9")
)

// answerText is a message with its sections as links. A citation that is not true
// looks so.
func answerText(v visit, said review.Said) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		var plain bytes.Buffer
		if err := markdown(said.Content).Render(ctx, &plain); err != nil {
			return err
		}
		worst := make(map[int]review.CitationState)
		for _, one := range said.Citations {
			if one.Section > 0 && (worst[one.Section] == "" || worst[one.Section] == review.Confirmed) {
				worst[one.Section] = one.State
			}
		}
		_, err := io.WriteString(w, withLinks(v, plain.String(), worst))
		return err
	})
}

// withLinks makes links of sections in text.
func withLinks(v visit, html string, states map[int]review.CitationState) string {
	return outsideLinks(html, func(piece string) string {
		return sectionNamed.ReplaceAllStringFunc(piece, func(name string) string {
			number, err := strconv.Atoi(wide.Replace(strings.TrimPrefix(name, "§")))
			if err != nil {
				return name
			}
			state := states[number]
			if state == "" || state == review.Confirmed {
				return fmt.Sprintf(`<a class="cite" href="#section-%d">%s</a>`, number, name)
			}
			title := templ.EscapeString(v.t("citation." + string(state)))
			return `<a class="cite unconfirmed" href="#section-` + strconv.Itoa(number) + `" title="` + title + `">` + name + `</a>`
		})
	})
}
