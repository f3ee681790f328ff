package gitlab_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// hookParameters are what GitLab documents for webhooks.
const hookParameters = "url name description push_events push_events_branch_filter branch_filter_strategy issues_events confidential_issues_events " +
	"merge_requests_events tag_push_events note_events confidential_note_events job_events pipeline_events wiki_page_events deployment_events " +
	"feature_flag_events releases_events milestone_events emoji_events enable_ssl_verification token custom_webhook_template custom_headers"

// setupRoutes are for what is done before any task: rights, labels, webhooks.
func setupRoutes() []route {
	return []route{
		{"GET personal_access_tokens/self", "", "", ownToken},
		{"POST projects/:id/issues", "title description labels assignee_ids confidential milestone_id", "issue", openIssue},
		{"GET projects/:id/labels", "with_counts include_ancestor_groups search archived", "label[]", listLabels},
		{"POST projects/:id/labels", "name color description priority archived", "label", createLabel},
		{"DELETE projects/:id/labels/:label_id", "", "", deleteLabel},
		{"GET projects/:id/hooks", "", "hook[]", asMaintainer(func(c *call) reply { return page(c, c.repo.Hooks, c.hook) })},
		{"POST projects/:id/hooks", hookParameters, "hook", asMaintainer(createHook)},
		{"GET projects/:id/hooks/:hook_id", "", "hook", withHook(func(c *call, hook *forgeworld.Hook) reply { return ok(c.hook(hook)) })},
		{"PUT projects/:id/hooks/:hook_id", hookParameters, "hook", withHook(editHook)},
		{"DELETE projects/:id/hooks/:hook_id", "", "", withHook(deleteHook)},
		{"GET projects/:id/hooks/:hook_id/events", "status", "", withHook(hookEvents)},
		{"POST projects/:id/hooks/:hook_id/test/:trigger", "", "", withHook(testHook)},
	}
}

// refusesToken refuses a token that is not taken any more, or for lack of a scope.
func (c *call) refusesToken() *reply {
	token := c.request.Header.Get("Private-Token")
	if reason := c.refused[token]; reason != "" {
		return &reply{status: 401, body: object{"error": "invalid_token", "error_description": reason}}
	}
	scopes, limited := c.scopes[token]
	enough := []string{"api"}
	switch path := strings.TrimPrefix(c.request.URL.Path, apiPrefix); {
	case !limited, path == "personal_access_tokens/self":
		return nil
	case path == "user":
		enough = append(enough, "read_user", "read_api")
	case c.request.Method == http.MethodGet:
		enough = append(enough, "read_api")
	}
	if slices.ContainsFunc(enough, func(scope string) bool { return slices.Contains(scopes, scope) }) {
		return nil
	}
	return &reply{status: 403, body: object{
		"error": "insufficient_scope", "error_description": "The request requires higher privileges than provided by the access token.",
		"scope": strings.Join(enough, " "),
	}}
}

func ownToken(c *call) reply {
	if c.oldServer {
		return notFound
	}
	scopes, limited := c.scopes[c.request.Header.Get("Private-Token")]
	if !limited {
		scopes = []string{"api"}
	}
	return ok(object{
		"id": 1, "name": "token", "revoked": false, "created_at": stamp(forgeworld.Now()), "description": nil, "scopes": scopes,
		"user_id": c.user.ID, "last_used_at": nil, "active": true, "expires_at": "2031-01-01",
	})
}

func openIssue(c *call) reply {
	post := read[struct {
		Title, Description string
		Labels             string
		AssigneeIDs        []int64 `json:"assignee_ids"`
	}](c)
	if strings.TrimSpace(post.Title) == "" {
		return reply{status: 400, body: object{"message": object{"title": []string{"can't be blank"}}}}
	}
	item := c.repo.NewItem(task.Issue, c.user, post.Title, post.Description)
	if quickAction.MatchString(post.Description) {
		item.End(c.t, forge.Closed)
	}
	var users []*forgeworld.User
	for _, user := range c.world.Users {
		if slices.Contains(post.AssigneeIDs, user.ID) && c.repo.Access[user] != forge.NoAccess {
			users = append(users, user)
		}
	}
	item.Assign(c.user, users...)
	for _, label := range split(post.Labels) {
		item.AddLabel(c.user, label)
	}
	return created(c.issue(item))
}

// label is a label of the project or of a group. The id of the label "12" is not 12.
func (c *call) label(name string) object {
	id := slices.Index(c.repo.Labels, name) + 10
	own := slices.Contains(c.repo.Labels, name)
	if !own {
		id = slices.Index(c.repo.GroupLabels, name) + 1000
	}
	return object{
		"id": id, "name": name, "description": nil, "description_html": "", "text_color": "#FFFFFF", "color": "#d9534f",
		"subscribed": false, "priority": nil, "is_project_label": own,
	}
}

func listLabels(c *call) reply {
	query := c.request.URL.Query()
	all := slices.Clone(c.repo.Labels)
	if query.Get("include_ancestor_groups") != "false" {
		all = append(all, c.repo.GroupLabels...)
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		return !strings.Contains(strings.ToLower(name), strings.ToLower(query.Get("search")))
	})
	return page(c, all, c.label)
}

