package board

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// CreateIssue opens an issue. To label and to assign it from the beginning is for
// who may write.
func (f *Forge) CreateIssue(ctx context.Context, repository string, issue forge.NewIssue) (forge.Item, error) {
	needed := forge.ReadAccess
	if len(issue.Labels)+len(issue.Assignees) > 0 {
		needed = forge.WriteAccess
	}
	if err := f.requireRepository(ctx, repository, needed); err != nil {
		return forge.Item{}, err
	}
	title, err := titleOf("an issue", issue.Title)
	if err != nil {
		return forge.Item{}, err
	}
	wanted := store.BoardItem{
		Repository: repository, Kind: task.Issue, Title: title, Body: forge.Clean(issue.Body), Author: f.self, Labels: issue.Labels,
	}
	for _, label := range issue.Labels {
		if err := checkLabel(label); err != nil {
			return forge.Item{}, err
		}
	}
	for _, login := range issue.Assignees {
		user, err := f.assignable(ctx, login)
		if err != nil {
			return forge.Item{}, err
		}
		wanted.Assignees = append(wanted.Assignees, user)
	}
	made, err := f.board.store.AddBoardItem(ctx, wanted)
	if err != nil {
		return forge.Item{}, storeError("open an issue in "+repository, err)
	}
	return f.whole(ctx, made)
}

// maxTitle is how many characters a title may have.
const maxTitle = 500

// titleOf is a title as it is kept: one line.
func titleOf(what, title string) (string, error) {
	title = textfmt.OneLine(forge.Clean(title))
	switch length := utf8.RuneCountInString(title); {
	case length == 0:
		return "", task.Errorf(task.Invalid, "%s needs a title", what)
	case length > maxTitle:
		return "", task.Errorf(task.Invalid, "the title has %d characters; %d are allowed", length, maxTitle)
	default:
		return title, nil
	}
}

// SetState closes an item or opens it again. It is for the author and for who may
// write.
func (f *Forge) SetState(ctx context.Context, key task.Key, state forge.ItemState) error {
	found, err := f.item(ctx, key, forge.ReadAccess)
	if err != nil {
		return err
	}
	if !task.SameLogin(found.Author, f.self) {
		if err := f.require(ctx, key.Repository, forge.WriteAccess); err != nil {
			return err
		}
	}
	if state != forge.Open && state != forge.Closed {
		return task.Errorf(task.Invalid, "an item can be opened or closed, not %q", string(state))
	}
	wanted := store.BoardState(state)
	_, err = f.board.store.EditBoardItem(ctx, key.Repository, key.Number, store.BoardEdit{State: &wanted}, f.self)
	return storeError("change the state of "+key.String(), err)
}

// Comments returns the comments in an item's conversation.
func (f *Forge) Comments(ctx context.Context, key task.Key) ([]task.Comment, error) {
	if _, err := f.item(ctx, key, forge.ReadAccess); err != nil {
		return nil, err
	}
	found, err := f.board.store.BoardComments(ctx, key.Repository, key.Number)
	if err != nil {
		return nil, storeError("read the comments on "+key.String(), err)
	}
	show, err := f.people(ctx)
	if err != nil {
		return nil, err
	}
	var comments []task.Comment
	for _, one := range found {
		comments = append(comments, commentOf(one, show))
	}
	return comments, nil
}

