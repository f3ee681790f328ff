package github_test

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// handlers returns what each part of the interface does. Paths are below the
// repository, if they have one.
func handlers() map[string]func(*call) reply {
	return map[string]func(*call) reply{
		"GET /user":             func(c *call) reply { return ok(profile(c.user)) },
		"GET /users/{username}": getUser,
		"GET /user/repos":       userRepositories,
		"GET /installation/repositories": func(c *call) reply {
			answer := userRepositories(c)
			answer.body = object{"total_count": len(c.world.Repos), "repositories": answer.body}
			return answer
		},
		"GET ": getRepository,
		"GET /collaborators/{username}/permission": permission,

		"GET /issues":                                        listIssues,
		"GET /issues/{issue_number}":                         func(c *call) reply { return ok(c.issue(c.item)) },
		"GET /issues/{issue_number}/comments":                func(c *call) reply { return page(c, c.item.Comments, c.comment) },
		"POST /issues/{issue_number}/comments":               createComment,
		"PATCH /issues/comments/{comment_id}":                editComment,
		"GET /issues/{issue_number}/events":                  listEvents,
		"GET /issues/{issue_number}/timeline":                func(c *call) reply { return page(c, c.item.Events, c.event) },
		"GET /issues/{issue_number}/dependencies/blocked_by": func(c *call) reply { return page(c, c.item.WaitsFor, c.issue) },
		"POST /issues/{issue_number}/labels":                 addLabels,
		"DELETE /issues/{issue_number}/labels/{name}":        removeLabel,
		"POST /issues/{issue_number}/assignees":              assign,

		"GET /pulls":                                              listPulls,
		"POST /pulls":                                             openPull,
		"GET /pulls/{pull_number}":                                getPull,
		"PATCH /pulls/{pull_number}":                              editPull,
		"GET /pulls/{pull_number}/reviews":                        func(c *call) reply { return page(c, c.item.Reviews, c.review) },
		"POST /pulls/{pull_number}/reviews":                       submitReview,
		"GET /pulls/{pull_number}/comments":                       listLineComments,
		"POST /pulls/{pull_number}/comments/{comment_id}/replies": replyTo,

		"GET /issues/{issue_number}/reactions":  func(c *call) reply { return page(c, c.item.Reactions, c.reaction) },
		"POST /issues/{issue_number}/reactions": func(c *call) reply { return react(c, &c.item.Reactions) },
		"DELETE /issues/{issue_number}/reactions/{reaction_id}": func(c *call) reply {
			return unreact(c, &c.item.Reactions)
		},
		"GET /issues/comments/{comment_id}/reactions": func(c *call) reply {
			return withComment(c, func(comment *forgeworld.Comment) reply { return page(c, comment.Reactions, c.reaction) })
		},
		"POST /issues/comments/{comment_id}/reactions": func(c *call) reply {
			return withComment(c, func(comment *forgeworld.Comment) reply { return react(c, &comment.Reactions) })
		},
		"DELETE /issues/comments/{comment_id}/reactions/{reaction_id}": func(c *call) reply {
			return withComment(c, func(comment *forgeworld.Comment) reply { return unreact(c, &comment.Reactions) })
		},

		"POST /statuses/{sha}":      setStatus,
		"GET /commits/{ref}/status": combinedStatus,

		"GET /commits/{ref}/check-runs":   checkRuns,
		"GET /actions/jobs/{job_id}/logs": jobLog,
		"PUT /pulls/{pull_number}/merge":  mergePull,
		"GET /branches/{branch}":          getBranch,
	}
}

func getUser(c *call) reply {
	user := c.world.User(c.param["username"])
	if user == nil {
		return refusal(404, "Not Found")
	}
	return ok(profile(user))
}

func profile(user *forgeworld.User) object {
	made := account(user)
	made["user_view_type"] = "private"
	return made
}

func userRepositories(c *call) reply {
	var seen []*forgeworld.Repo
	for _, repo := range c.world.Repos {
		if repo.Access[c.user] != forge.NoAccess {
			seen = append(seen, repo)
		}
	}
	return page(c, seen, c.repository)
}

func permission(c *call) reply {
	user := c.world.User(c.param["username"])
	if user == nil {
		return refusal(404, "Not Found")
	}
	level := c.repo.Access[user].String()
	return ok(object{"permission": level, "role_name": level, "user": account(user)})
}

func listIssues(c *call) reply {
	query := c.request.URL.Query()
	assignee := query.Get("assignee")
	if assignee != "" && c.world.User(assignee) == nil {
		return refusal(422, "Validation Failed", object{"resource": "Issue", "field": "assignee", "code": "invalid"})
	}
	since, _ := time.Parse(time.RFC3339, query.Get("since"))
	var found []*forgeworld.Item
	for _, item := range c.repo.Items {
		assigned := assignee == "" || slices.Contains(item.Assignees, c.world.User(assignee))
		labelled := query.Get("labels") == "" || !slices.ContainsFunc(strings.Split(query.Get("labels"), ","), func(label string) bool {
			return !slices.ContainsFunc(item.Labels, func(has string) bool { return strings.EqualFold(has, label) })
		})
		if item.State == forge.Open && assigned && labelled && !item.UpdatedAt.Before(since) {
			found = append(found, item)
		}
	}
	if query.Get("direction") != "asc" {
		slices.Reverse(found)
	}
	return page(c, found, c.issue)
}

