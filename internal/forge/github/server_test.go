package github_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// server is GitHub's interface in front of a world. Every request and answer is
// checked against GitHub's own description of it.
type server struct {
	t        testing.TB
	world    *forgeworld.World
	contract *contract
	graph    *graph
	URL      string
	perPage  int // at most; 0 means GitHub's own limit
	app      *app
	state    string // of pull requests that could be merged; "" means clean
	only     string // the one method by which they are merged; "" means each
	noRuns   bool   // check runs may not be read
	public   bool   // repositories are
	noIssues bool   // issues are switched off

	scopes map[string]string            // of classic tokens, as GitHub lists them
	fine   map[string]map[string]string // what fine-grained tokens were given
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{
		t: t, world: forgeworld.New(t, task.GitHub), contract: newContract(t), graph: newGraph(t),
		scopes: map[string]string{}, fine: map[string]map[string]string{},
	}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.URL = front.URL
	return s
}

const apiPrefix = "/api/v3"

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.Contains(r.URL.Path, ".git/"):
		s.world.ServeGit(w, r)
	case r.URL.Path == "/api/graphql":
		s.serveGraph(w, r)
	case strings.HasPrefix(r.URL.Path, storagePrefix):
		s.serveLog(w, r)
	case strings.HasPrefix(r.URL.Path, apiPrefix+"/repositories/"):
		s.serveByID(w, r)
	default:
		s.contract.serve(s.t, w, r, apiPrefix, func(route string, parameters map[string]string, body []byte) reply {
			s.world.Lock()
			defer s.world.Unlock()
			return s.answer(r, route, parameters, body)
		})
	}
}

// serveByID serves what redirections lead to: "/repositories/ID/issues/1".
func (s *server) serveByID(w http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, apiPrefix+"/repositories/"), "/", 2)
	s.world.Lock()
	at := slices.IndexFunc(s.world.Repos, func(repo *forgeworld.Repo) bool { return fmt.Sprint(repo.ID) == parts[0] })
	var name string
	if at >= 0 {
		name = s.world.Repos[at].Name
	}
	s.world.Unlock()
	if name == "" || len(parts) < 2 {
		http.NotFound(w, r)
		return
	}
	r.URL.Path, r.URL.RawPath = apiPrefix+"/repos/"+name+"/"+parts[1], ""
	s.ServeHTTP(w, r)
}

// call is a request in the hands of the server.
type call struct {
	*server
	request *http.Request
	user    *forgeworld.User
	repo    *forgeworld.Repo
	item    *forgeworld.Item
	param   map[string]string
	body    []byte
}

func (s *server) answer(r *http.Request, route string, parameters map[string]string, body []byte) reply {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	answer := s.answerTo(token, r, route, parameters, body)
	if scopes, classic := s.scopes[token]; classic {
		header := map[string]string{"X-OAuth-Scopes": scopes}
		maps.Copy(header, answer.header)
		answer.header = header
	}
	return answer
}

func (s *server) answerTo(token string, r *http.Request, route string, parameters map[string]string, body []byte) reply {
	c := &call{server: s, request: r, user: s.world.Tokens[token], param: parameters, body: body}
	if handler := appHandlers[route]; handler != nil {
		return handler(c, token)
	}
	if c.user == nil {
		return refusal(401, "Bad credentials")
	}
	route = strings.Replace(route, "/repos/{owner}/{repo}", "", 1)
	if owner, found := parameters["owner"]; found {
		name := owner + "/" + parameters["repo"]
		if c.repo = s.world.Seen(name, c.user); c.repo == nil {
			return s.elsewhere(r, name)
		}
	}
	for parameter, kind := range map[string]task.ItemKind{"issue_number": "", "pull_number": task.Pull} {
		if text, found := parameters[parameter]; found {
			if c.item = c.find(text, kind); c.item == nil {
				return refusal(404, "Not Found")
			}
		}
	}
	if given, limited := s.fine[token]; limited && !mayDo(given, route) {
		return refusal(403, "Resource not accessible by personal access token")
	}
	handler, known := handlers()[route]
	if !known {
		handler, known = setupHandlers()[route]
	}
	if !known {
		s.t.Errorf("the test server does not know %q", route)
		return refusal(500, "unknown")
	}
	return handler(c)
}

