package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/task"
)

func (p *Pages) registerBoardActions(mux *http.ServeMux) {
	mux.HandleFunc("POST /board/import", p.act(action{name: "board.import", role: access.Operator, noted: []string{"name", "source"}, do: p.importRepository}))
	mux.HandleFunc("POST "+repositoryPath+"/issues", p.act(action{name: "issue.create", role: access.Operator, noted: []string{"title"}, do: p.createIssue}))
	mux.HandleFunc("POST "+repositoryPath+"/pulls", p.act(action{name: "pull.create", role: access.Operator, noted: []string{"title", "head", "base"}, do: p.createPull}))
	mux.HandleFunc("POST "+repositoryPath+"/{kind}/many", p.signedIn(access.Operator, p.changeItems))
	on := func(below, name string, do onItem, noted ...string) {
		mux.HandleFunc("POST "+itemPath+"/"+below, p.act(action{name: name, role: access.Operator, noted: noted, do: p.onItem(do)}))
	}
	on("comments", "item.comment", func(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
		_, err := hands.AddComment(ctx, key, r.PostFormValue("body"))
		return err
	})
	on("comments/{comment}/edit", "comment.edit", func(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
		_, err := hands.ChangeComment(ctx, key, r.PathValue("comment"), r.PostFormValue("body"))
		return err
	})
	on("comments/{comment}/delete", "comment.delete", func(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
		return hands.DeleteComment(ctx, key, r.PathValue("comment"))
	})
	on("label", "item.label", func(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
		return hands.AddLabel(ctx, key, strings.TrimSpace(r.PostFormValue("label")))
	}, "label")
	on("unlabel", "item.unlabel", func(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
		return hands.RemoveLabel(ctx, key, r.PostFormValue("label"))
	}, "label")
	on("assign", "item.assign", func(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
		return hands.Assign(ctx, key, strings.TrimSpace(r.PostFormValue("login")))
	}, "login")
	on("unassign", "item.unassign", func(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
		return hands.Unassign(ctx, key, r.PostFormValue("login"))
	}, "login")
	on("close", "item.close", func(ctx context.Context, hands *board.Forge, key task.Key, _ *http.Request) error {
		return hands.SetState(ctx, key, forge.Closed)
	})
	on("reopen", "item.reopen", func(ctx context.Context, hands *board.Forge, key task.Key, _ *http.Request) error {
		return hands.SetState(ctx, key, forge.Open)
	})
	on("merge", "pull.merge", func(ctx context.Context, hands *board.Forge, key task.Key, _ *http.Request) error {
		_, err := hands.Merge(ctx, key)
		return err
	})
	on("review", "pull.review", submitReview, "verdict")
	on("line", "pull.remark", remark, "path", "line")
	on("threads/{thread}", "pull.answer", func(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
		_, err := hands.AddReply(ctx, key, r.PathValue("thread"), r.PostFormValue("body"))
		return err
	})
}

// changeItems closes or opens several items.
func (p *Pages) changeItems(w http.ResponseWriter, r *http.Request, v visit) {
	set := func(state forge.ItemState) func(context.Context, visit, string) error {
		return func(ctx context.Context, v visit, number string) error {
			r.SetPathValue("number", number)
			key, err := keyOf(r)
			if err != nil {
				return err
			}
			hands, err := p.person(ctx, v)
			if err != nil {
				return err
			}
			return hands.SetState(ctx, key, state)
		}
	}
	p.many(w, r, v, manyAction{
		name: "item", path: "/board/" + repositoryOf(r) + "/" + r.PathValue("kind") + "/",
		do: map[string]func(context.Context, visit, string) error{"close": set(forge.Closed), "reopen": set(forge.Open)},
	})
}

// itemChoices are what can be done with many items.
func itemChoices(v visit) []manyChoice {
	return []manyChoice{
		{"close", "", v.t("item.close"), v.t("item.close_many_sure")},
		{"reopen", "", v.t("item.reopen"), v.t("item.reopen_many_sure")},
	}
}

