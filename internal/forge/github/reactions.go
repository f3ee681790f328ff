package github

import (
	"context"
	"slices"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// place is where the target is, with the comment's id or 0 for the item itself.
func targetPlace(target forge.Target) (at place, comment int64, err error) {
	if at, err = placeOfKey(target.Key); err != nil || target.Comment == "" {
		return at, 0, err
	}
	comment, err = number(target.Comment)
	return at, comment, err
}

// React adds a reaction of ours.
func (f *Forge) React(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	at, comment, err := targetPlace(target)
	if err != nil {
		return err
	}
	if !slices.Contains(forge.ReactionKinds, reaction) {
		return task.Errorf(task.Invalid, "%q is not a reaction", reaction)
	}
	if comment == 0 {
		_, _, err = f.client.Reactions.CreateIssueReaction(ctx, at.owner, at.name, at.number, string(reaction))
	} else {
		_, _, err = f.client.Reactions.CreateIssueCommentReaction(ctx, at.owner, at.name, comment, string(reaction))
	}
	if err != nil {
		return callError(err, "react to %s", target.Key)
	}
	return nil
}

// Unreact takes a reaction of ours away.
func (f *Forge) Unreact(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	at, comment, err := targetPlace(target)
	if err != nil {
		return err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return err
	}
	reactions, err := f.reactions(ctx, target)
	if err != nil {
		return err
	}
	for _, given := range reactions {
		if given.GetContent() != string(reaction) || !task.SameLogin(loginOf(given.User), self) {
			continue
		}
		if comment == 0 {
			_, err = f.client.Reactions.DeleteIssueReaction(ctx, at.owner, at.name, at.number, given.GetID())
		} else {
			_, err = f.client.Reactions.DeleteIssueCommentReaction(ctx, at.owner, at.name, comment, given.GetID())
		}
		if err != nil {
			return callError(err, "take back a reaction to %s", target.Key)
		}
	}
	return nil
}

// Reactions returns everyone's reactions.
func (f *Forge) Reactions(ctx context.Context, target forge.Target) ([]forge.ReactionBy, error) {
	reactions, err := f.reactions(ctx, target)
	if err != nil {
		return nil, err
	}
	var all []forge.ReactionBy
	for _, given := range reactions {
		if reaction := forge.Reaction(given.GetContent()); slices.Contains(forge.ReactionKinds, reaction) {
			all = append(all, forge.ReactionBy{Reaction: reaction, Login: loginOf(given.User)})
		}
	}
	return all, nil
}

func (f *Forge) reactions(ctx context.Context, target forge.Target) ([]*gh.Reaction, error) {
	at, comment, err := targetPlace(target)
	if err != nil {
		return nil, err
	}
	options := gh.ListReactionOptions{ListOptions: gh.ListOptions{PerPage: perPage}}
	listing := f.client.Reactions.ListIssueReactionsIter(ctx, at.owner, at.name, at.number, &options)
	if comment != 0 {
		listing = f.client.Reactions.ListIssueCommentReactionsIter(ctx, at.owner, at.name, comment, &options)
	}
	var reactions []*gh.Reaction
	for reaction, err := range listing {
		if err != nil {
			return nil, callError(err, "read the reactions to %s", target.Key)
		}
		reactions = append(reactions, reaction)
	}
	return reactions, nil
}
