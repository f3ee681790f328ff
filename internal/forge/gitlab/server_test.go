package gitlab_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// server is GitLab's interface in front of a world. The parameters of every
// request are checked against those that GitLab documents, and every answer
// against GitLab's schema or a recorded answer, where there is one.
type server struct {
	t            testing.TB
	world        *forgeworld.World
	contract     *contract
	drafts       map[*forgeworld.Item][]*draft
	awarded      map[int64]string // the name under which a reaction was given
	freeTier     bool             // one assignee at most
	guest        string           // login of a member who is one, whatever they may read
	secret       string           // notes with this text are internal
	noNotes      bool             // reviews are not noted, as by older servers
	mergeStatus  string           // of merge requests that could be merged; "" means mergeable
	refuses      int              // the status with which a merge is refused; 0 means that it is not
	noApprovedAt bool             // approvals come without their time, as of older servers
	switchedOff  string           // what is switched off in projects, such as "issues"
	oldServer    bool             // it tells nothing of tokens and deliveries, and tests no webhooks

	scopes  map[string][]string // of tokens; those that are not here have the scope api
	refused map[string]string   // why tokens are not taken any more
	URL     string
}

type draft struct {
	id     int64
	author *forgeworld.User
	note   string
	anchor forge.Anchor
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, world: forgeworld.New(t, task.GitLab), contract: newContract(t), drafts: map[*forgeworld.Item][]*draft{}, awarded: map[int64]string{}}
	s.scopes, s.refused = map[string][]string{}, map[string]string{}
	s.world.NumbersApart = true
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.URL = front.URL
	return s
}

const apiPrefix = "/api/v4/"

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, ".git/") {
		s.world.ServeGit(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client gave up
	}
	s.world.Lock()
	defer s.world.Unlock()
	answer := s.answer(r, body)
	for name, value := range answer.header {
		w.Header().Set(name, value)
	}
	if text, isText := answer.body.(string); isText || answer.body == nil {
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, text)
		return
	}
	encoded, err := json.Marshal(answer.body)
	if err != nil {
		s.t.Error(err)
	}
	if answer.status < 300 && answer.schema != "" {
		if err := s.contract.check(answer.schema, encoded); err != nil {
			s.t.Errorf("%s %s: the answer is not as GitLab's: %v", r.Method, r.URL, err)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.status)
	_, _ = w.Write(encoded)
}

// reply is an answer of the server. schema names what it is checked against.
type reply struct {
	status int
	body   any // a string is text
	schema string
	header map[string]string
}

type object = map[string]any

func refusal(status int, message any) reply {
	return reply{status: status, body: object{"message": message}}
}

var notFound = refusal(404, "404 Not found")

// call is a request in the hands of the server.
type call struct {
	*server
	request *http.Request
	user    *forgeworld.User
	repo    *forgeworld.Repo
	item    *forgeworld.Item
	note    *forgeworld.Comment
	param   map[string]string
	body    []byte
}

func (s *server) answer(r *http.Request, body []byte) reply {
	c := &call{server: s, request: r, user: s.world.Tokens[r.Header.Get("Private-Token")], body: body}
	if c.user == nil {
		return refusal(401, "401 Unauthorized")
	}
	if refused := c.refusesToken(); refused != nil {
		return *refused
	}
	route, found := c.match()
	if !found {
		s.t.Errorf("the test server does not know %s %s", r.Method, r.URL.EscapedPath())
		return notFound
	}
	c.checkParameters(route)
	if refused := c.resolve(); refused != nil {
		return *refused
	}
	answer := route.do(c)
	if answer.schema == "" {
		answer.schema = route.schema
	}
	return answer
}

// match finds the route of a request.
func (c *call) match() (route, bool) {
	path, found := strings.CutPrefix(c.request.URL.EscapedPath(), apiPrefix)
	if !found {
		return route{}, false
	}
	parts := strings.Split(path, "/")
	for _, route := range routes() {
		method, template, _ := strings.Cut(route.path, " ")
		if method != c.request.Method {
			continue
		}
		if parameters, fits := fit(strings.Split(template, "/"), parts); fits {
			c.param = parameters
			return route, true
		}
	}
	return route{}, false
}

