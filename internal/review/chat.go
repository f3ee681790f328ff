package review

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// holdFor is for how long a turn is held at a time: so long a thread waits for
	// a process of which it is not known whether it has ended.
	holdFor = 20 * time.Second
	// answerWithin bounds the answer to one message.
	answerWithin = 20 * time.Minute
	// storeWithin bounds what has to be written down after a turn was broken off.
	storeWithin = 10 * time.Second
	// firstLook and longestLook bound how often we look whether a thread that
	// another server answers in is free.
	firstLook, longestLook = 50 * time.Millisecond, time.Second
)

// Message is what a person says. Either content or repeat is set.
type Message struct {
	Content string
	Repeat  string // id of a message without an answer
	// Key is a name that a page gives to what it sends, so that it is one message however
	// often it is sent. It may be empty.
	Key string
}

// Ask puts a message into a thread and begins to answer it. It returns when the
// message is stored, which is when all before it were answered. The answer goes on
// without the caller and its context: see [Turn.Follow].
func (s *Service) Ask(ctx context.Context, who, threadID string, said Message) (*Turn, error) {
	thread, record, err := s.thread(ctx, who, threadID)
	if err != nil {
		return nil, err
	}
	if thread.Owner == "" {
		return nil, task.Errorf(task.Forbidden, "this conversation is held on the forge").
			WithHint("reply there under the review, or begin a thread of your own")
	}
	if err := checkMessage(said); err != nil {
		return nil, err
	}
	asked := store.Ask{Content: said.Content, Repeat: said.Repeat}
	if said.Key != "" && said.Repeat == "" {
		asked.Origin = keyOrigin + said.Key
	}
	return s.ask(ctx, thread, record, asked)
}

func checkMessage(said Message) error {
	if said.Repeat == "" && strings.TrimSpace(said.Content) == "" {
		return task.Errorf(task.Invalid, "the message is empty")
	}
	if err := bounded("name of the message", said.Key, maxKey); err != nil {
		return err
	}
	return bounded("message", said.Content, maxMessage)
}

// maxKey is how many bytes the name has that a page gives to a message.
const maxKey = 100

// ask begins a turn and answers it.
func (s *Service) ask(ctx context.Context, thread store.Thread, record store.Review, ask store.Ask) (*Turn, error) {
	material, err := s.material(ctx, record)
	if err != nil {
		return nil, err
	}
	leave, err := s.queues.enter(ctx, thread.ID, s.stop)
	if err != nil {
		return nil, err
	}
	ask.ThreadID, ask.Claim = thread.ID, uuid.NewString()
	begun, err := s.begin(ctx, ask)
	if err != nil {
		leave()
		return nil, err
	}
	turn := newTurn(begun)
	job := &answering{service: s, review: record, material: material, begun: begun, claim: ask.Claim, turn: turn}
	if !s.start(func() { job.run(ctx, leave) }) {
		leave()
		job.fail(ctx, errStopping)
		return nil, errStopping
	}
	return turn, nil
}

// start runs something that Stop waits for, unless the service is stopping.
func (s *Service) start(run func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining != nil {
		return false
	}
	s.answers.Go(run)
	return true
}

// begin waits until no other server answers in the thread.
func (s *Service) begin(ctx context.Context, ask store.Ask) (store.Begun, error) {
	wait := firstLook
	for {
		ask.Now = s.Now()
		ask.Until = ask.Now.Add(holdFor)
		turn, begun, err := s.Store.BeginTurn(ctx, ask)
		if err != nil || begun {
			return turn, err
		}
		if s.Free != nil {
			freed, err := s.Free(ctx)
			if err != nil {
				return store.Begun{}, err
			}
			if freed {
				continue
			}
		}
		timer := time.NewTimer(wait)
		wait = min(2*wait, longestLook)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return store.Begun{}, ctx.Err()
		case <-s.stop:
			timer.Stop()
			return store.Begun{}, errStopping
		}
	}
}

// answering is a turn in the making.
type answering struct {
	service  *Service
	review   store.Review
	material Material
	begun    store.Begun
	claim    string
	turn     *Turn
}

// run answers the turn, leaves the queue of the thread, and then writes summaries that
// are due. It does not end with the context of whoever asked.
func (a *answering) run(ctx context.Context, leave func()) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), answerWithin, errTooSlow)
	defer cancel()
	held, release := a.hold(ctx)
	answer, err := a.answer(held)
	if err == nil {
		err = a.end(held, answer)
	}
	release()
	if err != nil {
		a.fail(held, err)
		leave()
		return
	}
	ours := a.service.underWay.ask(a.begun.Thread.ID, 0) // before anybody can look for it
	leave()
	if ours {
		a.service.summarise(ctx, a.begun.Thread.ID)
	}
}

var errTooSlow = task.Errorf(task.Unavailable, "the answer took longer than %s", answerWithin).WithHint("send the message again")

