package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// ask puts a message into a thread. A script is sent the answer as it comes; a
// plain form waits for it. The answer goes on when the reader goes away.
func (p *Pages) ask(w http.ResponseWriter, r *http.Request, v visit, id string) {
	who := v.user.Login
	message := review.Message{Content: r.PostFormValue("content"), Repeat: r.PostFormValue("repeat"), Key: r.PostFormValue("key")}
	var turn *review.Turn
	err := p.audited(r.Context(), who, "chat.ask", r.URL.Path, func() (err error) {
		turn, err = p.Reviews.Ask(r.Context(), who, id, message)
		return err
	})
	streams := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	switch {
	case task.CodeOf(err) == task.Conflict && message.Key != "" && streams:
		p.showAnswered(w, r, v, id) // the page has lost the connection, and sends it once more
	case err != nil:
		p.fail(w, r, v, err)
	case streams:
		p.streamAnswer(w, r, v, turn)
	default:
		p.awaitAnswer(w, r, turn)
	}
}

// showAnswered leads a page to the answer to what it sends again.
func (p *Pages) showAnswered(w http.ResponseWriter, r *http.Request, v visit, id string) {
	thread, err := p.Reviews.Thread(r.Context(), v.user.Login, id)
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	p.sendEnding(r.Context(), v, newStream(w), threadURL(thread), nil)
}

// askAbout begins a conversation with its first message.
func (p *Pages) askAbout(w http.ResponseWriter, r *http.Request, v visit) {
	if strings.TrimSpace(r.PostFormValue("content")) == "" {
		p.fail(w, r, v, task.Errorf(task.Invalid, "the message is empty"))
		return
	}
	var thread store.Thread
	err := p.audited(r.Context(), v.user.Login, "chat.begin", r.URL.Path, func() (err error) {
		thread, err = p.Reviews.ThreadFor(r.Context(), v.user.Login, r.PathValue("id"), r.PostFormValue("key"))
		return err
	})
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	p.ask(w, r, v, thread.ID)
}

// awaitAnswer waits for the end of a turn. The page of the conversation says how it ended:
// a message without an answer stands in the box again.
func (p *Pages) awaitAnswer(w http.ResponseWriter, r *http.Request, turn *review.Turn) {
	if _, err := turn.Follow(r.Context(), nil); err != nil {
		p.Log.DebugContext(r.Context(), "a message has no answer", "thread", turn.Thread.ID, "error", err)
	}
	http.Redirect(w, r, threadURL(turn.Thread), http.StatusSeeOther)
}

// piece is an event of an answer on its way to a page.
type piece struct {
	Text    string `json:"text,omitempty"`
	Restart bool   `json:"restart,omitempty"`
	HTML    string `json:"html,omitempty"`
	Page    string `json:"page,omitempty"`   // where to go on
	Action  string `json:"action,omitempty"` // where the next message goes
}

// newStream begins an answer of events.
func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	return stream{w, http.NewResponseController(w)}
}

// streamAnswer sends what was asked, the pieces of the answer, and then the answer
// as it is to be shown.
func (p *Pages) streamAnswer(w http.ResponseWriter, r *http.Request, v visit, turn *review.Turn) {
	to := newStream(w)
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
	err := p.sendAsked(ctx, v, to, turn)
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
	p.sendEnding(ctx, v, to, "", err)
}

// sendAsked sends a message as it was stored, and where its conversation is: it may have
// begun with the message.
func (p *Pages) sendAsked(ctx context.Context, v visit, to stream, turn *review.Turn) error {
	var html bytes.Buffer
	if err := messageCard(v, saidCard{Said: review.Said{Message: turn.Asked}, drafted: true, link: sectionAnchor}).Render(ctx, &html); err != nil {
		return err
	}
	return to.sendJSON("asked", piece{HTML: html.String(), Page: threadURL(turn.Thread), Action: "/threads/" + turn.Thread.ID + "/messages"})
}

func (p *Pages) sendMessage(ctx context.Context, v visit, to stream, event string, said review.Said) error {
	var html bytes.Buffer
	if err := messageCard(v, saidCard{Said: said, drafted: true, link: sectionAnchor}).Render(ctx, &html); err != nil {
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
	element      = lazyregexp.New(`<[^>]*>`)
	sectionNamed = lazyregexp.New(`§(\p{Nd}+)`)
	wide         = strings.NewReplacer("０", "0", "１", "1", "２", "2", "３", "3", "４", "4", "５", "5", "６", "6", "７", "7", "８", "8", "９", "9")
)

// answerText is a message with its sections as links. A citation that is not true
// looks so, and others of the same section do not.
func answerText(v visit, card saidCard) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		var plain bytes.Buffer
		if err := markdown(card.Content).Render(ctx, &plain); err != nil {
			return err
		}
		_, err := io.WriteString(w, withLinks(v, plain.String(), statesOf(card.Said, plain.String()), card.link))
		return err
	})
}

// statesOf returns what came of checking the sections that a message names, one after the
// other. The page has the same sections in the same order as the message; where it has not,
// because markup is left out or one stands in code, a section is wrong if every citation of
// it is.
func statesOf(said review.Said, html string) func(number int) review.CitationState {
	marks := review.Marks(said.Content, said.Citations)
	var shown []int
	outsideLinks(html, func(text string) string {
		for _, name := range sectionNamed.FindAllString(text, -1) {
			if number := numberOf(name); number >= 0 {
				shown = append(shown, number)
			}
		}
		return text
	})
	same := slices.EqualFunc(shown, marks, func(number int, mark review.Mark) bool { return number == mark.Section })
	at := -1
	return func(number int) review.CitationState {
		at++
		if same {
			return marks[at].State
		}
		state := review.CitationState("")
		for _, one := range said.Citations {
			if one.Section == number && (state == "" || one.State == review.Confirmed) {
				state = one.State
			}
		}
		return state
	}
}

// numberOf is the number of a section that a text names, or -1.
func numberOf(name string) int {
	number, err := strconv.Atoi(wide.Replace(strings.TrimPrefix(name, "§")))
	if err != nil {
		return -1
	}
	return number
}

// withLinks makes links of sections in text. States is called for each section in order.
func withLinks(v visit, html string, states func(number int) review.CitationState, link func(number int) templ.SafeURL) string {
	return outsideLinks(html, func(piece string) string {
		return sectionNamed.ReplaceAllStringFunc(piece, func(name string) string {
			number := numberOf(name)
			if number < 0 {
				return name
			}
			state, address := states(number), templ.EscapeString(string(link(number)))
			if state == "" || state == review.Confirmed {
				return `<a class="cite" href="` + address + `">` + name + `</a>`
			}
			title := templ.EscapeString(citationText(v, state, number))
			return `<a class="cite unconfirmed" href="` + address + `" title="` + title + `">` + name + `</a>`
		})
	})
}

// citationText is what came of checking a citation. One of a section that does not exist has
// a number, and one of a line has none.
func citationText(v visit, state review.CitationState, section int) string {
	if state == review.Missing && section > 0 {
		return v.t("citation.no_section")
	}
	return v.t("citation." + string(state))
}
