package gitea

import (
	"context"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Dependent = (*Forge)(nil)

// Dependencies returns what people have said that the item waits for.
func (f *Forge) Dependencies(ctx context.Context, key task.Key) ([]task.Key, error) {
	at, err := locate(key)
	if err != nil {
		return nil, err
	}
	found, answer, err := pages(func(i *sdk.Issue) int64 { return i.ID },
		func(page sdk.ListOptions) ([]*sdk.Issue, *sdk.Response, error) {
			return f.client(ctx).ListIssueDependencies(at.owner, at.name, at.number, sdk.ListIssueDependenciesOptions{ListOptions: page})
		})
	if err != nil {
		if err = callError("read what "+key.String()+" waits for", answer, err); task.CodeOf(err) == task.NotFound {
			return nil, nil // the repository has it switched off, or the item is gone
		}
		return nil, err
	}
	slices.SortFunc(found, func(a, b *sdk.Issue) int { return int(a.ID - b.ID) })
	var keys []task.Key
	for _, one := range found {
		to := task.Key{Forge: task.Gitea, Repository: key.Repository, Kind: task.Issue, Number: one.Index}
		if one.Repository != nil && one.Repository.FullName != "" {
			to.Repository = one.Repository.FullName
		}
		if one.PullRequest != nil {
			to.Kind = task.Pull
		}
		keys = append(keys, to)
	}
	return keys, nil
}