// onItem is something that a person does to an item.
type onItem func(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error

// onItem leads back to the item, or to where the form says.
func (p *Pages) onItem(do onItem) func(r *http.Request, v visit) (string, error) {
	return func(r *http.Request, v visit) (string, error) {
		key, err := keyOf(r)
		if err != nil {
			return "", err
		}
		hands, err := p.person(r.Context(), v)
		if err != nil {
			return "", err
		}
		if err := do(r.Context(), hands, key, r); err != nil {
			return "", err
		}
		if next := r.PostFormValue("next"); next != "" {
			return safeNext(next), nil
		}
		return itemURL(key), nil
	}
}

func (p *Pages) createIssue(r *http.Request, v visit) (string, error) {
	hands, err := p.person(r.Context(), v)
	if err != nil {
		return "", err
	}
	issue := forge.NewIssue{Title: strings.TrimSpace(r.PostFormValue("title")), Body: r.PostFormValue("body")}
	for label := range strings.SplitSeq(r.PostFormValue("labels"), ",") {
		if label = strings.TrimSpace(label); label != "" {
			issue.Labels = append(issue.Labels, label)
		}
	}
	if r.PostFormValue("bot") != "" {
		issue.Assignees = []string{p.Board.Bot()}
	}
	made, err := hands.CreateIssue(r.Context(), repositoryOf(r), issue)
	return itemURL(made.Key), err
}

// createPull opens a pull request, or leads to the one that is open for the same
// branches.
func (p *Pages) createPull(r *http.Request, v visit) (string, error) {
	hands, err := p.person(r.Context(), v)
	if err != nil {
		return "", err
	}
	made, _, err := hands.CreatePull(r.Context(), repositoryOf(r), forge.NewPull{
		Title: strings.TrimSpace(r.PostFormValue("title")), Body: r.PostFormValue("body"),
		Head: r.PostFormValue("head"), Base: r.PostFormValue("base"), Draft: r.PostFormValue("draft") != "",
	})
	return itemURL(made.Key), err
}

// importRepository takes in a repository by its URL. Git over ssh would use the
// keys of the server, and a folder of its machine is only for those who rule it.
func (p *Pages) importRepository(r *http.Request, v visit) (string, error) {
	name, source := strings.TrimSpace(r.PostFormValue("name")), strings.TrimSpace(r.PostFormValue("source"))
	scheme, rest, found := strings.Cut(source, "://")
	switch {
	case found && rest != "" && (scheme == "https" || scheme == "http" || scheme == "git"):
	case strings.HasPrefix(source, "/") && v.admin():
	default:
		return "", task.Errorf(task.Invalid, "the source cannot be imported").
			WithHint("give a URL with https, http or git; admins can also give a folder of the server's machine")
	}
	hands, err := p.person(r.Context(), v)
	if err != nil {
		return "", err
	}
	made, err := hands.Import(r.Context(), name, source)
	return "/board/" + made.Name, err
}

func submitReview(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
	verdict := forge.Verdict(r.PostFormValue("verdict"))
	if verdict != forge.Approve && verdict != forge.RequestChanges && verdict != forge.Remark {
		return task.Errorf(task.Invalid, "choose a verdict")
	}
	_, err := hands.AddReview(ctx, key, forge.NewReview{Verdict: verdict, Body: r.PostFormValue("body"), Commit: r.PostFormValue("commit")})
	return err
}

// remark is a comment on one line: a review that says nothing else.
func remark(ctx context.Context, hands *board.Forge, key task.Key, r *http.Request) error {
	anchor := forge.Anchor{Path: r.PostFormValue("path"), Side: forge.Side(r.PostFormValue("side"))}
	if _, err := fmt.Sscan(r.PostFormValue("line"), &anchor.Line); err != nil {
		return task.Wrap(task.Invalid, err, "the line is not a number")
	}
	_, err := hands.AddReview(ctx, key, forge.NewReview{
		Verdict: forge.Remark, Commit: r.PostFormValue("commit"), Lines: []forge.LineRemark{{Anchor: anchor, Body: r.PostFormValue("body")}},
	})
	return err
}
