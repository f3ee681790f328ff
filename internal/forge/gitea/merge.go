package gitea

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// MergePull merges a pull request in the style that the repository has by default. Gitea lets
// administrators pass rules only if they ask for it. It does not tell a pull request with
// conflicts from one that it has not looked at yet: both are a Conflict.
func (f *Forge) MergePull(ctx context.Context, key task.Key, head string) error {
	at, err := locatePull(key)
	if err != nil {
		return err
	}
	item, err := f.Item(ctx, key)
	if err != nil || item.State == forge.Merged {
		return err
	}
	if err := forge.Mergeable(item, head); err != nil {
		return err
	}
	repository, answer, err := f.client(ctx).GetRepo(at.owner, at.name)
	if err != nil {
		return callError("read the repository "+key.Repository, answer, err)
	}
	wanted := struct {
		Do   sdk.MergeStyle `json:"Do"`
		Head string         `json:"head_commit_id"`
	}{cmp.Or(repository.DefaultMergeStyle, sdk.MergeStyleMerge), head}
	answer, err = f.request(ctx, http.MethodPost, at.path("pulls")+"/merge", wanted, nil)
	if err != nil && strings.Contains(err.Error(), "not allowed to merge") { // with the status of a conflict
		return task.Wrap(task.Forbidden, err, "the account may not merge "+key.String())
	}
	return callError("merge "+key.String(), answer, err)
}
