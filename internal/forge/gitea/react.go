package gitea

import (
	"context"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// React adds a reaction.
func (f *Forge) React(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	at, comment, err := locateTarget(target)
	if err != nil {
		return err
	}
	client := f.client(ctx)
	var answer *sdk.Response
	if comment != 0 {
		_, answer, err = client.PostIssueCommentReaction(at.owner, at.name, comment, string(reaction))
	} else {
		_, answer, err = client.PostIssueReaction(at.owner, at.name, at.number, string(reaction))
	}
	return callError("react on "+target.Key.String(), answer, err)
}

// Unreact takes a reaction away.
func (f *Forge) Unreact(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	at, comment, err := locateTarget(target)
	if err != nil {
		return err
	}
	client := f.client(ctx)
	var answer *sdk.Response
	if comment != 0 {
		answer, err = client.DeleteIssueCommentReaction(at.owner, at.name, comment, string(reaction))
	} else {
		answer, err = client.DeleteIssueReaction(at.owner, at.name, at.number, string(reaction))
	}
	return callError("take back a reaction on "+target.Key.String(), answer, err)
}

// Reactions returns everyone's reactions.
func (f *Forge) Reactions(ctx context.Context, target forge.Target) ([]forge.ReactionBy, error) {
	at, comment, err := locateTarget(target)
	if err != nil {
		return nil, err
	}
	var found []*sdk.Reaction
	var answer *sdk.Response
	if comment != 0 {
		found, answer, err = f.client(ctx).GetIssueCommentReactions(at.owner, at.name, comment)
	} else {
		found, answer, err = f.itemReactions(ctx, at)
	}
	if err != nil {
		return nil, callError("read the reactions on "+target.Key.String(), answer, err)
	}
	var reactions []forge.ReactionBy
	for _, one := range found {
		if kind := forge.Reaction(one.Reaction); slices.Contains(forge.ReactionKinds, kind) {
			reactions = append(reactions, forge.ReactionBy{Reaction: kind, Login: login(one.User)})
		}
	}
	return reactions, nil
}

// itemReactions reads page by page until nothing new comes. Reactions have no id,
// so that who reacted how must do.
func (f *Forge) itemReactions(ctx context.Context, at address) ([]*sdk.Reaction, *sdk.Response, error) {
	type who struct {
		user     int64
		reaction string
	}
	seen := map[who]bool{}
	var all []*sdk.Reaction
	for number := 1; ; number++ {
		page, answer, err := f.client(ctx).ListIssueReactions(at.owner, at.name, at.number,
			sdk.ListIssueReactionsOptions{ListOptions: sdk.ListOptions{Page: number, PageSize: perPage}})
		if err != nil {
			return nil, answer, err
		}
		before := len(all)
		for _, one := range page {
			key := who{reaction: one.Reaction}
			if one.User != nil {
				key.user = one.User.ID
			}
			if !seen[key] {
				seen[key] = true
				all = append(all, one)
			}
		}
		if len(all) == before {
			return all, answer, nil
		}
	}
}

func locateTarget(target forge.Target) (at address, comment int64, err error) {
	at, err = locate(target.Key)
	if err == nil && target.Comment != "" {
		comment, err = commentID(target.Comment)
	}
	return at, comment, err
}

// SetStatus sets the state of a commit.
func (f *Forge) SetStatus(ctx context.Context, repository string, status forge.CommitStatus) error {
	owner, name, err := split(repository)
	if err != nil {
		return err
	}
	_, answer, err := f.client(ctx).CreateStatus(owner, name, status.Commit, sdk.CreateStatusOption{
		State: sdk.StatusState(status.State), TargetURL: status.URL,
		Description: status.ShortDescription(), Context: status.Context,
	})
	err = callError("set the status of a commit in "+repository, answer, err)
	if isServerError(err) {
		// So Gitea answers as well when it does not have the commit.
		if _, answer, findErr := f.client(ctx).GetSingleCommit(owner, name, status.Commit); findErr != nil {
			if findErr = callError("find a commit in "+repository, answer, findErr); task.CodeOf(findErr) == task.NotFound {
				return findErr
			}
		}
	}
	return err
}
