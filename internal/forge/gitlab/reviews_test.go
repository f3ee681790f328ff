package gitlab_test

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// lastReviews returns what each reviewer last decided.
func (c *call) lastReviews() []*forgeworld.Review {
	var last []*forgeworld.Review
	for _, review := range slices.Backward(c.item.Reviews) {
		if !slices.ContainsFunc(last, func(r *forgeworld.Review) bool { return r.Author == review.Author }) {
			last = append(last, review)
		}
	}
	slices.Reverse(last)
	return last
}

func (c *call) approvals() object {
	by, mine := []object{}, false
	for _, review := range c.lastReviews() {
		if review.Verdict == forge.Approve {
			approval := object{"user": person(review.Author)}
			if !c.noApprovedAt {
				approval["approved_at"] = stamp(review.At)
			}
			by = append(by, approval)
			mine = mine || review.Author == c.user
		}
	}
	return object{
		"id": c.item.ID, "iid": c.item.Number, "project_id": c.repo.ID, "approved": len(by) > 0, "approved_by": by,
		"user_has_approved": mine, "user_can_approve": !mine, "updated_at": stamp(c.item.UpdatedAt),
	}
}

func approve(c *call) reply {
	if c.item.Author == c.user || c.approvals()["user_has_approved"] == true {
		return refusal(401, "401 Unauthorized")
	}
	if sha := read[struct{ SHA string }](c).SHA; sha != "" && sha != c.item.HeadCommit(c.t) {
		return refusal(409, "SHA does not match HEAD of source branch: "+c.item.HeadCommit(c.t))
	}
	c.item.Submit(c.user, forge.Approve, "", c.item.HeadCommit(c.t), nil)
	return created(c.approvals())
}

// reviewers is everyone who reviewed, as if they were made reviewers when the merge request
// was opened: created_at is when that was done, whatever they decide later.
func (c *call) reviewers() []object {
	states := map[forge.Verdict]string{forge.Approve: "approved", forge.RequestChanges: "requested_changes", forge.Remark: "reviewed"}
	all := []object{}
	for _, review := range c.lastReviews() {
		all = append(all, object{"user": person(review.Author), "state": states[review.Verdict], "created_at": stamp(c.item.CreatedAt)})
	}
	return all
}

// reviewNote is what GitLab notes itself when somebody reviews.
func (c *call) reviewNote(review *forgeworld.Review) object {
	bodies := map[forge.Verdict]string{
		forge.Approve: "approved this merge request", forge.RequestChanges: "requested changes",
		forge.Remark: "left review comments without approving or requesting changes",
	}
	made := c.noteObject(c.item, &forgeworld.Comment{ID: review.ID, Author: review.Author, Body: bodies[review.Verdict], CreatedAt: review.At, UpdatedAt: review.At})
	made["system"] = true
	return made
}

func listDrafts(c *call) reply {
	var mine []*draft
	for _, draft := range c.drafts[c.item] {
		if draft.author == c.user {
			mine = append(mine, draft)
		}
	}
	return page(c, mine, draftObject)
}

func draftObject(d *draft) object {
	return object{"id": d.id, "author_id": d.author.ID, "merge_request_id": 1, "resolve_discussion": false, "discussion_id": nil, "note": d.note, "commit_id": nil, "line_code": nil}
}

func createDraft(c *call) reply {
	post := read[struct {
		Note     string
		Position *struct {
			BaseSHA  string `json:"base_sha"`
			StartSHA string `json:"start_sha"`
			HeadSHA  string `json:"head_sha"`
			Type     string `json:"position_type"`
			OldPath  string `json:"old_path"`
			NewPath  string `json:"new_path"`
			OldLine  *int   `json:"old_line"`
			NewLine  *int   `json:"new_line"`
		}
	}](c)
	made := &draft{id: c.world.NextID(), author: c.user, note: post.Note}
	if at := post.Position; at != nil {
		if at.BaseSHA == "" || at.StartSHA == "" || at.HeadSHA != c.item.HeadCommit(c.t) || at.Type != "text" || at.OldPath == "" || at.NewPath == "" {
			return refusal(400, "position is incomplete")
		}
		if at.NewLine != nil {
			made.anchor = forge.Anchor{Path: at.NewPath, Side: forge.NewSide, Line: *at.NewLine}
		} else if at.OldLine != nil {
			made.anchor = forge.Anchor{Path: at.NewPath, Side: forge.OldSide, Line: *at.OldLine}
		}
		if !c.item.Shows(c.t, made.anchor) {
			return refusal(400, object{"line_code": []string{"can't be blank", "must be a valid line code"}})
		}
	}
	c.drafts[c.item] = append(c.drafts[c.item], made)
	return created(draftObject(made))
}

func deleteDraft(c *call) reply {
	c.drafts[c.item] = slices.DeleteFunc(c.drafts[c.item], func(d *draft) bool { return strconv.FormatInt(d.id, 10) == c.param["draft_id"] })
	return reply{status: 204}
}

// publish makes notes of all drafts of the user.
func publish(c *call) reply {
	verdict := forge.Remark
	if read[struct {
		State string `json:"reviewer_state"`
	}](c).State == "requested_changes" {
		verdict = forge.RequestChanges
	}
	head := c.item.HeadCommit(c.t)
	var comments []forgeworld.LineComment
	for _, draft := range c.drafts[c.item] {
		if draft.author != c.user {
			continue
		}
		if draft.anchor == (forge.Anchor{}) {
			c.item.Comment(c.user, draft.note)
		} else {
			comments = append(comments, forgeworld.LineComment{Anchor: draft.anchor, Body: draft.note})
		}
	}
	c.drafts[c.item] = slices.DeleteFunc(c.drafts[c.item], func(d *draft) bool { return d.author == c.user })
	c.item.Submit(c.user, verdict, "", head, comments)
	return reply{status: 204}
}

func discussionID(thread *forgeworld.Thread) string { return fmt.Sprintf("%040x", thread.ID) }

func (c *call) discussion(thread *forgeworld.Thread) object {
	notes := []object{}
	for _, comment := range thread.Comments {
		notes = append(notes, c.lineNote(c.item, thread, comment))
	}
	return object{"id": discussionID(thread), "individual_note": false, "notes": notes}
}

func (c *call) thread() *forgeworld.Thread {
	for _, thread := range c.item.Threads {
		if discussionID(thread) == c.param["discussion_id"] {
			return thread
		}
	}
	return nil
}

func getDiscussion(c *call) reply {
	if thread := c.thread(); thread != nil {
		return ok(c.discussion(thread))
	}
	return notFound
}

func replyTo(c *call) reply {
	thread := c.thread()
	if thread == nil {
		return notFound
	}
	comment := c.world.NewComment(c.user, read[struct{ Body string }](c).Body)
	thread.Comments = append(thread.Comments, comment)
	return created(c.lineNote(c.item, thread, comment))
}
