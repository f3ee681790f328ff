package forge

import (
	"context"

	"github.com/toryo-dev/toryo/internal/task"
)

// Dependent is implemented by adapters of forges on which people can say, apart
// from the text, what has to be closed before an item. Ask by a type assertion.
type Dependent interface {
	// Dependencies returns what the item waits for, open or not, as far as the
	// credential can see it. A forge of an older version, a repository in which it
	// is switched off, and an item that is gone, may have none.
	Dependencies(ctx context.Context, key task.Key) ([]task.Key, error)
}
