package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// hesitant is a model that answers a message with the word "wait" in it when it is let.
type hesitant struct {
	model http.Handler
	asked chan struct{} // is sent to when it is asked such a message
	let   chan struct{} // is closed to let it answer
	once  sync.Once
}

func newHesitant(t testing.TB) (*hesitant, string) {
	t.Helper()
	parsed, err := script.Parse("chat", []byte("rules:\n  - answer: {text: 'Because of §2.'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	h := &hesitant{model: script.NewServer(parsed), asked: make(chan struct{}, 10), let: make(chan struct{})}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	t.Cleanup(h.goOn)
	return h, web.URL
}

func (h *hesitant) goOn() { h.once.Do(func() { close(h.let) }) }

func (h *hesitant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if bytes.Contains(body, []byte("wait")) {
		h.asked <- struct{}{}
		select {
		case <-h.let:
		case <-r.Context().Done():
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.model.ServeHTTP(w, r)
}

// chatPlace is a place with a review that alice can talk about.
type chatPlace struct {
	place
	review string // its id
	token  string // hers
	files  string
}

func newChatPlace(t testing.TB, driver, model string) chatPlace {
	t.Helper()
	p := chatPlace{place: newPlace(t, driver), files: t.TempDir()}
	for name, text := range map[string]string{
		"question.txt": "What is a contract?", "answer.txt": "$$[1]\nOne.\n$$[2]\nTwo.\n", "review.json": `{"overall_review": "Good."}`,
	} {
		if err := os.WriteFile(filepath.Join(p.files, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.environ = append(p.environ, "TORYO_LLM_PROVIDER=anthropic", "TORYO_LLM_MODEL=chat", "TORYO_LLM_BASE_URL="+model, "TORYO_LLM_API_KEY=none", "TORYO_LANGUAGE=en")
	p.review = strings.TrimSpace(p.output(t, "review", "import", "--as", "alice", "--question", filepath.Join(p.files, "question.txt"),
		"--answer", filepath.Join(p.files, "answer.txt"), "--review", filepath.Join(p.files, "review.json")))
	p.token = strings.TrimSpace(p.output(t, "token", "create", "--role", "operator", "--name", "alice"))
	return p
}

// post sends JSON to a server as alice, and takes the answer in the form that is given.
func (p chatPlace) post(ctx context.Context, to process, path, accept string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", accept)
	return new(http.Client).Do(request)
}

// thread begins a conversation.
func (p chatPlace) thread(t testing.TB, on process) string {
	t.Helper()
	answer, err := p.post(t.Context(), on, "/v1/threads", "application/json", map[string]string{"review_id": p.review})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var made wire.Thread
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || made.ID == "" {
		t.Fatalf("the thread is %+v, %v", made, err)
	}
	return made.ID
}

// send sends a message and returns the answer, or the error of the server.
func (p chatPlace) send(ctx context.Context, on process, thread, text string) (wire.Message, error) {
	answer, err := p.post(ctx, on, "/v1/threads/"+thread+"/messages", "application/json", map[string]string{"content": text})
	if err != nil {
		return wire.Message{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return wire.Message{}, err
	}
	if answer.StatusCode != http.StatusOK {
		return wire.Message{}, errors.New(string(body))
	}
	var said wire.Message
	err = json.Unmarshal(body, &said)
	return said, err
}

// holdLonger makes what is held in the database be held for a day longer: whoever waits
// until that is over waits in vain.
func (p chatPlace) holdLonger(t testing.TB) {
	t.Helper()
	_, raw := p.database(t)
	changed, err := raw.ExecContext(t.Context(), `UPDATE messages SET held_until = held_until + 86400000000 WHERE state = 'answering'`)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := changed.RowsAffected(); rows != 1 || err != nil {
		t.Fatalf("%d messages are being answered, %v", rows, err)
	}
}

func (p process) kill(t testing.TB) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // it was killed
}

// A conversation whose server, or whose command, was killed in the middle of an answer
// goes on at once when it is started again.
func TestChatAfterAKill(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"sqlite", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			model, url := newHesitant(t)
			p := newChatPlace(t, driver, url)
			first := p.start(t, "serve")
			thread := p.thread(t, first)
			go func() { _, _ = p.send(t.Context(), first, thread, "wait") }() // it is cut off
			<-model.asked
			first.kill(t)
			p.holdLonger(t)

			second := p.start(t, "serve")
			answer, err := p.send(t.Context(), second, thread, "Why?")
			if err != nil || !strings.Contains(answer.Content, "Because") || answer.Turn != 1 {
				t.Fatalf("the answer is %+v, %v", answer, err)
			}

			// The same with a command beside the server.
			command := p.command(t, "chat", "--as", "alice", p.review, "wait")
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			<-model.asked
			if err := command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = command.Wait() // it was killed
			p.holdLonger(t)
			if answer, err = p.send(t.Context(), second, thread, "And?"); err != nil || answer.Turn != 2 {
				t.Errorf("the answer is %+v, %v", answer, err)
			}
			second.stop(t)
		})
	}
}

// What a server that lives is answering stays its own while another one with the same
// database is killed and starts again.
func TestChatOfAnotherServer(t *testing.T) {
	t.Parallel()
	model, url := newHesitant(t)
	p := newChatPlace(t, "postgres", url)
	living := p.start(t, "serve")
	other := p
	other.data = filepath.Join(t.TempDir(), "data")
	dying := other.start(t, "serve")
	thread := p.thread(t, living)
	type said struct {
		wire.Message
		err error
	}
	slow, quick := make(chan said, 1), make(chan said, 1)
	go func() {
		answer, err := p.send(t.Context(), living, thread, "wait")
		slow <- said{answer, err}
	}()
	<-model.asked
	dying.kill(t)
	again := other.start(t, "serve")
	go func() {
		answer, err := other.send(t.Context(), again, thread, "Why?")
		quick <- said{answer, err}
	}()
	model.goOn()
	if answer := <-slow; answer.err != nil || answer.Turn != 1 {
		t.Errorf("the first answer is %+v", answer)
	}
	if answer := <-quick; answer.err != nil || answer.Turn != 2 {
		t.Errorf("the second answer is %+v", answer)
	}
	living.stop(t)
	again.stop(t)
}

// A server that is told to stop in the middle of an answer says so to whoever waits for
// it, in the stream and without one, and so does the command line.
func TestStopInTheMiddleOfAChat(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "up"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			model, url := newHesitant(t)
			p := newChatPlace(t, "sqlite", url)
			server := p.start(t, command)
			streamed, whole := p.thread(t, server), p.thread(t, server)
			stream, err := p.post(t.Context(), server, "/v1/threads/"+streamed+"/messages", "text/event-stream", map[string]string{"content": "wait"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stream.Body.Close() }()
			refused := make(chan error, 1)
			go func() {
				_, err := p.send(t.Context(), server, whole, "wait")
				refused <- err
			}()
			<-model.asked
			<-model.asked
			server.stop(t)
			text, err := io.ReadAll(stream.Body)
			if err != nil || !strings.Contains(string(text), "event: problem") || !strings.Contains(string(text), "the server is stopping") {
				t.Errorf("the stream ends with %v: %s", err, text)
			}
			if err := <-refused; err == nil || !strings.Contains(err.Error(), `"interrupted"`) || !strings.Contains(err.Error(), "the server is stopping") {
				t.Errorf("who waits without a stream is told %v", err)
			}
		})
	}
	t.Run("chat", func(t *testing.T) {
		t.Parallel()
		model, url := newHesitant(t)
		p := newChatPlace(t, "sqlite", url)
		var told strings.Builder
		command := p.command(t, "chat", "--as", "alice", p.review, "wait")
		command.Stderr = &told
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		<-model.asked
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		ended, _ := errors.AsType[*exec.ExitError](command.Wait())
		if ended == nil || ended.ExitCode() != task.Interrupted.Info().Exit || !strings.Contains(told.String(), "interrupted") {
			t.Errorf("it ends with %v and says %s", ended, told.String())
		}
		// Nothing is left that the next message would wait for.
		if said := p.output(t, "chat", "--as", "alice", p.review, "Why?"); !strings.Contains(said, "Because") {
			t.Errorf("the answer is %s", said)
		}
	})
}
