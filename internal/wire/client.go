package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// maxAnswer is the most that the client reads of an answer: a server that sends
// without end must not fill the memory of an agent.
const maxAnswer = 64 << 20

// Client speaks to a Toryo server. It may be used by many goroutines.
type Client struct {
	Server string // for example http://127.0.0.1:8750
	Token  string
	// MachineUser is who runs the command, where the token is that of a server on this machine;
	// else it is empty.
	MachineUser string
	HTTP        *http.Client
}

// MachineUserHeader names the user of the machine who runs a command.
const MachineUserHeader = "X-Toryo-Machine-User"

// Me asks who the token belongs to.
func (c *Client) Me(ctx context.Context) (Me, error) {
	var me Me
	err := c.get(ctx, "/v1/me", &me)
	return me, err
}

// Task asks for one task.
func (c *Client) Task(ctx context.Context, id task.ID) (Task, error) {
	var t Task
	err := c.get(ctx, "/v1/tasks/"+url.PathEscape(string(id)), &t)
	return t, err
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	_, err := c.send(ctx, http.MethodGet, path, nil, into)
	return err
}

// send makes one request, with the body as JSON unless it is nil, and reads the
// answer into what is given. It reports whether there was an answer to read: not
// so when the server says that it has no content.
func (c *Client) send(ctx context.Context, method, path string, body, into any) (bool, error) {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return false, err
	}
	answer, err := c.HTTP.Do(request)
	if err != nil {
		return false, task.Wrap(task.Unavailable, err, "the server does not answer").WithHint("is toryo serve running at %s?", c.Server)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusNoContent {
		return false, nil
	}
	return true, read(answer, into)
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, task.Wrap(task.Invalid, err, "the request cannot be written down")
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Server, "/")+path, content)
	if err != nil {
		return nil, task.Wrap(task.Usage, err, "the server's address is not valid").WithHint("give it like http://127.0.0.1:8750")
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Accept", "application/json")
	if c.MachineUser != "" {
		request.Header.Set(MachineUserHeader, c.MachineUser)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

func read(answer *http.Response, into any) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return task.Wrap(task.Unavailable, err, "the server's answer was cut off").WithHint("try again")
	}
	if len(body) > maxAnswer {
		return task.Errorf(task.TooLarge, "the server's answer is larger than %d bytes", maxAnswer)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return problemFrom(answer, body)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return task.Wrap(task.Unavailable, err, "the server's answer cannot be read").WithHint("is this a Toryo server?")
	}
	return nil
}

func problemFrom(answer *http.Response, body []byte) error {
	var problem Problem
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || media != ProblemType {
		err = errors.Join(err, fmt.Errorf("%s with %q", answer.Status, answer.Header.Get("Content-Type")))
		return task.Wrap(task.Unavailable, err, "the server's answer cannot be read").WithHint("is this a Toryo server?")
	}
	if err := json.Unmarshal(body, &problem); err != nil {
		return task.Wrap(task.Unavailable, err, "the server's answer cannot be read")
	}
	return problem.Err()
}
