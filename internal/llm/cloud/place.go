package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

// Place is where a model is and how its cloud is told who asks.
type Place struct {
	Region, Project, Deployment, APIVersion string

	Credentials     string // "", "key", "environment", "file", "token_file", "workload", "metadata"
	CredentialsFile string
	Profile         string
	// Variable reads an environment variable that was found when the configuration was read.
	Variable func(name string) string
	// Transport carries requests for tokens; nil means the standard one, and for addresses of the
	// machine's own network one without a proxy.
	Transport http.RoundTripper
}

// authorize puts what shows who asks into a request whose body is given.
type authorize func(ctx context.Context, request *http.Request, body []byte) error

// bearer shows a token.
func bearer(token func(ctx context.Context) (string, error)) authorize {
	return func(ctx context.Context, request *http.Request, _ []byte) error {
		text, err := token(ctx)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+text)
		return nil
	}
}

func static(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// transport changes a request of an adapter to what the cloud wants, and the answer back.
type transport struct {
	next      http.RoundTripper
	rewrite   func(request *http.Request, body []byte) ([]byte, error)
	authorize authorize
	answer    func(*http.Response) // may be nil
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(given *http.Request) (*http.Response, error) {
	var body []byte
	if given.Body != nil {
		read, err := io.ReadAll(given.Body)
		_ = given.Body.Close() // it was read
		if err != nil {
			return nil, err
		}
		body = read
	}
	request := given.Clone(given.Context())
	body, err := t.rewrite(request, body)
	if errors.Is(err, errNotThere) {
		return notThere(given), nil
	}
	if err != nil {
		return nil, err
	}
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	request.Host = request.URL.Host
	if err := t.authorize(given.Context(), request, body); err != nil {
		return nil, &credentialError{err}
	}
	response, err := t.next.RoundTrip(request)
	if err == nil && t.answer != nil {
		t.answer(response)
	}
	return response, err
}

// errNotThere says that the cloud has no such call.
var errNotThere = errors.New("the cloud has no such call")

// notThere is the answer to a call that the cloud does not have.
func notThere(request *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: http.NoBody, Request: request,
	}
}

// through puts a cloud between an adapter and the network. The key of the endpoint is no longer the
// adapter's to send.
func through(endpoint llm.Endpoint, t *transport) llm.Endpoint {
	if t.next = endpoint.Transport; t.next == nil {
		t.next = http.DefaultTransport
	}
	endpoint.Key, endpoint.Transport = "", t
	return endpoint
}

// object is a JSON object of which few fields are looked at.
type object map[string]json.RawMessage

func readObject(body []byte) (object, error) {
	var read object
	if err := json.Unmarshal(body, &read); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return read, nil
}

func (o object) text(name string) string {
	var text string
	_ = json.Unmarshal(o[name], &text) // anything else is no text
	return text
}

// encode writes an object. Its keys are sorted, so that the same request has the same bytes.
func (o object) encode() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(o); err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	return text.Bytes(), nil
}

// cacheTheEnd marks the last block of the last message for the cache, in place of the field of the
// whole request, which the clouds do not know.
func (o object) cacheTheEnd() error {
	mark, wanted := o["cache_control"]
	delete(o, "cache_control")
	if !wanted {
		return nil
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(o["messages"], &messages); err != nil || len(messages) == 0 {
		return err
	}
	last, err := readObject(messages[len(messages)-1])
	if err != nil {
		return err
	}
	var blocks []object
	if err := json.Unmarshal(last["content"], &blocks); err != nil || len(blocks) == 0 {
		return err
	}
	end := blocks[len(blocks)-1]
	if kind := end.text("type"); kind == "thinking" || kind == "redacted_thinking" {
		return nil
	}
	end["cache_control"] = mark
	if last["content"], err = json.Marshal(blocks); err == nil {
		messages[len(messages)-1], err = last.encode()
	}
	if err == nil {
		o["messages"], err = json.Marshal(messages)
	}
	return err
}

// missing is the error for something that the configuration lacks.
func missing(what string) error {
	return task.Errorf(task.BadConfig, "%s", what).WithHint("docs/clouds.md has an example")
}

// isKey says that the key of the configuration shows who asks.
func (p Place) isKey() bool { return p.Credentials == "" || p.Credentials == "key" }

// unknownCredentials is the error for a kind of credentials that a cloud does not have.
func (p Place) unknownCredentials(provider string) error {
	return missing(fmt.Sprintf("%s has no credentials of the kind %q", provider, p.Credentials))
}

// variable is the value of an environment variable, which has to be there.
func (p Place) variable(name string) (string, error) {
	if value := p.optional(name); value != "" {
		return value, nil
	}
	return "", refused(fmt.Errorf("the variable %s is not set", name))
}

func (p Place) optional(name string) string {
	if p.Variable == nil {
		return ""
	}
	return strings.TrimSpace(p.Variable(name))
}
