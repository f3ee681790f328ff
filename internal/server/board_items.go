package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type (
	listingInput struct {
		InRepository
		State    string   `query:"state" enum:"open,closed,merged,all" default:"open"`
		Label    []string `query:"label" doc:"Only items with all of these" maxItems:"100"`
		Assignee string   `query:"assignee"`
		After    int64    `query:"after" doc:"Only items after this number" minimum:"0"`
		Limit    int      `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	}
	issueInput struct {
		InRepository
		Body wire.NewBoardIssue
	}
	changeInput struct {
		OnItem
		Body wire.BoardChange
	}
	textInput struct {
		OnItem
		Body wire.BoardText
	}
	editInput struct {
		OnItem
		Comment string `path:"comment"`
		Body    wire.BoardText
	}
	removeInput struct {
		OnItem
		Comment string `path:"comment"`
	}
	labelInput struct {
		OnItem
		Body wire.BoardLabel
	}
	unlabelInput struct {
		OnItem
		Label string `query:"label" required:"true"`
	}
	assignInput struct {
		OnItem
		Body wire.BoardLogin
	}
	unassignInput struct {
		OnItem
		Login string `query:"login" required:"true"`
	}

	boardItemsOutput    struct{ Body wire.BoardItems }
	boardItemOutput     struct{ Body wire.BoardItem }
	boardDetailsOutput  struct{ Body wire.BoardDetails }
	boardCommentsOutput struct{ Body wire.BoardComments }
	boardCommentOutput  struct{ Body wire.BoardComment }
	timelineOutput      struct{ Body wire.BoardTimeline }
)

// itemsPath is where the items of a kind are in the API.
func itemsPath(kind task.ItemKind) string { return boardPath + "/{owner}/{name}/" + string(kind) + "s" }

func (a boardAPI) registerIssues() {
	onBoard(a, access.Operator, huma.Operation{
		OperationID: "create-board-issue", Method: http.MethodPost, Path: itemsPath(task.Issue), Summary: "Create an issue",
		DefaultStatus: http.StatusCreated,
	}, createIssue)
}

// registerItems adds what can be done with issues and pull requests alike.
func (a boardAPI) registerItems(kind task.ItemKind) {
	operation := func(verb, method, below, summary string) huma.Operation {
		return huma.Operation{
			OperationID: verb + "-board-" + string(kind), Method: method, Path: itemsPath(kind) + below, Summary: summary + " (" + string(kind) + ")",
		}
	}
	onBoard(a, access.Viewer, operation("list", http.MethodGet, "", "Items, by number"), listItems(kind))
	onBoard(a, access.Viewer, operation("get", http.MethodGet, "/{number}", "One item with all that belongs to it"),
		func(ctx context.Context, person *board.Forge, input *OnItem) (*boardDetailsOutput, error) {
			details, err := ReadBoardItem(ctx, person, input.key(kind))
			return &boardDetailsOutput{details}, err
		})
	onBoard(a, access.Operator, operation("change", http.MethodPatch, "/{number}", "Close an item or open it again"),
		changed(kind, func(ctx context.Context, person *board.Forge, key task.Key, input *changeInput) error {
			return person.SetState(ctx, key, forge.ItemState(input.Body.State))
		}))
	onBoard(a, access.Operator, operation("label", http.MethodPost, "/{number}/labels", "Put a label on an item"),
		changed(kind, func(ctx context.Context, person *board.Forge, key task.Key, input *labelInput) error {
			return person.AddLabel(ctx, key, input.Body.Label)
		}))
	onBoard(a, access.Operator, operation("unlabel", http.MethodDelete, "/{number}/labels", "Take a label off an item"),
		changed(kind, func(ctx context.Context, person *board.Forge, key task.Key, input *unlabelInput) error {
			return person.RemoveLabel(ctx, key, input.Label)
		}))
	onBoard(a, access.Operator, operation("assign", http.MethodPost, "/{number}/assignees", "Assign someone to an item"),
		changed(kind, func(ctx context.Context, person *board.Forge, key task.Key, input *assignInput) error {
			return person.Assign(ctx, key, input.Body.Login)
		}))
	onBoard(a, access.Operator, operation("unassign", http.MethodDelete, "/{number}/assignees", "Unassign someone from an item"),
		changed(kind, func(ctx context.Context, person *board.Forge, key task.Key, input *unassignInput) error {
			return person.Unassign(ctx, key, input.Login)
		}))
	a.registerComments(kind, operation)
}

func (a boardAPI) registerComments(kind task.ItemKind, operation func(verb, method, below, summary string) huma.Operation) {
	onBoard(a, access.Viewer, operation("timeline-of", http.MethodGet, "/{number}/timeline", "What happened to an item"),
		func(ctx context.Context, person *board.Forge, input *OnItem) (*timelineOutput, error) {
			found, err := person.Timeline(ctx, input.key(kind))
			return &timelineOutput{wire.BoardTimeline{Timeline: eachOf(found, boardEventOf)}}, err
		})
	onBoard(a, access.Viewer, operation("comments-on", http.MethodGet, "/{number}/comments", "The comments on an item"),
		func(ctx context.Context, person *board.Forge, input *OnItem) (*boardCommentsOutput, error) {
			found, err := person.Comments(ctx, input.key(kind))
			return &boardCommentsOutput{wire.BoardComments{Comments: eachOf(found, BoardCommentOf)}}, err
		})
	comment := operation("comment-on", http.MethodPost, "/{number}/comments", "Comment on an item")
	comment.DefaultStatus = http.StatusCreated
	onBoard(a, access.Operator, comment,
		func(ctx context.Context, person *board.Forge, input *textInput) (*boardCommentOutput, error) {
			if err := wire.CheckText(input.Body.Body); err != nil {
				return nil, err
			}
			made, err := person.AddComment(ctx, input.key(kind), input.Body.Body)
			return &boardCommentOutput{BoardCommentOf(made)}, err
		})
	onBoard(a, access.Operator, operation("edit-comment-on", http.MethodPatch, "/{number}/comments/{comment}", "Edit a comment of your own on an item"),
		func(ctx context.Context, person *board.Forge, input *editInput) (*boardCommentOutput, error) {
			if err := wire.CheckText(input.Body.Body); err != nil {
				return nil, err
			}
			edited, err := person.ChangeComment(ctx, input.key(kind), input.Comment, input.Body.Body)
			return &boardCommentOutput{BoardCommentOf(edited)}, err
		})
	onBoard(a, access.Operator, operation("remove-comment-on", http.MethodDelete, "/{number}/comments/{comment}", "Remove a comment on an item"),
		removeComment(kind))
}

func removeComment(kind task.ItemKind) func(context.Context, *board.Forge, *removeInput) (*struct{}, error) {
	return func(ctx context.Context, person *board.Forge, input *removeInput) (*struct{}, error) {
		return nil, person.DeleteComment(ctx, input.key(kind), input.Comment)
	}
}

func listItems(kind task.ItemKind) func(context.Context, *board.Forge, *listingInput) (*boardItemsOutput, error) {
	return func(ctx context.Context, person *board.Forge, input *listingInput) (*boardItemsOutput, error) {
		listing := forge.Listing{Repository: input.repository(), Kind: kind, Labels: input.Label, Assignee: input.Assignee}
		if input.State != "all" {
			listing.State = forge.ItemState(input.State)
		}
		found, err := person.Browse(ctx, listing)
		if err != nil {
			return nil, err
		}
		output := boardItemsOutput{wire.BoardItems{Items: []wire.BoardItem{}}}
		for _, item := range found {
			if item.Key.Number > input.After && len(output.Body.Items) < input.Limit {
				output.Body.Items = append(output.Body.Items, BoardItemOf(item))
			}
		}
		return &output, nil
	}
}

func createIssue(ctx context.Context, person *board.Forge, input *issueInput) (*boardItemOutput, error) {
	if err := wire.CheckText(input.Body.Body); err != nil {
		return nil, err
	}
	made, err := person.CreateIssue(ctx, input.repository(), forge.NewIssue(input.Body))
	return &boardItemOutput{BoardItemOf(made)}, err
}

// changed is an operation that changes an item and answers with the item as it
// is then.
func changed[Input interface{ key(task.ItemKind) task.Key }](
	kind task.ItemKind, do func(context.Context, *board.Forge, task.Key, *Input) error,
) func(context.Context, *board.Forge, *Input) (*boardItemOutput, error) {
	return func(ctx context.Context, person *board.Forge, input *Input) (*boardItemOutput, error) {
		key := (*input).key(kind)
		if err := do(ctx, person, key, input); err != nil {
			return nil, err
		}
		item, err := person.Item(ctx, key)
		return &boardItemOutput{BoardItemOf(item)}, err
	}
}
