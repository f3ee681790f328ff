package wire

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// RequestTask waits for a task until one is there or the wait ends; nil means
// that there is none.
func (c *Client) RequestTask(ctx context.Context, agent string, wait time.Duration) (*Assignment, error) {
	return c.RequestTaskAs(ctx, TaskRequest{AgentID: agent}, wait)
}

// RequestTaskAs does the same for a caller who says more of itself than its name.
func (c *Client) RequestTaskAs(ctx context.Context, asker TaskRequest, wait time.Duration) (*Assignment, error) {
	var assigned Assignment
	path := "/v1/tasks/request?wait=" + url.QueryEscape(wait.String())
	found, err := c.send(ctx, http.MethodPost, path, asker, &assigned)
	if err != nil || !found {
		return nil, err
	}
	return &assigned, nil
}

// EndedRuns returns those of the runs that will not go on, and reports those whose files
// cannot be moved.
func (c *Client) EndedRuns(ctx context.Context, asked RunsAsked) ([]RunOver, error) {
	var over RunsOver
	_, err := c.send(ctx, http.MethodPost, "/v1/tasks/over", asked, &over)
	return over.Over, err
}

// Run returns the client for one task under its lease. Its requests have the lease's token.
func (c *Client) Run(a *Assignment) *RunClient {
	return &RunClient{
		client: &Client{Server: c.Server, Token: a.Lease.Token, HTTP: c.HTTP},
		path:   "/v1/tasks/" + url.PathEscape(a.TaskID),
	}
}

// RunClient makes the requests about one task under its lease. Its methods may be used by
// many goroutines. Once the lease is over they all fail with lease_lost.
type RunClient struct {
	client *Client
	path   string
}

// Renew extends the lease.
func (h *RunClient) Renew(ctx context.Context) (Heartbeat, error) {
	var beat Heartbeat
	_, err := h.client.send(ctx, http.MethodPost, h.path+"/heartbeat", struct{}{}, &beat)
	return beat, err
}

// Report sends entries of the journal.
func (h *RunClient) Report(ctx context.Context, entries []Entry) (Reported, error) {
	var reported Reported
	_, err := h.client.send(ctx, http.MethodPost, h.path+"/events", Report{Entries: entries}, &reported)
	return reported, err
}

// Journal returns entries of the whole task's journal after the position.
func (h *RunClient) Journal(ctx context.Context, after int64, limit int) (Events, error) {
	var events Events
	err := h.client.get(ctx, h.path+"/journal?after="+strconv.FormatInt(after, 10)+"&limit="+strconv.Itoa(limit), &events)
	return events, err
}

// Signals waits for a signal, or for comments after the position, until there is
// something or the wait ends.
func (h *RunClient) Signals(ctx context.Context, after int64, wait time.Duration) (Signals, error) {
	var signals Signals
	err := h.client.get(ctx, h.path+"/signals?after="+strconv.FormatInt(after, 10)+"&wait="+url.QueryEscape(wait.String()), &signals)
	return signals, err
}

// Images returns the images of the task's own item and its comments.
func (h *RunClient) Images(ctx context.Context) ([]Image, error) {
	var images Images
	err := h.client.get(ctx, h.path+"/images", &images)
	return images.Images, err
}

// References returns the items that the text of the task's own item names.
func (h *RunClient) References(ctx context.Context) ([]Reference, error) {
	var references References
	err := h.client.get(ctx, h.path+"/references", &references)
	return references.Items, err
}

// Progress brings the progress comment up to date.
func (h *RunClient) Progress(ctx context.Context, text string) error {
	_, err := h.client.send(ctx, http.MethodPost, h.path+"/progress", Progress{Text: text}, nil)
	return err
}

// AddComment writes a comment.
func (h *RunClient) AddComment(ctx context.Context, comment NewComment) error {
	_, err := h.client.send(ctx, http.MethodPost, h.path+"/comments", comment, nil)
	return err
}

// OpenPull publishes the branch and opens the pull request, and returns when both
// have happened. Asking again is safe.
func (h *RunClient) OpenPull(ctx context.Context, open OpenPull) (Pulled, error) {
	var pulled Pulled
	_, err := h.client.send(ctx, http.MethodPost, h.path+"/pull", open, &pulled)
	return pulled, err
}

// Finish ends the run. Asking again is safe: a run that has ended this way says
// so again.
func (h *RunClient) Finish(ctx context.Context, result Result) error {
	_, err := h.End(ctx, result)
	return err
}

// End is Finish, and tells what has become of the task: that is for the server to
// decide.
func (h *RunClient) End(ctx context.Context, result Result) (Ended, error) {
	var ended Ended
	_, err := h.client.send(ctx, http.MethodPost, h.path+"/result", result, &ended)
	return ended, err
}

// Reserve asks for leave to make a call to a model. It fails with
// budget_exhausted when that does not fit.
func (h *RunClient) Reserve(ctx context.Context, spend Spend) (Reservation, error) {
	var reserved Reservation
	_, err := h.client.send(ctx, http.MethodPost, h.path+"/spend", spend, &reserved)
	return reserved, err
}

// Settle says what a call used.
func (h *RunClient) Settle(ctx context.Context, settlement Settlement) error {
	_, err := h.client.send(ctx, http.MethodPut, h.path+"/spend", settlement, nil)
	return err
}

// NextTasks tells what is queued, and why each task is or is not next, as if the
// agent asked; without one, an agent that holds nothing.
func (c *Client) NextTasks(ctx context.Context, agent string) (NextTasks, error) {
	var next NextTasks
	err := c.get(ctx, "/v1/tasks/next?agent="+url.QueryEscape(agent), &next)
	return next, err
}
