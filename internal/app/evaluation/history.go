package evaluation

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// closing is how the text of a pull request names the issue that it closes.
var closing = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d+)\b`)

// Asked reads from a forge what pull requests were for. The name is FORGE:OWNER/NAME.
func Asked(c config.Config, name string) (func(context.Context, int64) (string, error), error) {
	kind, repository, found := strings.Cut(name, ":")
	if !found || repository == "" {
		return nil, task.Errorf(task.Usage, "%q is no repository of a forge", name).WithHint("give it as github:owner/name")
	}
	opened, err := site.OpenForge(c, task.Forge(kind))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, number int64) (string, error) { return asked(ctx, opened, repository, number) }, nil
}

// asked is the text of the issue that a pull request closes, or its own if it closes none.
func asked(ctx context.Context, from forge.Forge, repository string, number int64) (string, error) {
	key := task.Key{Forge: from.Name(), Repository: repository, Kind: task.Pull, Number: number}
	pull, err := from.Item(ctx, key)
	if err != nil {
		return "", err
	}
	for _, found := range closing.FindAllStringSubmatch(pull.Title+"\n"+pull.Body, -1) {
		issue, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil {
			continue // it is too long for a number
		}
		key.Kind, key.Number = task.Issue, issue
		item, err := from.Item(ctx, key)
		if task.CodeOf(err) == task.NotFound {
			continue
		}
		if err != nil {
			return "", err
		}
		if !item.Confidential {
			return item.Title + "\n\n" + item.Body, nil
		}
	}
	return pull.Title + "\n\n" + pull.Body, nil
}
