package wire

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Note is something that a reviewer asked for, or that a person wrote by hand, kept for later tasks of
// the repository. Docs/memory.md says more.
type Note struct {
	ID         string    `json:"id"`
	Repository string    `json:"repository" doc:"With its forge" example:"github:owner/name"`
	Text       string    `json:"text"`
	Path       string    `json:"path,omitempty" doc:"The file that it is about"`
	Ending     string    `json:"ending,omitempty" doc:"How it ended: done, resolved, merged or closed; nothing for a note that was written by hand"`
	Author     string    `json:"author" doc:"Who asked for it, or wrote it"`
	Source     string    `json:"source,omitempty" doc:"The address of the pull request"`
	Asked      int       `json:"asked" doc:"On how many pull requests the same was asked for"`
	AskedAt    time.Time `json:"asked_at"`
	EditedBy   string    `json:"edited_by,omitempty" doc:"Who changed it last"`
	EditedAt   time.Time `json:"edited_at,omitzero"`
	UsedAt     time.Time `json:"used_at,omitzero" doc:"When it was last given to a task"`
}

// Notes is a list of notes, the newest first.
type Notes struct {
	Enabled bool   `json:"enabled" doc:"Whether notes are kept and given to tasks"`
	Notes   []Note `json:"notes"`
	Before  string `json:"before,omitempty" doc:"With which parameter before the list goes on; nothing at its end"`
}

// NewNote is a note that a person writes by hand.
type NewNote struct {
	Repository string `json:"repository" doc:"With its forge" example:"github:owner/name" maxLength:"2000"`
	Text       string `json:"text" minLength:"1" maxLength:"500"`
	Path       string `json:"path,omitempty" doc:"The file that it is about; without one it may be given to any task" maxLength:"300"`
}

// NoteText is another text of a note.
type NoteText struct {
	Text string `json:"text" minLength:"1" maxLength:"500"`
}

// Notes asks for notes, the newest first. Empty texts do not narrow; 0 means as many as the server gives
// at once.
func (c *Client) Notes(ctx context.Context, repository, search, before string, limit int) (Notes, error) {
	query := url.Values{}
	for name, value := range map[string]string{"repository": repository, "search": search, "before": before} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var found Notes
	err := c.get(ctx, "/v1/memory?"+query.Encode(), &found)
	return found, err
}

// AddNote keeps a note that a person writes by hand.
func (c *Client) AddNote(ctx context.Context, note NewNote) (Note, error) {
	var made Note
	_, err := c.send(ctx, http.MethodPost, "/v1/memory", note, &made)
	return made, err
}

// EditNote changes the text of a note.
func (c *Client) EditNote(ctx context.Context, id, text string) (Note, error) {
	var edited Note
	_, err := c.send(ctx, http.MethodPatch, "/v1/memory/"+url.PathEscape(id), NoteText{text}, &edited)
	return edited, err
}

// ForgetNote removes a note for good.
func (c *Client) ForgetNote(ctx context.Context, id string) error {
	_, err := c.send(ctx, http.MethodDelete, "/v1/memory/"+url.PathEscape(id), nil, nil)
	return err
}
