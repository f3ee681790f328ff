package gitlab_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// route is a part of the interface: its path, the parameters that GitLab
// documents, what its answer is checked against, and what it does.
type route struct {
	path, parameters, schema string
	do                       func(*call) reply
}

func ok(body any) reply      { return reply{status: 200, body: body} }
func created(body any) reply { return reply{status: 201, body: body} }

const (
	listParameters = "state labels assignee_id assignee_username updated_after order_by sort search scope"
	noteParameters = "sort order_by"
	issueChange    = "title description labels add_labels remove_labels assignee_ids state_event discussion_locked milestone_id"
	requestChange  = issueChange + " target_branch reviewer_ids"

	mergeParameters = "auto_merge merge_commit_message should_remove_source_branch squash squash_commit_message sha"
)

// routes lists the parts of the interface.
func routes() []route {
	all := []route{
		{"GET user", "", "user", func(c *call) reply { return ok(person(c.user)) }},
		{"GET users", "username search", "user[]", findUsers},
		{"GET projects", "membership archived order_by sort", "project[]", listProjects},
		{"GET projects/:id", "", "project", func(c *call) reply { return ok(c.project(c.repo)) }},
		{"GET projects/:id/members/all/:user_id", "", "member", member},

		{"GET projects/:id/issues", listParameters, "issue[]", func(c *call) reply { return page(c, c.listed(task.Issue), c.issue) }},
		{"GET projects/:id/issues/:issue_iid", "", "issue", func(c *call) reply { return ok(c.movedIssue()) }},
		{"PUT projects/:id/issues/:issue_iid", issueChange, "issue", func(c *call) reply { return update(c, c.issue) }},
		{"GET projects/:id/issues/:issue_iid/related_merge_requests", "", "merge_request[]", related},
		{"GET projects/:id/issues/:issue_iid/links", "", "", links},
		{"GET projects/:id/merge_requests", listParameters + " source_branch target_branch", "merge_request[]", func(c *call) reply { return page(c, c.listed(task.Pull), c.mergeRequest) }},
		{"POST projects/:id/merge_requests", "source_branch target_branch title description", "merge_request", openRequest},
		{"GET projects/:id/merge_requests/:merge_request_iid", "", "merge_request", func(c *call) reply { return ok(c.mergeRequest(c.item)) }},
		{"PUT projects/:id/merge_requests/:merge_request_iid", requestChange, "merge_request", func(c *call) reply { return update(c, c.mergeRequest) }},
		{"GET projects/:id/merge_requests/:merge_request_iid/raw_diffs", "", "", func(c *call) reply { return ok(c.item.Patch(c.t)) }},

		{"GET projects/:id/merge_requests/:merge_request_iid/approvals", "", "approvals", func(c *call) reply { return ok(c.approvals()) }},
		{"POST projects/:id/merge_requests/:merge_request_iid/approve", "sha", "approvals", approve},
		{"GET projects/:id/merge_requests/:merge_request_iid/reviewers", "", "", func(c *call) reply { return ok(c.reviewers()) }},
		{"GET projects/:id/merge_requests/:merge_request_iid/draft_notes", "order_by sort", "", listDrafts},
		{"POST projects/:id/merge_requests/:merge_request_iid/draft_notes", "note commit_id in_reply_to_discussion_id resolve_discussion position", "", createDraft},
		{"POST projects/:id/merge_requests/:merge_request_iid/draft_notes/bulk_publish", "note internal reviewer_state", "", publish},
		{"DELETE projects/:id/merge_requests/:merge_request_iid/draft_notes/:draft_id", "", "", deleteDraft},
		{"GET projects/:id/merge_requests/:merge_request_iid/discussions", "", "discussion[]", func(c *call) reply { return page(c, c.item.Threads, c.discussion) }},
		{"GET projects/:id/merge_requests/:merge_request_iid/discussions/:discussion_id", "", "discussion", getDiscussion},
		{"PUT projects/:id/merge_requests/:merge_request_iid/discussions/:discussion_id", "resolved", "discussion", resolveDiscussion},
		{"POST projects/:id/merge_requests/:merge_request_iid/discussions/:discussion_id/notes", "body", "note", replyTo},
		{"PUT projects/:id/merge_requests/:merge_request_iid/merge", mergeParameters, "merge_request", mergeRequest},

		{"POST projects/:id/statuses/:sha", "state ref name context target_url description coverage pipeline_id", "", setStatus},
		{"GET projects/:id/repository/commits/:sha/statuses", "ref stage name pipeline_id order_by sort all", "", listStatuses},
		{"GET projects/:id/jobs/:job_id/trace", "", "", trace},
	}
	all = append(all, setupRoutes()...)
	for _, item := range []string{"issues/:issue_iid", "merge_requests/:merge_request_iid"} {
		item = "projects/:id/" + item
		all = append(all,
			route{"GET " + item + "/notes", noteParameters, "note[]", func(c *call) reply { return page(c, c.allNotes(), same) }},
			route{"POST " + item + "/notes", "body internal", "note", createNote},
			route{"PUT " + item + "/notes/:note_id", "body", "note", editNote},
			route{"GET " + item + "/resource_label_events", "", "", labelEvents},
		)
		for _, target := range []string{item, item + "/notes/:note_id"} {
			all = append(all,
				route{"GET " + target + "/award_emoji", "", "award[]", listAwards},
				route{"POST " + target + "/award_emoji", "name", "award", giveAward},
				route{"DELETE " + target + "/award_emoji/:award_id", "", "", takeAward},
			)
		}
	}
	return all
}