// hold keeps the turn ours until release is called. Its context ends when the turn
// is lost or the service stops.
func (a *answering) hold(ctx context.Context) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(holdFor / 3)
		defer ticker.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-a.service.stop:
				cancel(errStopping)
				return
			case <-ticker.C:
				err := a.service.Store.HoldTurn(held, a.begun.Message.ID, a.claim, a.service.Now().Add(holdFor))
				if code := task.CodeOf(err); code == task.LeaseLost || code == task.NotFound {
					cancel(err)
				}
			}
		}
	}()
	return held, func() {
		cancel(nil)
		<-done
	}
}

// outcome is what the model answered.
type outcome struct {
	text     string
	note     string // for people, below the text
	public   string // the note as it is said on the forge
	composed Composition
}

// answer asks the model. Where the conversation is too long for it, less and less of
// what was said before is sent.
func (a *answering) answer(ctx context.Context) (outcome, error) {
	model, err := a.service.Model(ForChat)
	if err != nil {
		return outcome{}, err
	}
	for how := whole; ; how = a.tighter(how) {
		composed, err := a.compose(ctx, how)
		if err != nil {
			return outcome{}, err
		}
		if how < shortest && !fits(ctx, model, composed.Request) {
			continue
		}
		response, err := model.Chat(ctx, composed.Request, a.turn.take)
		switch {
		case llm.KindOf(err) == llm.TooLong && how < shortest:
			continue
		case llm.KindOf(err) == llm.TooLong:
			return outcome{}, errors.Join(errNoRoom, err)
		case err != nil:
			return outcome{}, err
		}
		return a.read(response, composed)
	}
}

var errNoRoom = task.Errorf(task.TooLarge, "the review and this message are too long for the model, even without the conversation before it").
	WithHint("send a shorter message, name fewer sections, or use a model with a longer context")

// read takes the answer out of what the model gave. That it was cut off is for people:
// the next turn gives the model its own words and no others.
func (a *answering) read(response llm.Response, composed Composition) (outcome, error) {
	made := outcome{text: strings.TrimSpace(forge.Clean(response.Message.Text())), composed: composed}
	if made.text == "" {
		return outcome{}, task.Errorf(task.Unavailable, "the model answered nothing").WithHint("send the message again")
	}
	var notes, public []string
	if response.Stop == llm.StopMaxTokens {
		cut := messages.Text(composed.Language, "conversation.cut")
		notes, public = append(notes, cut), append(public, cut)
	}
	if response.Standin != nil { // which models there are, and what an account lacks, is not for everybody
		notes = append(notes, response.Standin.Text(composed.Language))
		public = append(public, messages.Text(composed.Language, "conversation.fallback"))
	}
	if len(notes) > 0 {
		made.note, made.public = strings.Join(notes, noteBelow), strings.Join(public, noteBelow)
		a.turn.take(llm.Delta{Text: noteBelow + made.note})
	}
	return made, nil
}

// noteBelow stands between an answer and a note for people.
const noteBelow = "\n\n"

// end stores the answer, with what it cites and the reply on the forge.
func (a *answering) end(ctx context.Context, answer outcome) error {
	cited := CheckCitations(answer.text, a.material.Sections, a.review.HeadCommit)
	composed := answer.composed
	ended := store.Ended{
		MessageID: a.begun.Message.ID, Claim: a.claim, Content: answer.text, Note: answer.note,
		Spoken:                 spokenLanguage(a.begun.Message.Content),
		LastSectionMentionTurn: composed.MentionTurn, LastSectionParagraphNumbers: composed.Mentioned,
	}
	var err error
	if ended.Citations, err = json.Marshal(cited); err != nil {
		return err
	}
	if ended.Sent, err = json.Marshal(composed.Given()); err != nil {
		return err
	}
	if a.begun.Message.Place != "" {
		reply, err := replyTo(a.review.Pull, a.begun.Message, withUnconfirmed(withNote(answer.text, answer.public), cited, composed.Language))
		if err != nil {
			return err
		}
		ended.Writes = []store.Action{reply}
	}
	stored, err := a.service.Store.EndTurn(ctx, ended)
	if err != nil {
		return err
	}
	if len(ended.Writes) > 0 {
		a.service.wake()
	}
	a.turn.finish(stored, nil)
	return nil
}

// withNote is an answer as people are shown it.
func withNote(text, note string) string {
	if note == "" {
		return text
	}
	return text + noteBelow + note
}

// fail marks the message as unanswered: the thread is as it was before.
func (a *answering) fail(ctx context.Context, err error) {
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = cause
	}
	a.service.Log.WarnContext(ctx, "failed to answer a message in a thread", "thread", a.begun.Thread.ID, "error", err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWithin)
	defer cancel()
	failed := a.service.Store.FailTurn(ctx, a.begun.Message.ID, a.claim, causeOf(err))
	if code := task.CodeOf(failed); failed != nil && code != task.LeaseLost && code != task.NotFound {
		a.service.Log.ErrorContext(ctx, "failed to mark a message as unanswered; it expires by itself", "error", failed)
	}
	a.turn.finish(store.Message{}, err)
}

// causeOf is what people are told about an error.
func causeOf(err error) string {
	coded, found := task.AsError(err)
	if !found || coded.Code == task.Internal {
		return "an error in Toryo; the log has the details"
	}
	return coded.Message
}