// elsewhere redirects to a repository that was renamed, as GitHub does.
func (s *server) elsewhere(r *http.Request, name string) reply {
	repo := s.world.Renamed[strings.ToLower(name)]
	if repo == nil {
		return refusal(404, "Not Found")
	}
	rest := strings.TrimPrefix(r.URL.Path, apiPrefix+"/repos/"+name)
	status := http.StatusMovedPermanently
	if r.Method != http.MethodGet {
		status = http.StatusTemporaryRedirect
	}
	location := fmt.Sprintf("%s%s/repositories/%d%s", s.URL, apiPrefix, repo.ID, rest)
	return reply{status: status, header: map[string]string{"Location": location}, body: object{"message": "Moved Permanently", "url": location, "documentation_url": "x"}}
}

func (c *call) find(text string, kind task.ItemKind) *forgeworld.Item {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	for _, item := range c.repo.Items {
		if item.Number == number && (kind == "" || kind == item.Kind) {
			return item
		}
	}
	return nil
}

type object = map[string]any

func refusal(status int, message string, errors ...object) reply {
	body := object{"message": message, "documentation_url": "https://docs.github.example"}
	if errors != nil {
		body["errors"] = errors
	}
	return reply{status: status, body: body}
}

func ok(body any) reply      { return reply{status: 200, body: body} }
func created(body any) reply { return reply{status: 201, body: body} }

// read decodes the request.
func read[T any](c *call) T {
	var value T
	if err := json.Unmarshal(c.body, &value); err != nil {
		c.t.Errorf("%s: %v", c.request.URL, err)
	}
	return value
}

