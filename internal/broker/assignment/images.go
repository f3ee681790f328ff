package assignment

import (
	"context"
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
	Steering  *items.Steering
	Fetcher   images.Fetcher
	Log       *slog.Logger
}

// Of returns the images in the item's text and its comments, as far as their authors may steer the
// work on it: what others write is no request, and neither are their images. The last comments
// come first, since there is room for a few images only. Nothing of it is kept.
func (i Images) Of(ctx context.Context, key task.Key) ([]images.Image, error) {
	snapshot, err := i.Snapshots.Get(ctx, key, items.ParticipantsAge)
	if err != nil {
		return nil, err
	}
	from, found := i.Forges[key.Forge]
	if !found {
		return nil, task.Errorf(task.Unsupported, "no forge %s is configured", key.Forge)
	}
	standings := map[string]bool{}
	var texts []images.Text
	add := func(author, body string) error {
		if len(images.Links(body)) == 0 {
			return nil
		}
		may, known := standings[author]
		if !known {
			standing, err := i.Steering.Of(ctx, snapshot.Item, author, nil)
			if err != nil {
				return err
			}
			may = standing.MaySteer()
			standings[author] = may
		}
		if may {
			texts = append(texts, images.Text{Repository: key.Repository, Body: body, Forge: from})
		}
		return nil
	}
	if err := add(snapshot.Item.Author, snapshot.Item.Body); err != nil {
		return nil, err
	}
	for _, comment := range slices.Backward(slices.Concat(snapshot.ReviewComments, snapshot.Comments)) {
		if err := add(comment.Author, comment.Body); err != nil {
			return nil, err
		}
	}
	return i.Fetcher.Fetch(ctx, texts, func(_ string, err error) {
		i.Log.InfoContext(ctx, "an image of a text is not shown to the model", "item", key.String(), "error", err)
	}), nil
}
