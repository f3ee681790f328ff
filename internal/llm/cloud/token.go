package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// fetching is how long a request for a token may take.
	fetching = 15 * time.Second
	// largestToken is how much is read of the answer to one, and of a file with one.
	largestToken = 1 << 20
	// early is how long before its end a token is replaced. A call may take longer: the cloud looks
	// at the token when it begins.
	early = 5 * time.Minute
	// longestReason is how much is shown of what a server says about a token that it does not give.
	longestReason = 300
)

// credentialError says that nothing shows the cloud who asks.
type credentialError struct{ error }

func (e *credentialError) Unwrap() error { return e.error }

// kind says whether another try may go better.
func (e *credentialError) kind() llm.Kind {
	if _, final := errors.AsType[*refusedError](e.error); final {
		return llm.Unauthorized
	}
	return llm.Unreachable
}

// refusedError says that asking again does not help.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

func refused(err error) error { return &refusedError{err} }

// kept keeps a value until shortly before its end. Calls at the same time wait for one that
// fetches it.
type kept[T any] struct {
	fetch func(ctx context.Context) (value T, ends time.Time, err error)

	turn  chan struct{} // holds one while somebody looks
	value T
	ends  time.Time
}

func keep[T any](fetch func(ctx context.Context) (T, time.Time, error)) *kept[T] {
	return &kept[T]{fetch: fetch, turn: make(chan struct{}, 1)}
}

func (k *kept[T]) get(ctx context.Context) (T, error) {
	var none T
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	defer func() { <-k.turn }()
	if time.Until(k.ends) > early {
		return k.value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetching)
	defer cancel()
	value, ends, err := k.fetch(ctx)
	if err != nil {
		if time.Until(k.ends) > 0 {
			return k.value, nil // what there is still holds; the next call tries again
		}
		return none, err
	}
	k.value, k.ends = value, ends
	return value, nil
}

// client makes requests for tokens. It follows no redirect: what shows who asks would go along.
func (p Place) client(onMachine bool) *http.Client {
	carrier := p.Transport
	if carrier == nil && onMachine { // a proxy would be told what is for this machine only
		carrier = &http.Transport{Proxy: nil, DisableKeepAlives: true, ResponseHeaderTimeout: fetching}
	}
	if carrier == nil {
		carrier = http.DefaultTransport
	}
	return &http.Client{
		Transport: carrier, Timeout: fetching,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ask makes a request and reads the whole answer.
func ask(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s for credentials: %w", request.URL.Host, unwrapURL(err))
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, largestToken))
	if err != nil {
		return nil, fmt.Errorf("read the credentials of %s: %w", request.URL.Host, err)
	}
	switch {
	case response.StatusCode/100 == 2:
		return body, nil
	case response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%s gives no credentials now (status %d)", request.URL.Host, response.StatusCode)
	}
	return nil, refused(fmt.Errorf("%s gives no credentials (status %d): %s", request.URL.Host, response.StatusCode, reasonIn(body)))
}

// unwrapURL leaves out the address, which may have parameters.
func unwrapURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// reasonIn is what a server says about its refusal, in one of the usual fields.
func reasonIn(body []byte) string {
	var said struct {
		Error       any    `json:"error"`
		Description string `json:"error_description"`
		Message     string `json:"message"`
	}
	text := string(body)
	if json.Unmarshal(body, &said) == nil {
		switch {
		case said.Description != "":
			text = said.Description
		case said.Message != "":
			text = said.Message
		}
	}
	return textfmt.Shorten(textfmt.OneLine(text), longestReason)
}

// tokenAnswer is the answer of an OAuth server.
type tokenAnswer struct {
	Token   string      `json:"access_token"`
	Seconds json.Number `json:"expires_in"` // some servers write a string
}

// readToken reads a token and when it ends.
func readToken(body []byte) (string, time.Time, error) {
	var answer tokenAnswer
	if err := json.Unmarshal(body, &answer); err != nil || answer.Token == "" {
		return "", time.Time{}, refused(errors.New("the answer to the request for a token has none"))
	}
	seconds, err := answer.Seconds.Float64()
	if err != nil || seconds <= 0 {
		seconds = early.Seconds() // it is asked for again with the next call
	}
	return answer.Token, time.Now().Add(time.Duration(min(seconds, 86400) * float64(time.Second))), nil
}

// postForm asks an OAuth server for a token.
func (p Place) postForm(ctx context.Context, address string, form url.Values) (string, time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", time.Time{}, refused(fmt.Errorf("make the request for a token: %w", err))
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body, err := ask(p.client(false), request)
	if err != nil {
		return "", time.Time{}, err
	}
	return readToken(body)
}

// readFile reads a small file with a credential.
func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", refused(err)
	}
	defer func() { _ = file.Close() }() // it is only read
	data, err := io.ReadAll(io.LimitReader(file, largestToken))
	if err != nil {
		return "", refused(err)
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", refused(fmt.Errorf("%s is empty", path))
	}
	return text, nil
}

// fromFile reads a token for each call: whoever writes the file replaces it before the token ends.
func (p Place) fromFile() authorize {
	return bearer(func(context.Context) (string, error) { return readFile(p.CredentialsFile) })
}
