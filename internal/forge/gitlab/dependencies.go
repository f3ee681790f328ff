package gitlab

import (
	"context"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Dependent = (*Forge)(nil)

// blockedBy is the kind of link to what an issue waits for, seen from the issue.
const blockedBy = "is_blocked_by"

// Dependencies returns what people have said that an issue waits for. That merge
// requests wait for others is not read.
func (f *Forge) Dependencies(ctx context.Context, key task.Key) ([]task.Key, error) {
	if err := checkKey(key); err != nil || key.Kind == task.Pull {
		return nil, err
	}
	links, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.IssueRelation, *gl.Response, error) {
		return f.client.IssueLinks.ListIssueRelations(key.Repository, key.Number, page...)
	})
	if err != nil {
		return nil, callError(err, "read what %s waits for", key)
	}
	var keys []task.Key
	for _, link := range links {
		if link.LinkType != blockedBy {
			continue
		}
		to := task.Key{Forge: task.GitLab, Repository: key.Repository, Kind: task.Issue, Number: link.IID}
		if link.References != nil {
			if full, ok := parseReference(link.References.Full); ok {
				to.Repository = full.Repository
			}
		}
		keys = append(keys, to)
	}
	return keys, nil
}
