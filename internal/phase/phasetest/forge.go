package phasetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// fakeForge is a forge in memory. It outlasts runs.
type fakeForge struct {
	mu       sync.Mutex
	comments []task.CommentEntry
	unheard  []Comment // that were not received yet
	fail     int       // so many looks for comments fail
	looks    int
	progress []string
	said     map[string]string
	order    []string
	replies  map[string]string
	pulls    []phase.OpenPull
	gone     func() bool                // the run's process
	moved    func(commit string) string // what a person has pushed, if it is not in the commit
	// references are the other items that the request names; unreferenced says
	// that they cannot be read.
	references   []phase.Reference
	unreferenced bool
	images       []phase.Image
}

func (d *fakeForge) Images(context.Context) ([]phase.Image, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.images, d.alive()
}

func (d *fakeForge) alive() error {
	if d.gone != nil && d.gone() {
		return errCrash
	}
	return nil
}

func (d *fakeForge) Comments(_ context.Context, after int64) ([]task.CommentEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	if d.fail > 0 {
		d.fail--
		return nil, task.Errorf(task.Unavailable, "the forge does not answer")
	}
	var found []task.CommentEntry
	for _, comment := range d.comments {
		if comment.Position > after {
			found = append(found, comment)
		}
	}
	return found, d.alive()
}

func (d *fakeForge) LatestComments(ctx context.Context, after int64) ([]task.CommentEntry, error) {
	d.mu.Lock()
	unheard := d.unheard
	d.unheard = nil
	d.mu.Unlock()
	d.add(unheard)
	return d.Comments(ctx, after)
}

func (d *fakeForge) References(context.Context) ([]phase.Reference, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unreferenced {
		return nil, task.Errorf(task.Unavailable, "the forge does not answer")
	}
	return d.references, d.alive()
}

// hold keeps comments until somebody asks for the latest.
func (d *fakeForge) hold(comments []Comment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unheard = append(d.unheard, comments...)
}

func (d *fakeForge) add(comments []Comment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range comments {
		position := int64(len(d.comments) + 1)
		if c.ID == "" {
			c.ID = fmt.Sprint("c", position)
		}
		if c.Change == "" {
			c.Change = "new"
		}
		d.comments = append(d.comments, task.CommentEntry{Comment: task.Comment{ID: c.ID, Author: c.Author, Body: c.Body}, Position: position,
			Access: c.Access, Change: c.Change, Refused: c.Refused})
	}
}

func (d *fakeForge) Progress(_ context.Context, text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress = append(d.progress, text)
	return d.alive()
}

func (d *fakeForge) AddComment(_ context.Context, name, text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return err
	}
	if _, twice := d.said[name]; !twice {
		d.said[name] = text
		d.order = append(d.order, name)
	}
	return nil
}

func (d *fakeForge) Reply(_ context.Context, name string, reply phase.ThreadReply) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return err
	}
	if _, twice := d.said[name]; !twice {
		d.said[name] = reply.Text
		d.replies[reply.Thread] += reply.Text
		if reply.Resolved {
			d.replies[reply.Thread] += " (resolved)"
		}
	}
	return nil
}

func (d *fakeForge) OpenPull(_ context.Context, open phase.OpenPull) (phase.Pulled, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.alive(); err != nil {
		return phase.Pulled{}, err
	}
	if theirs := d.moved(open.Commit); theirs != "" {
		return phase.Pulled{Moved: theirs}, nil
	}
	at := slices.IndexFunc(d.pulls, func(p phase.OpenPull) bool { return p.Branch == open.Branch })
	if at >= 0 {
		d.pulls[at] = open
		return phase.Pulled{Number: int64(at + 100), URL: fmt.Sprintf("http://forge.test/pulls/%d", at+100)}, nil
	}
	d.pulls = append(d.pulls, open)
	number := len(d.pulls) + 99
	return phase.Pulled{Number: int64(number), URL: fmt.Sprintf("http://forge.test/pulls/%d", number), Opened: true}, nil
}

// everything is all that people can read.
func (d *fakeForge) everything() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var parts []string
	for _, name := range d.order {
		parts = append(parts, d.said[name])
	}
	for _, pull := range d.pulls {
		parts = append(parts, pull.Title, pull.Body)
	}
	for _, reply := range d.replies {
		parts = append(parts, reply)
	}
	return strings.Join(append(parts, d.progress...), "\n")
}