func fit(template, parts []string) (map[string]string, bool) {
	if len(template) != len(parts) {
		return nil, false
	}
	parameters := map[string]string{}
	for i, part := range template {
		if name, isParameter := strings.CutPrefix(part, ":"); isParameter {
			value, err := url.PathUnescape(parts[i])
			if err != nil || value == "" {
				return nil, false
			}
			parameters[name] = value
		} else if part != parts[i] {
			return nil, false
		}
	}
	return parameters, true
}

// checkParameters fails the test for a parameter that GitLab does not document.
func (c *call) checkParameters(route route) {
	allowed := append(strings.Fields(route.parameters), "page", "per_page")
	for name := range c.request.URL.Query() {
		if !slices.Contains(allowed, name) {
			c.t.Errorf("%s has no parameter %q", route.path, name)
		}
	}
	if len(c.body) == 0 {
		return
	}
	var body map[string]any
	if err := json.Unmarshal(c.body, &body); err != nil {
		c.t.Errorf("%s: the body is not JSON: %v", route.path, err)
	}
	for name := range body {
		if !slices.Contains(allowed, name) {
			c.t.Errorf("%s has no parameter %q", route.path, name)
		}
	}
}

// resolve finds what the path names.
func (c *call) resolve() *reply {
	if id, found := c.param["id"]; found {
		for _, repo := range c.world.Repos {
			if (strings.EqualFold(repo.Name, id) || strconv.FormatInt(repo.ID, 10) == id) && repo.Access[c.user] != forge.NoAccess {
				c.repo = repo
			}
		}
		if c.repo == nil {
			return c.elsewhere(id)
		}
	}
	for parameter, kind := range map[string]task.ItemKind{"issue_iid": task.Issue, "merge_request_iid": task.Pull} {
		if text, found := c.param[parameter]; found {
			number, _ := strconv.ParseInt(text, 10, 64)
			if c.item = c.repo.Item(kind, number); c.item == nil {
				return &notFound
			}
		}
	}
	if text, found := c.param["note_id"]; found {
		id, _ := strconv.ParseInt(text, 10, 64)
		if _, c.note = c.repo.FindComment(id); c.note == nil {
			return &notFound
		}
	}
	return nil
}

// elsewhere redirects reads to a project that was renamed, as GitLab does.
func (c *call) elsewhere(id string) *reply {
	repo := c.world.Renamed[strings.ToLower(id)]
	if repo == nil || c.request.Method != http.MethodGet {
		return &notFound
	}
	rest := strings.TrimPrefix(c.request.URL.EscapedPath(), apiPrefix+"projects/"+url.PathEscape(id))
	if at := strings.Index(c.request.URL.EscapedPath()[len(apiPrefix+"projects/"):], "/"); at >= 0 {
		rest = c.request.URL.EscapedPath()[len(apiPrefix+"projects/")+at:]
	}
	location := fmt.Sprintf("%s%sprojects/%d%s", c.URL, apiPrefix, repo.ID, rest)
	return &reply{status: 301, header: map[string]string{"Location": location}, body: "This resource has been moved permanently to " + location}
}

// read decodes the request's body.
func read[T any](c *call) T {
	var value T
	if err := json.Unmarshal(c.body, &value); err != nil {
		c.t.Errorf("%s: %v", c.request.URL, err)
	}
	return value
}

