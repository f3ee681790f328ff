package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Dependent = (*Forge)(nil)

// Dependencies returns what people have said that an issue waits for. Pull requests
// wait for nothing on GitHub.
func (f *Forge) Dependencies(ctx context.Context, key task.Key) ([]task.Key, error) {
	at, err := placeOfKey(key)
	if err != nil || key.Kind == task.Pull {
		return nil, err
	}
	var keys []task.Key
	for page := 1; ; page++ {
		var issues []*gh.Issue
		path := fmt.Sprintf("%s?per_page=%d&page=%d", at.path("issues", at.number, "dependencies", "blocked_by"), perPage, page)
		if err := f.do(ctx, http.MethodGet, path, nil, &issues); err != nil {
			if err = callError(err, "read what %s waits for", key); task.CodeOf(err) == task.NotFound {
				return nil, nil // a server of before there was such a thing
			}
			return nil, err
		}
		for _, issue := range issues {
			repository := cmp.Or(repositoryOf(issue.GetRepositoryURL()), issue.GetRepository().GetFullName(), key.Repository)
			keys = append(keys, task.Key{Forge: task.GitHub, Repository: repository, Kind: task.Issue, Number: int64(issue.GetNumber())})
		}
		if len(issues) < perPage {
			return keys, nil
		}
	}
}
