package forge

import (
	"context"
	"fmt"

	"github.com/toryo-dev/toryo/internal/task"
)

// Details is an item with all that belongs to it.
type Details struct {
	Item
	AuthorAccess Access
	Comments     []task.Comment
	LinkedPulls  []LinkedPull
}

// ReadDetails reads an item whole. It costs several requests.
func ReadDetails(ctx context.Context, reader Reader, key task.Key) (Details, error) {
	item, err := reader.Item(ctx, key)
	if err != nil {
		return Details{}, err
	}
	details := Details{Item: item}
	if item.Author != Ghost {
		if details.AuthorAccess, err = reader.Access(ctx, key.Repository, item.Author); err != nil {
			return Details{}, fmt.Errorf("read what %s may do: %w", item.Author, err)
		}
	}
	if details.Comments, err = reader.Comments(ctx, key); err != nil {
		return Details{}, err
	}
	if key.Kind == task.Issue {
		details.LinkedPulls, err = reader.LinkedPulls(ctx, key)
	}
	return details, err
}