func findUsers(c *call) reply {
	found := []*forgeworld.User{}
	if user := c.world.User(c.request.URL.Query().Get("username")); user != nil {
		found = append(found, user)
	}
	return page(c, found, person)
}

func listProjects(c *call) reply {
	var seen []*forgeworld.Repo
	for _, repo := range c.world.Repos {
		if repo.Access[c.user] != forge.NoAccess {
			seen = append(seen, repo)
		}
	}
	return page(c, seen, c.project)
}

var levels = map[forge.Access]int{forge.ReadAccess: 20, forge.WriteAccess: 30, forge.AdminAccess: 50}

func member(c *call) reply {
	for user, access := range c.repo.Access {
		if strconv.FormatInt(user.ID, 10) == c.param["user_id"] && access != forge.NoAccess {
			made := person(user)
			made["access_level"], made["expires_at"] = levels[access], nil
			if user.Login == c.guest {
				made["access_level"] = 10
			}
			return ok(made)
		}
	}
	return notFound
}

// listed returns the items that a listing asks for.
func (c *call) listed(kind task.ItemKind) []*forgeworld.Item {
	query := c.request.URL.Query()
	since, _ := time.Parse(time.RFC3339, query.Get("updated_after"))
	is := func(name, value string) bool { return query.Get(name) == "" || query.Get(name) == value }
	var found []*forgeworld.Item
	for _, item := range c.repo.Items {
		labelled := query.Get("labels") == "" || !slices.ContainsFunc(strings.Split(query.Get("labels"), ","), func(label string) bool {
			return !slices.Contains(item.Labels, label)
		})
		assigned := query.Get("assignee_id") == "" || slices.ContainsFunc(item.Assignees, func(user *forgeworld.User) bool {
			return strconv.FormatInt(user.ID, 10) == query.Get("assignee_id")
		})
		if item.Kind == kind && is("state", state(item)) && labelled && assigned && !item.UpdatedAt.Before(since) &&
			is("source_branch", item.Head) && is("target_branch", item.Base) {
			found = append(found, item)
		}
	}
	if query.Get("sort") != "asc" {
		slices.Reverse(found)
	}
	return found
}

// movedIssue is an issue, with the id of where it was moved to.
func (c *call) movedIssue() object {
	made := c.issue(c.item)
	for _, event := range c.item.Events {
		if event.Kind == "moved" {
			made["moved_to_id"] = event.ID
		}
	}
	return made
}

func update(c *call, show func(*forgeworld.Item) object) reply {
	post := read[struct {
		Title, Description *string
		AddLabels          string   `json:"add_labels"`
		RemoveLabels       string   `json:"remove_labels"`
		AssigneeIDs        *[]int64 `json:"assignee_ids"`
	}](c)
	if post.Title != nil {
		c.item.Title = *post.Title
	}
	if post.Description != nil {
		c.item.Body = *post.Description
	}
	for _, name := range split(post.AddLabels) {
		c.item.AddLabel(c.user, name)
	}
	for _, name := range split(post.RemoveLabels) {
		c.item.RemoveLabel(c.user, name)
	}
	if post.AssigneeIDs != nil {
		var users []*forgeworld.User
		for _, user := range c.world.Users {
			if slices.Contains(*post.AssigneeIDs, user.ID) && c.repo.Access[user] != forge.NoAccess {
				users = append(users, user)
			}
		}
		if c.freeTier && len(users) > 1 {
			users = users[:1] // GitLab says nothing
		}
		c.item.Assign(c.user, users...)
	}
	return ok(show(c.item))
}

func split(labels string) []string {
	if labels == "" {
		return nil
	}
	return strings.Split(labels, ",")
}

func related(c *call) reply {
	var requests []*forgeworld.Item
	for _, event := range c.item.Events {
		if event.Source != nil && event.Source.Kind == task.Pull {
			requests = append(requests, event.Source)
		}
	}
	return page(c, requests, c.mergeRequest)
}

// links are those of both kinds: to what the issue waits for, and to what it is
// about besides.
func links(c *call) reply {
	return page(c, c.item.WaitsFor, func(to *forgeworld.Item) object {
		link := c.issue(to)
		link["link_type"], link["issue_link_id"] = "is_blocked_by", to.ID
		link["link_created_at"], link["link_updated_at"] = stamp(to.CreatedAt), stamp(to.UpdatedAt)
		if to.State != forge.Open {
			link["link_type"] = "relates_to"
		}
		return link
	})
}

