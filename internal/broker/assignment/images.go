package assignment

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/images"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/task"
)

// Images reads images of the texts of items.
type Images struct {
	Snapshots *items.Snapshots
	Forges    map[task.Forge]forge.Reader
	// Reviews are where reviews are read that the snapshots are without, because comments in them
	// are not told to runs while they go on.
	Reviews  map[task.Forge]items.ReviewSource
	Comments KnownComments
	Steering *items.Steering
	Own      func(of task.Forge, login string) bool // see broker.RunOptions
	Fetcher  images.Fetcher
	Log      *slog.Logger
}

// KnownComments tells what runs were told of comments; see [store.CommentLog].
type KnownComments interface {
	KnownComments(ctx context.Context, id task.ID) (known []task.CommentEntry, last int64, err error)
}

// Of returns the images in the text of a task's item, of the issues that it is for and of its
// comments, as far as their authors may steer the work on it: what others write is no request, and
// neither are their images. What this program wrote is left out, under whatever account: a model wrote
// it, and it could tell the server to ask for an address with what it has read in it. The last comments
// come first, since there is room for a few images only. Nothing of it is kept.
func (i Images) Of(ctx context.Context, t task.Task) ([]images.Image, error) {
	snapshot, err := i.Snapshots.Get(ctx, t.Key, items.ParticipantsAge)
	if err != nil {
		return nil, err
	}
	from, found := i.Forges[t.Key.Forge]
	if !found {
		return nil, task.Errorf(task.Unsupported, "no forge %s is configured", t.Key.Forge)
	}
	known, _, err := i.Comments.KnownComments(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	decided := make(map[task.CommentRef]bool, len(known))
	for _, entry := range known {
		decided[entry.Ref()] = entry.Refused == ""
	}
	var texts []images.Text
	add := func(body string) {
		texts = append(texts, images.Text{Repository: t.Key.Repository, Body: body, Forge: from})
	}
	asked := []forge.Item{snapshot.Item}
	if t.Key.Kind == task.Pull {
		asked = append(asked, issuesOf(ctx, i.Snapshots, snapshot.Item)...)
	}
	reviews, err := i.reviews(ctx, snapshot)
	if err != nil { // the other images are there
		i.Log.WarnContext(ctx, "failed to read the reviews of a pull request for their images", "item", t.Key.String(), "error", err)
	}
	asked, comments := byPeople(asked, slices.Concat(reviews, snapshot.Comments))
	for _, item := range asked {
		if i.taken(ctx, item, item.Author, item.Body) {
			add(item.Body)
		}
	}
	for _, comment := range slices.Backward(comments) {
		may, is := decided[comment.Ref()]
		if is && may && len(images.Links(comment.Body)) > 0 || !is && i.taken(ctx, snapshot.Item, comment.Author, comment.Body) {
			add(comment.Body)
		}
	}
	return i.Fetcher.Fetch(ctx, texts, func(_ string, err error) {
		i.Log.InfoContext(ctx, "an image of a text is not shown to the model", "item", t.Key.String(), "error", err)
	}), nil
}

// byPeople leaves out what this program wrote, under whatever account, and sorts the comments by time.
func byPeople(asked []forge.Item, comments []task.Comment) ([]forge.Item, []task.Comment) {
	programs := forge.Programs(comments)
	asked = slices.DeleteFunc(asked, func(item forge.Item) bool {
		return forge.StripMarker(item.Body) != item.Body || programs[task.FoldLogin(item.Author)]
	})
	comments = slices.DeleteFunc(comments, func(comment task.Comment) bool { return programs[task.FoldLogin(comment.Author)] })
	slices.SortStableFunc(comments, func(a, b task.Comment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return asked, comments
}

// reviews are what was written in the reviews of a pull request: what a task is to change it for.
func (i Images) reviews(ctx context.Context, snapshot items.Snapshot) ([]task.Comment, error) {
	key := snapshot.Item.Key
	source, found := i.Reviews[key.Forge]
	if key.Kind != task.Pull || !found {
		return snapshot.ReviewComments, nil
	}
	reviews, err := source.Reviews(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the reviews: %w", err)
	}
	threads, err := source.ReviewThreads(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the review comments: %w", err)
	}
	return append(forge.ReviewTexts(reviews), forge.ReviewComments(threads)...), nil
}

// taken reports whether a text has images that are read. While it is not known what its author may
// do they are not.
func (i Images) taken(ctx context.Context, item forge.Item, author, body string) bool {
	if len(images.Links(body)) == 0 || i.Own(item.Key.Forge, author) {
		return false
	}
	standing, err := i.Steering.Of(ctx, item, author, nil)
	if err != nil {
		i.Log.WarnContext(ctx, "failed to read a person's access to a repository; their images are not shown", "item", item.Key.String(), "login", author, "error", err)
		return false
	}
	return standing.MaySteer()
}