func createComment(c *call) reply {
	post := read[struct{ Body string }](c)
	if strings.TrimSpace(post.Body) == "" {
		return refusal(422, "Validation Failed", object{"resource": "IssueComment", "field": "data", "code": "unprocessable", "message": "Body cannot be blank"})
	}
	return created(c.comment(c.item.Comment(c.user, post.Body)))
}

// listEvents leaves out what is in the timeline only.
func listEvents(c *call) reply {
	events := slices.DeleteFunc(slices.Clone(c.item.Events), func(e *forgeworld.Event) bool { return e.Source != nil })
	return page(c, events, c.event)
}

func withComment(c *call, do func(*forgeworld.Comment) reply) reply {
	id, _ := strconv.ParseInt(c.param["comment_id"], 10, 64)
	_, comment := c.repo.FindComment(id)
	if comment == nil {
		return refusal(404, "Not Found")
	}
	return do(comment)
}

func editComment(c *call) reply {
	return withComment(c, func(comment *forgeworld.Comment) reply {
		if comment.Author != c.user && c.repo.Access[c.user] < forge.WriteAccess {
			return refusal(403, "Must have admin rights to Repository.")
		}
		comment.Edit(read[struct{ Body string }](c).Body)
		return ok(c.comment(comment))
	})
}

func addLabels(c *call) reply {
	for _, name := range read[struct{ Labels []string }](c).Labels {
		c.item.AddLabel(c.user, name)
	}
	return ok(labelObjects(c.item.Labels))
}

func removeLabel(c *call) reply {
	if !c.item.RemoveLabel(c.user, c.param["name"]) {
		return refusal(404, "Label does not exist")
	}
	return ok(labelObjects(c.item.Labels))
}

func assign(c *call) reply {
	users := slices.Clone(c.item.Assignees)
	for _, login := range read[struct{ Assignees []string }](c).Assignees {
		user := c.world.User(login)
		if user == nil || c.repo.Access[user] == forge.NoAccess || slices.Contains(users, user) {
			continue // GitHub says nothing
		}
		users = append(users, user)
	}
	c.item.Assign(c.user, users...)
	return created(c.issue(c.item))
}

func listPulls(c *call) reply {
	query := c.request.URL.Query()
	var found []*forgeworld.Item
	for _, item := range c.repo.Items {
		head := strings.SplitN(c.repo.Name, "/", 2)[0] + ":" + item.Head
		if item.Kind == task.Pull && item.State == forge.Open &&
			(query.Get("head") == "" || query.Get("head") == head) && (query.Get("base") == "" || query.Get("base") == item.Base) {
			found = append(found, item)
		}
	}
	if query.Get("direction") != "asc" {
		slices.Reverse(found)
	}
	return page(c, found, c.pull)
}

func openPull(c *call) reply {
	post := read[struct {
		Title, Body, Head, Base string
		Draft                   bool
	}](c)
	invalid := func(field, code, message string) reply {
		return refusal(422, "Validation Failed", object{"resource": "PullRequest", "field": field, "code": code, "message": message})
	}
	if post.Head == "" || post.Base == "" || post.Title == "" {
		return invalid("head", "missing_field", "")
	}
	if c.repo.Branch(c.t, post.Head) == "" {
		return invalid("head", "invalid", "")
	}
	if c.repo.Branch(c.t, post.Base) == "" {
		return invalid("base", "invalid", "")
	}
	for _, item := range c.repo.Items {
		if item.Kind == task.Pull && item.State == forge.Open && item.Head == post.Head && item.Base == post.Base {
			return invalid("head", "custom", "A pull request already exists for "+post.Head+".")
		}
	}
	item := c.repo.NewItem(task.Pull, c.user, post.Title, post.Body)
	item.Head, item.Base, item.Draft = post.Head, post.Base, post.Draft
	return created(c.pull(item))
}

func getPull(c *call) reply {
	if strings.Contains(c.request.Header.Get("Accept"), "diff") {
		return ok(c.item.Patch(c.t))
	}
	return ok(c.pull(c.item))
}

func editPull(c *call) reply {
	edit := read[struct{ Title, Body *string }](c)
	if edit.Title != nil {
		c.item.Title = *edit.Title
	}
	if edit.Body != nil {
		c.item.Body = *edit.Body
	}
	return ok(c.pull(c.item))
}

// unprocessable is a refusal whose reasons are plain text.
func unprocessable(reason string) reply {
	answer := refusal(422, "Unprocessable Entity")
	answer.body.(object)["errors"] = []string{reason}
	return answer
}