func commentOf(c store.BoardComment, show func(string) string) task.Comment {
	return task.Comment{
		ID: c.ID, Kind: task.ItemComment, Author: show(c.Author), Body: c.Body, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

// CreateComment writes a comment.
func (f *Forge) CreateComment(ctx context.Context, key task.Key, post forge.Post) (task.Comment, error) {
	if post.Repeat {
		if comment, found, err := f.FindComment(ctx, key, post.Marker); err != nil || found {
			return comment, err
		}
	}
	return f.AddComment(ctx, key, post.Body())
}

// AddComment writes a comment of a person, as it is.
func (f *Forge) AddComment(ctx context.Context, key task.Key, body string) (task.Comment, error) {
	if _, err := f.item(ctx, key, forge.ReadAccess); err != nil {
		return task.Comment{}, err
	}
	body = forge.Clean(body)
	if strings.TrimSpace(body) == "" {
		return task.Comment{}, task.Errorf(task.Invalid, "a comment needs a text")
	}
	made, err := f.board.store.AddBoardComment(ctx, store.BoardComment{
		Repository: key.Repository, Number: key.Number, Author: f.self, Body: body,
	})
	return f.comment(ctx, "comment on "+key.String(), made, err)
}

func (f *Forge) comment(ctx context.Context, what string, c store.BoardComment, err error) (task.Comment, error) {
	if err != nil {
		return task.Comment{}, storeError(what, err)
	}
	show, err := f.people(ctx)
	if err != nil {
		return task.Comment{}, err
	}
	return commentOf(c, show), nil
}

// EditComment replaces the text of a comment of ours.
func (f *Forge) EditComment(ctx context.Context, key task.Key, id string, post forge.Post) (task.Comment, error) {
	return f.ChangeComment(ctx, key, id, post.Body())
}

// ChangeComment replaces the text of a person's own comment, as it is.
func (f *Forge) ChangeComment(ctx context.Context, key task.Key, id, body string) (task.Comment, error) {
	if err := f.ownComment(ctx, key, id, false); err != nil {
		return task.Comment{}, err
	}
	body = forge.Clean(body)
	if strings.TrimSpace(body) == "" {
		return task.Comment{}, task.Errorf(task.Invalid, "a comment needs a text")
	}
	edited, err := f.board.store.EditBoardComment(ctx, id, body)
	return f.comment(ctx, "edit a comment on "+key.String(), edited, err)
}

// DeleteComment removes a comment. It is for its author and for administrators.
func (f *Forge) DeleteComment(ctx context.Context, key task.Key, id string) error {
	if err := f.ownComment(ctx, key, id, true); err != nil {
		return err
	}
	return storeError("remove a comment on "+key.String(), f.board.store.DeleteBoardComment(ctx, id))
}

// ownComment refuses a comment that is not on the item, and one of someone else
// unless an administrator may.
func (f *Forge) ownComment(ctx context.Context, key task.Key, id string, administrators bool) error {
	if _, err := f.item(ctx, key, forge.ReadAccess); err != nil {
		return err
	}
	comments, err := f.board.store.BoardComments(ctx, key.Repository, key.Number)
	if err != nil {
		return storeError("read the comments on "+key.String(), err)
	}
	at := slices.IndexFunc(comments, func(c store.BoardComment) bool { return c.ID == id })
	switch {
	case at < 0:
		return task.Errorf(task.NotFound, "there is no comment %q on %s", id, key)
	case task.SameLogin(comments[at].Author, f.self):
		return nil
	case administrators:
		return f.require(ctx, key.Repository, forge.AdminAccess)
	default:
		return task.Errorf(task.Forbidden, "the comment is someone else's")
	}
}

// FindComment looks for a comment of ours by its marker.
func (f *Forge) FindComment(ctx context.Context, key task.Key, marker forge.Marker) (task.Comment, bool, error) {
	comments, err := f.Comments(ctx, key)
	if err != nil {
		return task.Comment{}, false, err
	}
	comment, found := forge.FindMarked(comments, f.self, marker)
	return comment, found, nil
}

func checkLabel(name string) error {
	if name == "" || name != strings.TrimSpace(forge.Clean(name)) || strings.Contains(name, "\n") {
		return task.Errorf(task.Invalid, "%q cannot be a label", name)
	}
	return nil
}

// AddLabel puts a label on an item.
func (f *Forge) AddLabel(ctx context.Context, key task.Key, name string) error {
	if err := checkLabel(name); err != nil {
		return err
	}
	return f.setLabel(ctx, key, name, true)
}

// RemoveLabel takes a label off an item.
func (f *Forge) RemoveLabel(ctx context.Context, key task.Key, name string) error {
	return f.setLabel(ctx, key, name, false)
}

func (f *Forge) setLabel(ctx context.Context, key task.Key, name string, on bool) error {
	if _, err := f.item(ctx, key, forge.WriteAccess); err != nil {
		return err
	}
	return storeError("label "+key.String(), f.board.store.SetBoardLabel(ctx, key.Repository, key.Number, name, on, f.self))
}

// Assign adds an assignee.
func (f *Forge) Assign(ctx context.Context, key task.Key, login string) error {
	if _, err := f.item(ctx, key, forge.WriteAccess); err != nil {
		return err
	}
	user, err := f.assignable(ctx, login)
	if err != nil {
		return err
	}
	return storeError("assign "+key.String(), f.board.store.SetBoardAssignee(ctx, key.Repository, key.Number, user, true, f.self))
}

// assignable returns the login, as it was registered, of someone who can be
// assigned.
func (f *Forge) assignable(ctx context.Context, login string) (string, error) {
	user, err := f.board.store.BoardUser(ctx, login)
	if code := task.CodeOf(err); code != "" && code != task.NotFound {
		return "", storeError("look for "+login, err)
	}
	if accessOf(user) == forge.NoAccess {
		return "", task.Errorf(task.Invalid, "there is no %q on the board who could be assigned", login)
	}
	return user.Login, nil
}

// Unassign removes an assignee.
func (f *Forge) Unassign(ctx context.Context, key task.Key, login string) error {
	if _, err := f.item(ctx, key, forge.WriteAccess); err != nil {
		return err
	}
	return storeError("unassign "+key.String(), f.board.store.SetBoardAssignee(ctx, key.Repository, key.Number, login, false, f.self))
}

// React adds a reaction.
func (f *Forge) React(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	return f.setReaction(ctx, target, reaction, true)
}

// Unreact takes a reaction away.
func (f *Forge) Unreact(ctx context.Context, target forge.Target, reaction forge.Reaction) error {
	return f.setReaction(ctx, target, reaction, false)
}

func (f *Forge) setReaction(ctx context.Context, target forge.Target, reaction forge.Reaction, on bool) error {
	if _, err := f.item(ctx, target.Key, forge.ReadAccess); err != nil {
		return err
	}
	if !slices.Contains(forge.ReactionKinds, reaction) {
		return task.Errorf(task.Invalid, "there is no reaction %q", string(reaction))
	}
	return storeError("react on "+target.Key.String(), f.board.store.SetBoardReaction(ctx, store.BoardReaction{
		Repository: target.Key.Repository, Number: target.Key.Number, Comment: target.Comment, Login: f.self, Reaction: string(reaction),
	}, on))
}

// Reactions returns everyone's reactions.
func (f *Forge) Reactions(ctx context.Context, target forge.Target) ([]forge.ReactionBy, error) {
	if _, err := f.item(ctx, target.Key, forge.ReadAccess); err != nil {
		return nil, err
	}
	found, err := f.board.store.BoardReactions(ctx, target.Key.Repository, target.Key.Number, target.Comment)
	if err != nil {
		return nil, storeError("read the reactions on "+target.Key.String(), err)
	}
	show, err := f.people(ctx)
	if err != nil {
		return nil, err
	}
	var reactions []forge.ReactionBy
	for _, one := range found {
		reactions = append(reactions, forge.ReactionBy{Reaction: forge.Reaction(one.Reaction), Login: show(one.Login)})
	}
	return reactions, nil
}