// page cuts a listing into pages, with GitLab's headers.
func page[T any](c *call, all []T, show func(T) object) reply {
	query := c.request.URL.Query()
	size, _ := strconv.Atoi(query.Get("per_page"))
	if size < 1 {
		size = 20
	}
	size = min(size, 100)
	number, _ := strconv.Atoi(query.Get("page"))
	number = max(number, 1)
	start := min((number-1)*size, len(all))
	end := min(start+size, len(all))
	body := []object{}
	for _, one := range all[start:end] {
		body = append(body, show(one))
	}
	header := map[string]string{"X-Page": strconv.Itoa(number), "X-Per-Page": strconv.Itoa(size), "X-Next-Page": ""}
	if end < len(all) {
		query.Set("page", strconv.Itoa(number+1))
		next := *c.request.URL
		next.RawQuery = query.Encode()
		header["X-Next-Page"] = strconv.Itoa(number + 1)
		header["Link"] = fmt.Sprintf(`<%s%s>; rel="next"`, c.URL, next.String())
	}
	return reply{status: 200, body: body, header: header}
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// person is a user as GitLab shows it: one that is gone is another one.
func person(user *forgeworld.User) object {
	id, login, name := user.ID, user.Login, "Name of "+user.Login
	if user.Gone {
		id, login, name = 7, "ghost1", "Ghost User"
	}
	return object{
		"id": id, "username": login, "name": name, "state": "active", "locked": false,
		"avatar_url": "https://gitlab.example/a.png", "web_url": "https://gitlab.example/" + login,
	}
}

func people(users []*forgeworld.User) []object {
	all := []object{}
	for _, user := range users {
		all = append(all, person(user))
	}
	return all
}

func (c *call) project(repo *forgeworld.Repo) object {
	made := object{
		"id": repo.ID, "path_with_namespace": repo.Name, "default_branch": "main", "visibility": "private",
		"web_url": c.URL + "/" + repo.Name, "archived": false, "empty_repo": repo.Branch(c.t, "main") == "",
	}
	if c.switchedOff != "" {
		made[c.switchedOff+"_access_level"] = "disabled"
	}
	return made
}

func texts(names []string) []string { return append([]string{}, names...) }

func state(item *forgeworld.Item) string {
	if item.State == forge.Open {
		return "opened"
	}
	return string(item.State)
}

func (c *call) issue(item *forgeworld.Item) object {
	return object{
		"id": item.ID, "iid": item.Number, "project_id": item.Repo.ID, "title": item.Title, "description": item.Body,
		"state": state(item), "created_at": stamp(item.CreatedAt), "updated_at": stamp(item.UpdatedAt), "closed_at": nil,
		"labels": texts(item.Labels), "milestone": nil, "assignees": people(item.Assignees), "author": person(item.Author),
		"user_notes_count": len(item.Comments), "upvotes": 0, "downvotes": 0, "due_date": nil, "confidential": false,
		"web_url": fmt.Sprintf("%s/%s/-/issues/%d", c.URL, item.Repo.Name, item.Number), "moved_to_id": nil,
		"references": object{"short": fmt.Sprint("#", item.Number), "full": fmt.Sprintf("%s#%d", item.Repo.Name, item.Number)},
	}
}

func (c *call) mergeRequest(item *forgeworld.Item) object {
	head := item.HeadCommit(c.t)
	title := item.Title
	draft := strings.HasPrefix(title, "Draft: ")
	made := object{
		"id": item.ID, "iid": item.Number, "project_id": item.Repo.ID, "title": title, "description": item.Body,
		"state": state(item), "created_at": stamp(item.CreatedAt), "updated_at": stamp(item.UpdatedAt), "merged_at": nil,
		"target_branch": item.Base, "source_branch": item.Head, "upvotes": 0, "downvotes": 0,
		"author": person(item.Author), "assignee": nil, "assignees": people(item.Assignees), "reviewers": []object{},
		"source_project_id": item.Repo.ID, "target_project_id": item.Repo.ID, "labels": texts(item.Labels),
		"draft": draft, "work_in_progress": draft, "milestone": nil, "merge_when_pipeline_succeeds": false,
		"merge_status": "can_be_merged", "detailed_merge_status": c.detailedStatus(item), "sha": head, "merge_commit_sha": nil, "user_notes_count": len(item.Comments),
		"should_remove_source_branch": nil, "force_remove_source_branch": nil, "squash": false,
		"web_url":    fmt.Sprintf("%s/%s/-/merge_requests/%d", c.URL, item.Repo.Name, item.Number),
		"references": object{"short": fmt.Sprint("!", item.Number), "full": fmt.Sprintf("%s!%d", item.Repo.Name, item.Number)},
		"diff_refs":  object{"base_sha": item.BaseCommit(c.t), "head_sha": head, "start_sha": item.BaseCommit(c.t)},
	}
	if item.Fork {
		made["source_project_id"] = item.Repo.ID + 1
	}
	return made
}

func (c *call) noteObject(item *forgeworld.Item, comment *forgeworld.Comment) object {
	types := map[task.ItemKind]string{task.Issue: "Issue", task.Pull: "MergeRequest"}
	return object{
		"id": comment.ID, "type": nil, "body": comment.Body, "attachment": nil, "author": person(comment.Author),
		"created_at": stamp(comment.CreatedAt), "updated_at": stamp(comment.UpdatedAt), "system": false,
		"noteable_id": item.ID, "noteable_iid": item.Number, "noteable_type": types[item.Kind], "project_id": item.Repo.ID,
		"resolvable": false, "confidential": c.internal(comment), "internal": c.internal(comment),
	}
}

// lineNote is a note on a line of the diff.
func (c *call) lineNote(item *forgeworld.Item, thread *forgeworld.Thread, comment *forgeworld.Comment) object {
	made := c.noteObject(item, comment)
	position := object{
		"base_sha": item.BaseCommit(c.t), "start_sha": item.BaseCommit(c.t), "head_sha": thread.Commit, "position_type": "text",
		"old_path": thread.Anchor.Path, "new_path": thread.Anchor.Path, "old_line": nil, "new_line": thread.Anchor.Line,
	}
	if thread.Anchor.Side == forge.OldSide {
		position["old_line"], position["new_line"] = thread.Anchor.Line, nil
	}
	made["type"], made["position"], made["resolvable"], made["resolved"] = "DiffNote", position, true, thread.Resolved
	return made
}

func (c *call) systemNote(item *forgeworld.Item, event *forgeworld.Event) object {
	made := c.noteObject(item, &forgeworld.Comment{ID: event.ID, Author: event.Actor, Body: event.Kind + " " + event.Label, CreatedAt: event.At, UpdatedAt: event.At})
	made["system"] = true
	switch event.Kind {
	case "moved":
		made["body"] = "moved to " + event.Label
	case "assigned":
		made["body"] = "assigned to @" + event.User.Login
	case "unassigned":
		made["body"] = "unassigned @" + event.User.Login
	}
	return made
}

// allNotes is everything in the conversation, as GitLab mixes it.
func (c *call) allNotes() []object {
	all := []object{}
	for _, comment := range c.item.Comments {
		all = append(all, c.noteObject(c.item, comment))
	}
	for _, event := range c.item.Events {
		all = append(all, c.systemNote(c.item, event))
	}
	if !c.noNotes {
		for _, review := range c.item.Reviews {
			all = append(all, c.reviewNote(review))
		}
	}
	for _, thread := range c.item.Threads {
		for _, comment := range thread.Comments {
			all = append(all, c.lineNote(c.item, thread, comment))
		}
	}
	slices.SortFunc(all, func(a, b object) int { return int(a["id"].(int64) - b["id"].(int64)) })
	if c.request.URL.Query().Get("sort") != "asc" {
		slices.Reverse(all)
	}
	return all
}

func same(o object) object { return o }

// bodyOf reads a request's body and puts it back.
func bodyOf(t testing.TB, r *http.Request) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return string(body)
}

// internal reports whether a note is one that only members see.
func (c *call) internal(comment *forgeworld.Comment) bool {
	return c.secret != "" && strings.Contains(comment.Body, c.secret)
}
