package github_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// setupHandlers are for what is done before any task: rights, labels, webhooks.
func setupHandlers() map[string]func(*call) reply {
	return map[string]func(*call) reply{
		"GET /branches":     func(*call) reply { return ok([]object{}) },
		"GET /actions/runs": func(*call) reply { return ok(object{"total_count": 0, "workflow_runs": []object{}}) },
		"POST /git/refs":    createReference,
		"POST /issues":      createIssue,

		"GET /labels":           func(c *call) reply { return page(c, c.repo.Labels, labelObject) },
		"POST /labels":          createLabel,
		"DELETE /labels/{name}": deleteLabel,

		"GET /hooks":                      asAdmin(func(c *call) reply { return page(c, c.repo.Hooks, c.hook) }),
		"POST /hooks":                     asAdmin(createHook),
		"PATCH /hooks/{hook_id}":          withHook(editHook),
		"DELETE /hooks/{hook_id}":         withHook(deleteHook),
		"GET /hooks/{hook_id}/deliveries": withHook(listDeliveries),
		"POST /hooks/{hook_id}/pings":     withHook(ping),
	}
}

// finePermissions are what fine-grained tokens need, by GitHub's documentation.
var finePermissions = map[string]string{
	"GET /branches": "contents:read", "POST /git/refs": "contents:write", "GET /issues": "issues:read", "POST /issues": "issues:write",
	"GET /pulls": "pull_requests:read", "POST /pulls": "pull_requests:write", "POST /statuses/{sha}": "statuses:write",
	"GET /commits/{ref}/check-runs": "checks:read", "GET /actions/runs": "actions:read", "POST /hooks": "repository_hooks:write",
	"GET /hooks": "repository_hooks:read", "GET /hooks/{hook_id}/deliveries": "repository_hooks:read",
}

// mayDo reports whether a fine-grained token was given what a route needs.
func mayDo(given map[string]string, route string) bool {
	name, level, _ := strings.Cut(finePermissions[route], ":")
	return name == "" || given[name] == "write" || given[name] == level
}

func getRepository(c *call) reply {
	access := c.repo.Access[c.user]
	made := c.repository(c.repo)
	made["permissions"] = object{
		"pull": true, "triage": access >= forge.WriteAccess, "push": access >= forge.WriteAccess,
		"maintain": access == forge.AdminAccess, "admin": access == forge.AdminAccess,
	}
	return ok(made)
}

func createReference(c *call) reply {
	post := read[struct{ Ref, SHA string }](c)
	if !strings.HasPrefix(post.Ref, "refs/") || strings.Count(post.Ref, "/") < 2 {
		return refusal(422, "Reference name must start with 'refs' and contain at least two slashes")
	}
	return refusal(422, "Object does not exist")
}

func createIssue(c *call) reply {
	post := read[struct {
		Title, Body       string
		Assignees, Labels []string
		Milestone         int
	}](c)
	if strings.TrimSpace(post.Title) == "" || post.Milestone != 0 {
		return refusal(422, "Validation Failed", object{"resource": "Issue", "field": "title", "code": "missing_field"})
	}
	var users []*forgeworld.User
	for _, login := range post.Assignees {
		user := c.world.User(login)
		if user == nil || c.repo.Access[user] == forge.NoAccess {
			return refusal(422, "Validation Failed", object{"value": login, "resource": "Issue", "field": "assignees", "code": "invalid"})
		}
		users = append(users, user)
	}
	item := c.repo.NewItem(task.Issue, c.user, post.Title, post.Body)
	item.Assign(c.user, users...)
	for _, label := range post.Labels {
		item.AddLabel(c.user, label)
	}
	return created(c.issue(item))
}

func labelObject(name string) object { return labelObjects([]string{name})[0] }

func createLabel(c *call) reply {
	post := read[struct{ Name, Color, Description string }](c)
	if c.repo.HasLabel(post.Name) {
		return refusal(422, "Validation Failed", object{"resource": "Label", "field": "name", "code": "already_exists"})
	}
	if len(post.Color) != 6 || len([]rune(post.Description)) > 100 {
		return refusal(422, "Validation Failed", object{"resource": "Label", "field": "color", "code": "invalid"})
	}
	c.repo.Labels = append(c.repo.Labels, post.Name)
	return created(labelObject(post.Name))
}

func deleteLabel(c *call) reply {
	if !c.repo.RemoveLabel(c.param["name"]) {
		return refusal(404, "Not Found")
	}
	return reply{status: 204}
}

// asAdmin hides webhooks from everybody else, as GitHub does.
func asAdmin(do func(*call) reply) func(*call) reply {
	return func(c *call) reply {
		if c.repo.Access[c.user] != forge.AdminAccess {
			return refusal(404, "Not Found")
		}
		return do(c)
	}
}

