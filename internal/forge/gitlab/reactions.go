package gitlab

import (
	"context"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// emoji are the reactions by GitLab's names.
var emoji = map[forge.Reaction]string{
	forge.ThumbsUp:   "thumbsup",
	forge.ThumbsDown: "thumbsdown",
	forge.Laugh:      "laughing",
	forge.Hooray:     "tada",
	forge.Confused:   "confused",
	forge.Heart:      "heart",
	forge.Rocket:     "rocket",
	forge.Eyes:       "eyes",
}

// reactionNamed finds the reaction for a name of GitLab's, which has several for
// some.
var reactionNamed = map[string]forge.Reaction{
	"thumbsup": forge.ThumbsUp, "+1": forge.ThumbsUp,
	"thumbsdown": forge.ThumbsDown, "-1": forge.ThumbsDown,
	"laughing": forge.Laugh, "satisfied": forge.Laugh, "smile": forge.Laugh,
	"tada": forge.Hooray, "confused": forge.Confused, "heart": forge.Heart,
	"rocket": forge.Rocket, "eyes": forge.Eyes,
}

// checkTarget returns the comment's id, or 0 for the item itself.
func checkTarget(target forge.Target) (int64, error) {
	if err := checkKey(target.Key); err != nil || target.Comment == "" {
		return 0, err
	}
	return number(target.Comment)
}

// React adds a reaction of ours. GitLab refuses one that is there, so it looks
// first.
func (f *Forge) React(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	name, known := emoji[reaction]
	if !known {
		return task.Errorf(task.Invalid, "%q is not a reaction", reaction)
	}
	given, err := f.ours(ctx, target, reaction)
	if err != nil || len(given) > 0 {
		return err
	}
	note, err := checkTarget(target)
	if err != nil {
		return err
	}
	key, options := target.Key, gl.CreateAwardEmojiOptions{Name: name}
	switch {
	case key.Kind == task.Pull && note == 0:
		_, _, err = f.client.AwardEmoji.CreateMergeRequestAwardEmoji(key.Repository, key.Number, &options, in(ctx))
	case key.Kind == task.Pull:
		_, _, err = f.client.AwardEmoji.CreateMergeRequestAwardEmojiOnNote(key.Repository, key.Number, note, &options, in(ctx))
	case note == 0:
		_, _, err = f.client.AwardEmoji.CreateIssueAwardEmoji(key.Repository, key.Number, &options, in(ctx))
	default:
		_, _, err = f.client.AwardEmoji.CreateIssuesAwardEmojiOnNote(key.Repository, key.Number, note, &options, in(ctx))
	}
	if err != nil {
		return callError(err, "react to %s", key)
	}
	return nil
}

// Unreact takes a reaction of ours away.
func (f *Forge) Unreact(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	given, err := f.ours(ctx, target, reaction)
	if err != nil {
		return err
	}
	note, err := checkTarget(target)
	if err != nil {
		return err
	}
	key := target.Key
	for _, award := range given {
		switch {
		case key.Kind == task.Pull && note == 0:
			_, err = f.client.AwardEmoji.DeleteMergeRequestAwardEmoji(key.Repository, key.Number, award, in(ctx))
		case key.Kind == task.Pull:
			_, err = f.client.AwardEmoji.DeleteMergeRequestAwardEmojiOnNote(key.Repository, key.Number, note, award, in(ctx))
		case note == 0:
			_, err = f.client.AwardEmoji.DeleteIssueAwardEmoji(key.Repository, key.Number, award, in(ctx))
		default:
			_, err = f.client.AwardEmoji.DeleteIssuesAwardEmojiOnNote(key.Repository, key.Number, note, award, in(ctx))
		}
		if err != nil {
			return callError(err, "take back a reaction to %s", key)
		}
	}
	return nil
}

// Reactions returns everyone's reactions.
func (f *Forge) Reactions(ctx context.Context, target forge.Target) ([]forge.ReactionBy, error) {
	awards, err := f.awards(ctx, target)
	if err != nil {
		return nil, err
	}
	var all []forge.ReactionBy
	for _, award := range awards {
		if reaction, known := reactionNamed[award.Name]; known {
			all = append(all, forge.ReactionBy{Reaction: reaction, Login: userLogin(&award.User)})
		}
	}
	return all, nil
}

// ours returns the ids of our own awards for a reaction.
func (f *Forge) ours(ctx context.Context, target forge.Target, reaction forge.Reaction) ([]int64, error) {
	self, err := f.selfAccount(ctx)
	if err != nil {
		return nil, err
	}
	awards, err := f.awards(ctx, target)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, award := range awards {
		if award.User.ID == self.id && reactionNamed[award.Name] == reaction {
			ids = append(ids, award.ID)
		}
	}
	return ids, nil
}

func (f *Forge) awards(ctx context.Context, target forge.Target) ([]*gl.AwardEmoji, error) {
	note, err := checkTarget(target)
	if err != nil {
		return nil, err
	}
	key, options := target.Key, gl.ListAwardEmojiOptions{}
	options.PerPage = perPage
	awards, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.AwardEmoji, *gl.Response, error) {
		switch {
		case key.Kind == task.Pull && note == 0:
			return f.client.AwardEmoji.ListMergeRequestAwardEmoji(key.Repository, key.Number, &options, page...)
		case key.Kind == task.Pull:
			return f.client.AwardEmoji.ListMergeRequestAwardEmojiOnNote(key.Repository, key.Number, note, &options, page...)
		case note == 0:
			return f.client.AwardEmoji.ListIssueAwardEmoji(key.Repository, key.Number, &options, page...)
		default:
			return f.client.AwardEmoji.ListIssuesAwardEmojiOnNote(key.Repository, key.Number, note, &options, page...)
		}
	})
	if err != nil {
		return nil, callError(err, "read the reactions to %s", key)
	}
	return awards, nil
}
