package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Pause is a wish that everything be paused.
type Pause struct {
	Source string    `json:"source" doc:"Who wants it: operator, or a file on a server"`
	By     string    `json:"by,omitempty" doc:"The person who wanted it, if it was one"`
	Since  time.Time `json:"since"`
}

// Pauses is who wants everything to be paused. Nothing is, if nobody does.
type Pauses struct {
	Pauses []Pause `json:"pauses"`
}

// Tasks lists tasks, oldest first. Zero values do not narrow.
func (c *Client) Tasks(ctx context.Context, states []string, repository string, limit int) (Tasks, error) {
	query := url.Values{}
	if len(states) > 0 {
		query.Set("state", strings.Join(states, ","))
	}
	if repository != "" {
		query.Set("repository", repository)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var tasks Tasks
	err := c.get(ctx, "/v1/tasks?"+query.Encode(), &tasks)
	return tasks, err
}

// FindTask asks for the task that somebody names; see [task.ParseName].
func (c *Client) FindTask(ctx context.Context, name string) (Task, error) {
	var t Task
	err := c.get(ctx, "/v1/tasks/find?name="+url.QueryEscape(name), &t)
	return t, err
}

// tasksPage is how many tasks are asked for at once.
const tasksPage = 1000

// AllTasks lists all tasks in some states, or in any, oldest first.
func (c *Client) AllTasks(ctx context.Context, states []string) (Tasks, error) {
	all := Tasks{Tasks: []Task{}}
	query := url.Values{"limit": {strconv.Itoa(tasksPage)}}
	if len(states) > 0 {
		query.Set("state", strings.Join(states, ","))
	}
	for {
		var page Tasks
		if err := c.get(ctx, "/v1/tasks?"+query.Encode(), &page); err != nil {
			return Tasks{}, err
		}
		all.Tasks = append(all.Tasks, page.Tasks...)
		if len(page.Tasks) < tasksPage {
			return all, nil
		}
		query.Set("after", page.Tasks[len(page.Tasks)-1].ID)
	}
}

// StopTask stops a task for good.
func (c *Client) StopTask(ctx context.Context, id task.ID) (Task, error) {
	return c.steer(ctx, id, "stop")
}

// PauseTask pauses a task.
func (c *Client) PauseTask(ctx context.Context, id task.ID) (Task, error) {
	return c.steer(ctx, id, "pause")
}

// ResumeTask lets a paused task go on.
func (c *Client) ResumeTask(ctx context.Context, id task.ID) (Task, error) {
	return c.steer(ctx, id, "resume")
}

// ApproveTask approves a plan of a task that waits for that, by its number.
func (c *Client) ApproveTask(ctx context.Context, id task.ID, plan int) (Task, error) {
	return c.steer(ctx, id, "approve?plan="+strconv.Itoa(plan))
}

// RetryTask queues a task again that has ended.
func (c *Client) RetryTask(ctx context.Context, id task.ID) (Task, error) {
	return c.steer(ctx, id, "retry")
}

func (c *Client) steer(ctx context.Context, id task.ID, do string) (Task, error) {
	var t Task
	_, err := c.send(ctx, http.MethodPost, "/v1/tasks/"+url.PathEscape(string(id))+"/"+do, struct{}{}, &t)
	return t, err
}

// PauseAll pauses everything.
func (c *Client) PauseAll(ctx context.Context) (Pauses, error) {
	var pauses Pauses
	_, err := c.send(ctx, http.MethodPost, "/v1/pause", struct{}{}, &pauses)
	return pauses, err
}

// ResumeAll takes the pause of everything back, and returns who still wants it.
// With force, it is taken back for everyone.
func (c *Client) ResumeAll(ctx context.Context, force bool) (Pauses, error) {
	var pauses Pauses
	_, err := c.send(ctx, http.MethodPost, "/v1/resume?force="+strconv.FormatBool(force), struct{}{}, &pauses)
	return pauses, err
}

// TaskEvents returns entries of a task's journal after the position.
func (c *Client) TaskEvents(ctx context.Context, id task.ID, after int64, limit int) (Events, error) {
	var events Events
	path := "/v1/tasks/" + url.PathEscape(string(id)) + "/events?after=" + strconv.FormatInt(after, 10) + "&limit=" + strconv.Itoa(limit)
	err := c.get(ctx, path, &events)
	return events, err
}

// maxEventLine is the longest line of a stream that the client reads.
const maxEventLine = 16 << 20

// Follow gives every entry of a task's journal after the position to see, as it
// is written, until the context ends, see fails or the connection breaks. It
// returns the position of the last entry that was seen, to go on from.
func (c *Client) Follow(ctx context.Context, id task.ID, after int64, see func(Event) error) (int64, error) {
	request, err := c.request(ctx, http.MethodGet, "/v1/tasks/"+url.PathEscape(string(id))+"/events/stream", nil)
	if err != nil {
		return after, err
	}
	request.Header.Set("Accept", "text/event-stream, application/problem+json")
	request.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	answer, err := c.HTTP.Do(request)
	if err != nil {
		return after, task.Wrap(task.Unavailable, err, "the server does not answer").WithHint("is toryo serve running at %s?", c.Server)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return after, read(answer, nil)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxEventLine)
	for lines.Scan() {
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		if !isData {
			continue
		}
		var event Event
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return after, task.Wrap(task.Unavailable, err, "the server's answer cannot be read")
		}
		if err := see(event); err != nil {
			return after, err
		}
		after = event.Position
	}
	err = errors.Join(lines.Err(), ctx.Err())
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return after, task.Wrap(task.Unavailable, err, "the server has broken off")
}