func createLabel(c *call) reply {
	post := read[struct{ Name, Color string }](c)
	if c.repo.HasLabel(post.Name) {
		return refusal(409, "Label already exists")
	}
	if !strings.HasPrefix(post.Color, "#") || len(post.Color) != 7 || hasComma(post.Name) {
		return refusal(400, object{"color": []string{"must be a valid color code"}})
	}
	c.repo.Labels = append(c.repo.Labels, post.Name)
	return created(c.label(post.Name))
}

func hasComma(name string) bool { return strings.Contains(name, ",") }

// deleteLabel takes what the path names for an id first, as GitLab does.
func deleteLabel(c *call) reply {
	for _, name := range c.repo.Labels {
		if strconv.Itoa(c.label(name)["id"].(int)) == c.param["label_id"] {
			c.repo.RemoveLabel(name)
			return reply{status: 204}
		}
	}
	if c.repo.RemoveLabel(c.param["label_id"]) {
		return reply{status: 204}
	}
	return refusal(404, "404 Label Not Found")
}

func asMaintainer(do func(*call) reply) func(*call) reply {
	return func(c *call) reply {
		if c.repo.Access[c.user] != forge.AdminAccess {
			return refusal(403, "403 Forbidden")
		}
		return do(c)
	}
}

func withHook(do func(*call, *forgeworld.Hook) reply) func(*call) reply {
	return asMaintainer(func(c *call) reply {
		hook := c.repo.Hook(c.param["hook_id"])
		if hook == nil {
			return notFound
		}
		return do(c, hook)
	})
}

func (c *call) hook(hook *forgeworld.Hook) object {
	made := object{
		"id": hook.ID, "url": hook.URL, "project_id": c.repo.ID, "created_at": stamp(forgeworld.Now()), "push_events_branch_filter": nil,
		"alert_status": "executable", "disabled_until": nil, "custom_webhook_template": nil, "enable_ssl_verification": !hook.Insecure,
	}
	for _, event := range []string{
		"push", "tag_push", "merge_requests", "repository_update", "issues", "confidential_issues", "note", "confidential_note",
		"pipeline", "wiki_page", "job", "deployment", "releases", "emoji",
	} {
		made[event+"_events"] = slices.Contains(hook.Events, event+"_events")
	}
	return made
}

// setHook changes what a request names. Pushes are on if nobody says anything.
func setHook(c *call, hook *forgeworld.Hook) *reply {
	for name, value := range read[map[string]any](c) {
		switch name {
		case "url":
			hook.URL = value.(string)
		case "token":
			hook.Secret = value.(string)
		case "enable_ssl_verification":
			hook.Insecure = !value.(bool)
		default:
			hook.Events = slices.DeleteFunc(hook.Events, func(event string) bool { return event == name })
			if value.(bool) {
				hook.Events = append(hook.Events, name)
			}
		}
	}
	if strings.Contains(hook.URL, "//localhost") {
		answer := reply{status: 422, body: object{"error": "Invalid url given"}}
		return &answer
	}
	return nil
}

func createHook(c *call) reply {
	hook := forgeworld.Hook{Events: []string{"push_events"}}
	if refused := setHook(c, &hook); refused != nil {
		return *refused
	}
	return created(c.hook(c.repo.AddHook(hook)))
}

func editHook(c *call, hook *forgeworld.Hook) reply {
	edited := *hook
	edited.Events = slices.Clone(hook.Events)
	if refused := setHook(c, &edited); refused != nil {
		return *refused
	}
	*hook = edited
	return ok(c.hook(hook))
}

func deleteHook(c *call, hook *forgeworld.Hook) reply {
	c.repo.RemoveHook(hook)
	return reply{status: 204}
}

func hookEvents(c *call, hook *forgeworld.Hook) reply {
	if c.oldServer {
		return notFound
	}
	if hook.LastAt.IsZero() {
		return ok([]object{})
	}
	status := strconv.Itoa(hook.LastStatus)
	if hook.LastStatus == 0 {
		status = "internal error"
	}
	return ok([]object{{
		"id": 1, "url": hook.URL, "trigger": "push_hooks", "request_headers": object{}, "request_data": object{}, "response_headers": object{},
		"response_body": "", "execution_duration": 1.5, "response_status": status, "created_at": stamp(hook.LastAt),
	}})
}

// testHook delivers a push, waits for the answer and says what it was.
func testHook(c *call, hook *forgeworld.Hook) reply {
	if c.oldServer {
		return reply{status: 404, body: object{"error": "404 Not Found"}}
	}
	if c.param["trigger"] != "push_events" {
		return refusal(422, "Ensure the project has issues.")
	}
	body, err := json.Marshal(object{
		"object_kind": "push", "event_name": "push", "ref": "refs/heads/main", "project": object{"path_with_namespace": c.repo.Name},
	})
	if err != nil {
		c.t.Error(err)
	}
	hook.Deliver(c.t, map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": hook.Secret}, string(body))
	if hook.LastStatus/100 != 2 {
		return refusal(422, "the answer had the status "+strconv.Itoa(hook.LastStatus))
	}
	return created(object{"message": "201 Created"})
}