func openRequest(c *call) reply {
	post := read[struct {
		Title, Description string
		Source             string `json:"source_branch"`
		Target             string `json:"target_branch"`
	}](c)
	if c.repo.Branch(c.t, post.Source) == "" {
		return refusal(400, object{"source_branch": []string{"does not exist"}})
	}
	for _, item := range c.repo.Items {
		if item.Kind == task.Pull && item.State == forge.Open && item.Head == post.Source && item.Base == post.Target {
			return refusal(409, []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", item.Number)})
		}
	}
	item := c.repo.NewItem(task.Pull, c.user, post.Title, post.Description)
	item.Head, item.Base = post.Source, post.Target
	return created(c.mergeRequest(item))
}

// quickAction closes the item, unless somebody took care of the text.
var quickAction = regexp.MustCompile(`(?m)^/close\b`)

func createNote(c *call) reply {
	post := read[struct{ Body string }](c)
	if strings.TrimSpace(post.Body) == "" {
		return reply{status: 400, body: object{"error": "body is missing"}}
	}
	if quickAction.MatchString(post.Body) {
		c.item.End(c.t, forge.Closed)
	}
	return created(c.noteObject(c.item, c.item.Comment(c.user, post.Body)))
}

func editNote(c *call) reply {
	if c.note.Author != c.user {
		return refusal(403, "403 Forbidden")
	}
	c.note.Edit(read[struct{ Body string }](c).Body)
	return ok(c.noteObject(c.item, c.note))
}

func labelEvents(c *call) reply {
	var events []*forgeworld.Event
	for _, event := range c.item.Events {
		if event.Kind == "labeled" || event.Kind == "unlabeled" {
			events = append(events, event)
		}
	}
	return page(c, events, func(event *forgeworld.Event) object {
		action := map[string]string{"labeled": "add", "unlabeled": "remove"}[event.Kind]
		made := object{"id": event.ID, "user": person(event.Actor), "created_at": stamp(event.At), "action": action, "resource_type": "Issue", "resource_id": c.item.ID}
		made["label"] = object{"id": 1, "name": event.Label, "color": "#00ff00", "description": ""}
		if !slices.Contains(c.repo.Labels, event.Label) {
			made["label"] = nil
		}
		return made
	})
}

// reactions returns where the reactions to the target are.
func (c *call) reactions() *[]*forgeworld.Reaction {
	if c.note != nil {
		return &c.note.Reactions
	}
	return &c.item.Reactions
}

// awardNames are GitLab's names of reactions that people gave in the world.
var awardNames = map[forge.Reaction]string{forge.Heart: "heart"}

func (c *call) award(reaction *forgeworld.Reaction) object {
	name := c.awarded[reaction.ID]
	if name == "" {
		name = awardNames[reaction.Reaction]
	}
	return object{
		"id": reaction.ID, "name": name, "user": person(reaction.User), "created_at": stamp(reaction.At), "updated_at": stamp(reaction.At),
		"awardable_id": c.item.ID, "awardable_type": "Issue", "url": nil,
	}
}

func listAwards(c *call) reply { return page(c, *c.reactions(), c.award) }

// knownEmoji are some of the names that GitLab knows.
var knownEmoji = []string{"thumbsup", "thumbsdown", "laughing", "tada", "confused", "heart", "rocket", "eyes"}

func giveAward(c *call) reply {
	name := read[struct{ Name string }](c).Name
	if !slices.Contains(knownEmoji, name) {
		return refusal(400, object{"name": []string{"is not a valid emoji name"}})
	}
	reaction, added := c.world.React(c.reactions(), c.user, forge.Reaction(name))
	if !added {
		return refusal(404, "404 Award Emoji Name has already been taken Not Found")
	}
	c.awarded[reaction.ID] = name
	return created(c.award(reaction))
}

func takeAward(c *call) reply {
	reactions := c.reactions()
	*reactions = slices.DeleteFunc(*reactions, func(r *forgeworld.Reaction) bool {
		return strconv.FormatInt(r.ID, 10) == c.param["award_id"] && r.User == c.user
	})
	return reply{status: 204}
}

func setStatus(c *call) reply {
	if !c.repo.HasCommit(c.t, c.param["sha"]) {
		return refusal(404, "404 Commit Not Found")
	}
	post := read[struct {
		State, Name, Description string
		TargetURL                string `json:"target_url"`
	}](c)
	for _, has := range slices.Backward(c.repo.Statuses) {
		if has.Commit == c.param["sha"] && has.Context == post.Name {
			if string(has.State) == post.State && post.State == "pending" {
				return refusal(400, `Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via "enqueue")`)
			}
			break
		}
	}
	status := &forgeworld.Status{ID: c.world.NextID(), CommitStatus: forge.CommitStatus{
		Commit: c.param["sha"], Context: post.Name, State: forge.StatusState(post.State), Description: post.Description, URL: post.TargetURL,
	}}
	c.repo.Statuses = append(c.repo.Statuses, status)
	return created(c.status(status))
}
