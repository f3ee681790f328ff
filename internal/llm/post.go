package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// longestErrorBody is how much is read of an answer that is not a success, and
// longestAnswer of one that is, whole or in events.
const (
	longestErrorBody = 64 << 10
	longestAnswer    = 64 << 20
)

// HTTPError is an HTTP answer that is not a success.
type HTTPError struct {
	Status int
	Body   []byte // the beginning of what the server says
}

// Error says what the server answered.
func (f *HTTPError) Error() string {
	return fmt.Sprintf("%s: %s", http.StatusText(f.Status), f.Body)
}

// Post sends a request in JSON and returns the answer to it, which the caller
// closes. An answer that is not a success is a [*HTTPError].
func Post(ctx context.Context, client *http.Client, address string, headers map[string]string, request any) (*http.Response, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // no browser reads it, and code has many such characters
	if err := encoder.Encode(request); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, address, &body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	post.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		post.Header.Set(name, value)
	}
	response, err := client.Do(post)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }() // what is needed of it was read
	said, err := io.ReadAll(io.LimitReader(response.Body, longestErrorBody))
	if err != nil && len(said) == 0 {
		said = []byte(err.Error())
	}
	return nil, &HTTPError{Status: response.StatusCode, Body: said}
}

// PostForJSON sends a request in JSON and reads the whole answer into answer.
func PostForJSON(ctx context.Context, client *http.Client, address string, headers map[string]string, request, answer any) error {
	response, err := Post(ctx, client, address, headers, request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return &UnreadableError{Text: beginning(body), Err: err}
	}
	return nil
}

// boundedReader fails when more comes than an answer may have.
type boundedReader struct {
	from io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &UnreadableError{Err: errAnswerTooLong}
	}
	return n, err
}

// beginning is what is kept of a text that cannot be read.
func beginning(text []byte) string { return string(text[:min(len(text), longestErrorBody)]) }

// PostForEvents sends a request in JSON and calls take with each event of the
// stream that is the answer, until take returns an error.
func PostForEvents(ctx context.Context, client *http.Client, address string, headers map[string]string, request any, take func(Event) error) error {
	response, err := Post(ctx, client, address, headers, request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read or given up
	for event, err := range Events(&boundedReader{from: response.Body, left: longestAnswer}) {
		if err != nil {
			return err
		}
		if err := take(event); err != nil {
			return err
		}
	}
	return nil
}