func withHook(do func(*call, *forgeworld.Hook) reply) func(*call) reply {
	return asAdmin(func(c *call) reply {
		hook := c.repo.Hook(c.param["hook_id"])
		if hook == nil {
			return refusal(404, "Not Found")
		}
		return do(c, hook)
	})
}

func (c *call) hook(hook *forgeworld.Hook) object {
	insecure := "0"
	if hook.Insecure {
		insecure = "1"
	}
	last := object{"code": nil, "status": "unused", "message": nil}
	if !hook.LastAt.IsZero() {
		last = object{"code": hook.LastStatus, "status": "active", "message": "OK"}
	}
	return object{
		"type": "Repository", "id": hook.ID, "name": "web", "active": true, "events": hook.Events, "last_response": last,
		"config": object{"url": hook.URL, "content_type": "json", "secret": "********", "insecure_ssl": insecure},
	}
}

// hookPost is a webhook as it is sent.
type hookPost struct {
	Name   string
	Config struct {
		URL         string
		ContentType string `json:"content_type"`
		Secret      string
		InsecureSSL string `json:"insecure_ssl"`
	}
	Events []string
	Active bool
}

// known are some of the events that GitHub knows.
var known = []string{
	"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "check_run", "status",
	"pull_request_review_thread", "label", "push",
}

// hook checks a webhook as GitHub does.
func (p hookPost) hook() (hook forgeworld.Hook, refused *reply) {
	unknown := slices.ContainsFunc(p.Events, func(event string) bool { return !slices.Contains(known, event) })
	if p.Config.URL == "" || p.Config.ContentType != "json" || unknown || !p.Active {
		answer := refusal(422, "Validation Failed", object{"resource": "Hook", "code": "custom", "message": "Config must contain URL for webhooks"})
		return hook, &answer
	}
	return forgeworld.Hook{URL: p.Config.URL, Secret: p.Config.Secret, Events: p.Events, Insecure: p.Config.InsecureSSL == "1"}, nil
}

func createHook(c *call) reply {
	post := read[hookPost](c)
	hook, refused := post.hook()
	if refused != nil || post.Name != "web" {
		return refusal(422, "Validation Failed", object{"resource": "Hook", "code": "custom", "message": "Config must contain URL for webhooks"})
	}
	same := func(other *forgeworld.Hook) bool {
		return other.URL == hook.URL && slices.Equal(other.Events, hook.Events)
	}
	if slices.ContainsFunc(c.repo.Hooks, same) {
		return refusal(422, "Validation Failed", object{"resource": "Hook", "code": "custom", "message": "Hook already exists on this repository"})
	}
	return created(c.hook(c.repo.AddHook(hook)))
}

func editHook(c *call, hook *forgeworld.Hook) reply {
	edited, refused := read[hookPost](c).hook()
	if refused != nil {
		return *refused
	}
	edited.ID, edited.LastAt, edited.LastStatus = hook.ID, hook.LastAt, hook.LastStatus
	*hook = edited
	return ok(c.hook(hook))
}

func deleteHook(c *call, hook *forgeworld.Hook) reply {
	c.repo.RemoveHook(hook)
	return reply{status: 204}
}

func listDeliveries(c *call, hook *forgeworld.Hook) reply {
	if hook.LastAt.IsZero() {
		return ok([]object{})
	}
	status, code := "OK", hook.LastStatus
	switch {
	case code == 0:
		status, code = "failed to connect to host", 502
	case code >= 300:
		status = "Invalid HTTP Response: " + stamp(hook.LastAt)
	}
	return ok([]object{{
		"id": 1, "guid": "0b989ba4-242f-11e5-81e1-c7b6966d2516", "delivered_at": stamp(hook.LastAt), "redelivery": false, "duration": 0.1,
		"status": status, "status_code": code, "event": "ping", "action": nil, "installation_id": nil, "repository_id": c.repo.ID,
	}})
}

// ping delivers what GitHub sends to test a webhook.
func ping(c *call, hook *forgeworld.Hook) reply {
	body, err := json.Marshal(object{
		"zen": "Design for failure.", "hook_id": hook.ID,
		"repository": object{"full_name": c.repo.Name}, "sender": object{"login": c.user.Login},
	})
	if err != nil {
		c.t.Error(err)
	}
	mac := hmac.New(sha256.New, []byte(hook.Secret))
	mac.Write(body)
	hook.Deliver(c.t, map[string]string{
		"X-GitHub-Event": "ping", "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
		"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	}, string(body))
	return reply{status: 204}
}