func submitReview(c *call) reply {
	post := read[struct {
		CommitID string `json:"commit_id"`
		Body     string
		Event    string
		Comments []struct {
			Path, Side, Body string
			Line             int
		}
	}](c)
	verdict := map[string]forge.Verdict{"APPROVE": forge.Approve, "REQUEST_CHANGES": forge.RequestChanges, "COMMENT": forge.Remark}[post.Event]
	if verdict != forge.Remark && c.item.Author == c.user {
		return unprocessable("Can not approve your own pull request")
	}
	var comments []forgeworld.LineComment
	for _, comment := range post.Comments {
		anchor := forge.Anchor{Path: comment.Path, Side: forge.NewSide, Line: comment.Line}
		if comment.Side == "LEFT" {
			anchor.Side = forge.OldSide
		}
		if !c.item.Shows(c.t, anchor) {
			return unprocessable("Line could not be resolved")
		}
		comments = append(comments, forgeworld.LineComment{Anchor: anchor, Body: comment.Body})
	}
	commit := post.CommitID
	if commit == "" {
		commit = c.item.HeadCommit(c.t)
	}
	return ok(c.review(c.item.Submit(c.user, verdict, post.Body, commit, comments)))
}

func listLineComments(c *call) reply {
	type one struct {
		thread  *forgeworld.Thread
		comment *forgeworld.Comment
	}
	var all []one
	for _, thread := range c.item.Threads {
		for _, comment := range thread.Comments {
			all = append(all, one{thread, comment})
		}
	}
	slices.SortFunc(all, func(a, b one) int { return int(a.comment.ID - b.comment.ID) })
	return page(c, all, func(o one) object { return c.lineComment(o.thread, o.comment) })
}

func replyTo(c *call) reply {
	for _, thread := range c.item.Threads {
		if strconv.FormatInt(thread.Comments[0].ID, 10) == c.param["comment_id"] {
			comment := c.world.NewComment(c.user, read[struct{ Body string }](c).Body)
			thread.Comments = append(thread.Comments, comment)
			// GitHub makes a review of every reply.
			c.item.Submit(c.user, forge.Remark, "", c.item.HeadCommit(c.t), nil)
			return created(c.lineComment(thread, comment))
		}
	}
	return refusal(404, "Not Found")
}

func react(c *call, reactions *[]*forgeworld.Reaction) reply {
	reaction, added := c.world.React(reactions, c.user, forge.Reaction(read[struct{ Content string }](c).Content))
	if added {
		return created(c.reaction(reaction))
	}
	return ok(c.reaction(reaction))
}

func unreact(c *call, reactions *[]*forgeworld.Reaction) reply {
	*reactions = slices.DeleteFunc(*reactions, func(r *forgeworld.Reaction) bool {
		return strconv.FormatInt(r.ID, 10) == c.param["reaction_id"] && r.User == c.user
	})
	return reply{status: 204}
}

func setStatus(c *call) reply {
	if !c.repo.HasCommit(c.t, c.param["sha"]) {
		return refusal(422, "No commit found for SHA: "+c.param["sha"])
	}
	post := read[struct {
		State, Context, Description string
		TargetURL                   string `json:"target_url"`
	}](c)
	if len([]rune(post.Description)) > 140 {
		return refusal(422, "Validation Failed", object{"message": "description is too long (maximum is 140 characters)"})
	}
	status := &forgeworld.Status{ID: c.world.NextID(), CommitStatus: forge.CommitStatus{
		Commit: c.param["sha"], Context: post.Context, State: forge.StatusState(post.State), Description: post.Description, URL: post.TargetURL,
	}}
	c.repo.Statuses = append(c.repo.Statuses, status)
	return created(statusObject(status))
}

func statusObject(status *forgeworld.Status) object {
	made := object{"id": status.ID, "state": string(status.State), "context": status.Context, "description": status.Description, "target_url": nil, "created_at": stamp(forgeworld.Now()), "updated_at": stamp(forgeworld.Now())}
	if status.URL != "" {
		made["target_url"] = status.URL
	}
	return made
}

func combinedStatus(c *call) reply {
	last := []*forgeworld.Status{}
	for _, status := range slices.Backward(c.repo.Statuses) {
		known := slices.ContainsFunc(last, func(s *forgeworld.Status) bool { return s.Context == status.Context })
		if status.Commit == c.param["ref"] && !known {
			last = append(last, status)
		}
	}
	answer := page(c, last, statusObject)
	answer.body = object{"state": "pending", "sha": c.param["ref"], "total_count": len(last), "statuses": answer.body, "repository": c.repository(c.repo)}
	return answer
}

func getBranch(c *call) reply {
	commit := c.repo.Branch(c.t, c.param["branch"])
	if commit == "" {
		return refusal(404, "Branch not found")
	}
	return ok(object{"name": c.param["branch"], "commit": object{"sha": commit}, "protected": false})
}