// page cuts a listing into pages and links to the next one.
func page[T any](c *call, all []T, show func(T) object) reply {
	query := c.request.URL.Query()
	size, _ := strconv.Atoi(query.Get("per_page"))
	if size < 1 {
		size = 30
	}
	if c.perPage > 0 {
		size = min(size, c.perPage)
	}
	number, _ := strconv.Atoi(query.Get("page"))
	number = max(number, 1)
	start := min((number-1)*size, len(all))
	end := min(start+size, len(all))
	body := []object{}
	for _, one := range all[start:end] {
		body = append(body, show(one))
	}
	answer := ok(body)
	if end < len(all) {
		query.Set("page", strconv.Itoa(number+1))
		next := *c.request.URL
		next.RawQuery = query.Encode()
		answer.header = map[string]string{"Link": fmt.Sprintf(`<%s%s>; rel="next"`, c.URL, next.String())}
	}
	return answer
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05Z") }

func (c *call) address(parts ...any) string {
	return c.URL + apiPrefix + "/repos/" + c.repo.Name + strings.TrimRight("/"+strings.Join(texts(parts), "/"), "/")
}

func texts(parts []any) []string {
	var all []string
	for _, part := range parts {
		all = append(all, fmt.Sprint(part))
	}
	return all
}

// account is a user as GitHub shows it: one that is gone is another one.
func account(user *forgeworld.User) object {
	if user.Gone {
		return object{"login": "ghost", "id": 10137, "type": "User"}
	}
	return object{"login": user.Login, "id": user.ID, "type": "User"}
}

// writer is the author of a comment, who is missing when gone.
func writer(user *forgeworld.User) any {
	if user.Gone {
		return nil
	}
	return account(user)
}

func accounts(users []*forgeworld.User) []object {
	all := []object{}
	for _, user := range users {
		all = append(all, account(user))
	}
	return all
}

func (c *call) repository(repo *forgeworld.Repo) object {
	owner, name, _ := strings.Cut(repo.Name, "/")
	return object{
		"id": repo.ID, "name": name, "full_name": repo.Name, "private": !c.public, "has_issues": !c.noIssues, "default_branch": "main",
		"html_url": c.URL + "/" + repo.Name, "size": 0, "archived": false, "owner": object{"login": owner},
		"allow_merge_commit": c.allows("merge"), "allow_squash_merge": c.allows("squash"), "allow_rebase_merge": c.allows("rebase"),
	}
}

func labelObjects(names []string) []object {
	all := []object{}
	for i, name := range names {
		all = append(all, object{"id": i + 1, "name": name, "color": "00ff00", "default": false, "description": nil})
	}
	return all
}

func state(item *forgeworld.Item) string {
	if item.State == forge.Open {
		return "open"
	}
	return "closed"
}

func (c *call) issue(item *forgeworld.Item) object {
	made := object{
		"id": item.ID, "number": item.Number, "title": item.Title, "body": item.Body, "state": state(item),
		"user": account(item.Author), "labels": labelObjects(item.Labels), "assignees": accounts(item.Assignees),
		"created_at": stamp(item.CreatedAt), "updated_at": stamp(item.UpdatedAt), "comments": len(item.Comments),
		"html_url": fmt.Sprintf("%s/%s/issues/%d", c.URL, item.Repo.Name, item.Number), "repository_url": c.URL + apiPrefix + "/repos/" + item.Repo.Name,
	}
	if item.Kind == task.Pull {
		made["html_url"] = fmt.Sprintf("%s/%s/pull/%d", c.URL, item.Repo.Name, item.Number)
		made["draft"] = item.Draft
		links := object{"merged_at": nil}
		if !item.MergedAt.IsZero() {
			links["merged_at"] = stamp(item.MergedAt)
		}
		made["pull_request"] = links
	}
	return made
}

func (c *call) pull(item *forgeworld.Item) object {
	made := c.issue(item)
	delete(made, "pull_request")
	delete(made, "repository_url")
	made["url"] = c.address("pulls", item.Number)
	made["node_id"] = fmt.Sprint("PR_", item.ID)
	made["merged_at"] = nil
	if !item.MergedAt.IsZero() {
		made["merged_at"] = stamp(item.MergedAt)
	}
	made["merged"], made["mergeable_state"] = !item.MergedAt.IsZero(), c.mergeableState(item)
	repository := c.repository(item.Repo)
	made["head"] = object{"ref": item.Head, "sha": item.HeadCommit(c.t), "repo": repository, "label": item.Head}
	made["base"] = object{"ref": item.Base, "sha": item.Repo.Branch(c.t, item.Base), "repo": repository, "label": item.Base}
	if item.Fork {
		fork := c.repository(item.Repo)
		fork["full_name"] = "someone/fork"
		made["head"] = object{"ref": item.Head, "sha": item.HeadCommit(c.t), "repo": fork, "label": item.Head}
	}
	return made
}

func (c *call) comment(comment *forgeworld.Comment) object {
	return object{
		"id": comment.ID, "body": comment.Body, "user": writer(comment.Author),
		"created_at": stamp(comment.CreatedAt), "updated_at": stamp(comment.UpdatedAt),
	}
}

func (c *call) lineComment(thread *forgeworld.Thread, comment *forgeworld.Comment) object {
	made := c.comment(comment)
	made["user"] = account(comment.Author)
	made["path"], made["side"] = thread.Anchor.Path, "RIGHT"
	if thread.Anchor.Side == forge.OldSide {
		made["side"] = "LEFT"
	}
	made["line"], made["original_line"] = thread.Anchor.Line, thread.Anchor.Line
	if thread.Commit != c.item.HeadCommit(c.t) {
		delete(made, "line")
	}
	made["commit_id"], made["original_commit_id"] = thread.Commit, thread.Commit
	made["pull_request_review_id"] = thread.Review
	if first := thread.Comments[0]; first != comment {
		made["in_reply_to_id"] = first.ID
	}
	return made
}

var reviewStates = map[forge.Verdict]string{
	forge.Approve: "APPROVED", forge.RequestChanges: "CHANGES_REQUESTED", forge.Remark: "COMMENTED",
}

func (c *call) review(review *forgeworld.Review) object {
	state := reviewStates[review.Verdict]
	if review.Dismissed {
		state = "DISMISSED"
	}
	return object{
		"id": review.ID, "body": review.Body, "state": state, "user": account(review.Author),
		"commit_id": review.Commit, "submitted_at": stamp(review.At),
	}
}

func (c *call) reaction(reaction *forgeworld.Reaction) object {
	return object{"id": reaction.ID, "content": string(reaction.Reaction), "user": account(reaction.User), "created_at": stamp(reaction.At)}
}

func (c *call) event(event *forgeworld.Event) object {
	made := object{"event": event.Kind, "created_at": stamp(event.At), "actor": account(event.Actor), "id": event.ID}
	switch {
	case event.Label != "":
		made["label"] = object{"name": event.Label, "color": "00ff00"}
	case event.Source != nil:
		delete(made, "id")
		made["updated_at"] = stamp(event.At)
		made["source"] = object{"type": "issue", "issue": c.issue(event.Source)}
	case event.Review != nil:
		made["dismissed_review"] = object{
			"state": strings.ToLower(reviewStates[event.Review.Verdict]), "review_id": event.Review.ID, "dismissal_message": "It is outdated.",
		}
	}
	return made
}
