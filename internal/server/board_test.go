package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

func TestBoardIssue(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	if got := call[wire.BoardRepositories](t, h, 200, request{who: "vera", method: get}); len(got.Repositories) != 1 || got.Repositories[0] != (wire.BoardRepository{Name: "team/app", DefaultBranch: "main"}) {
		t.Errorf("the repositories are %+v", got)
	}
	if got := call[wire.BoardRepository](t, h, 200, request{who: "vera", method: get, path: "/team/app"}); got.Name != "team/app" {
		t.Errorf("the repository is %+v", got)
	}
	made := call[wire.BoardItem](t, h, 201, request{who: "Bob Builder", method: post, path: "/team/app/issues", body: wire.NewBoardIssue{
		Title: "Fix the gate", Body: "It\r\nsqueaks\u0000.", Labels: []string{"bug"}, Assignees: []string{"bob-builder"},
	}})
	if made.Item != "team/app#1" || made.Author != "Bob-Builder" || made.Body != "It\nsqueaks." || made.State != "open" || made.Kind != "issue" {
		t.Errorf("opened %+v", made)
	}
	at := "/team/app/issues/1"
	h.issue(t, "alice", "Another")
	call[wire.BoardItem](t, h, 200, request{who: "alice", method: post, path: at + "/labels", body: wire.BoardLabel{Label: "needs: oil, soon/now"}})
	call[wire.BoardItem](t, h, 200, request{who: "alice", method: remove, path: at + "/labels?label=bug"})
	call[wire.BoardItem](t, h, 200, request{who: "alice", method: post, path: at + "/assignees", body: wire.BoardLogin{Login: "ALICE"}})
	item := call[wire.BoardItem](t, h, 200, request{who: "alice", method: remove, path: at + "/assignees?login=Bob-Builder"})
	if !slices.Equal(item.Labels, []string{"needs: oil, soon/now"}) || !slices.Equal(item.Assignees, []string{"alice"}) {
		t.Errorf("the item is %+v", item)
	}
	comment := call[wire.BoardComment](t, h, 201, request{who: "alice", method: post, path: at + "/comments", body: wire.BoardText{Body: "Which one?"}})
	call[wire.BoardComment](t, h, 200, request{who: "alice", method: patch, path: at + "/comments/" + comment.ID, body: wire.BoardText{Body: "Which gate?"}})
	call[wire.BoardItem](t, h, 200, request{who: "alice", method: patch, path: at, body: wire.BoardChange{State: "closed"}})

	for query, want := range map[string]int{
		"": 1, "?state=closed": 1, "?state=all": 2, "?state=all&limit=1": 1, "?state=all&after=1": 1, "?state=merged": 0,
		"?state=all&assignee=alice": 1, "?state=all&assignee=Bob-Builder": 0, "?label=" + url.QueryEscape("bug"): 0,
	} {
		if got := call[wire.BoardItems](t, h, 200, request{who: "vera", method: get, path: "/team/app/issues" + query}); len(got.Items) != want || got.Items == nil {
			t.Errorf("%q lists %+v, want %d", query, got.Items, want)
		}
	}
	call[wire.BoardItem](t, h, 200, request{who: "alice", method: patch, path: at, body: wire.BoardChange{State: "open"}})

	details := call[wire.BoardDetails](t, h, 200, request{who: "vera", method: get, path: at})
	if len(details.Comments) != 1 || details.Comments[0].Body != "Which gate?" || !details.Comments[0].UpdatedAt.After(details.Comments[0].CreatedAt) {
		t.Errorf("the comments are %+v", details.Comments)
	}
	var happened []string
	for _, event := range details.Timeline {
		happened = append(happened, event.Actor+" "+event.Kind+" "+event.Subject)
	}
	want := []string{
		"Bob-Builder labeled bug", "Bob-Builder assigned Bob-Builder", "alice labeled needs: oil, soon/now", "alice unlabeled bug",
		"alice assigned alice", "alice unassigned Bob-Builder", "alice state closed", "alice state open",
	}
	if !slices.Equal(happened, want) {
		t.Errorf("the timeline is %q, want %q", happened, want)
	}
	if got := call[wire.BoardTimeline](t, h, 200, request{who: "vera", method: get, path: at + "/timeline"}); !slices.Equal(got.Timeline, details.Timeline) {
		t.Errorf("the timeline by itself is %+v", got)
	}
	if got := call[wire.BoardComments](t, h, 200, request{who: "vera", method: get, path: at + "/comments"}); !slices.Equal(got.Comments, details.Comments) {
		t.Errorf("the comments by themselves are %+v", got)
	}
}

func TestBoardPull(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	h.issue(t, "alice", "Two is written small")
	h.push(t, "README.md", "one\nTWO\nthree\n")
	open := request{who: "alice", method: post, path: "/team/app/pulls", body: wire.NewBoardPull{Title: "Write two large", Body: "Closes #1", Head: "topic"}}
	pull := call[wire.BoardItem](t, h, 201, open)
	if pull.Item != "team/app#2" || pull.Kind != "pull" || pull.Base != "main" || pull.HeadCommit == "" {
		t.Errorf("opened %+v", pull)
	}
	if again := call[wire.BoardItem](t, h, 200, open); again.Number != pull.Number {
		t.Errorf("opened again %+v", again)
	}
	at := "/team/app/pulls/2"
	diff := call[wire.BoardDiff](t, h, 200, request{who: "vera", method: get, path: at + "/diff"})
	if diff.Head != pull.HeadCommit || !strings.Contains(diff.Patch, "-two\n+TWO\n") {
		t.Errorf("the diff is %+v", diff)
	}
	review := wire.NewBoardReview{Verdict: "request_changes", Body: "Not so loud.", Commit: diff.Head, Lines: []wire.NewBoardRemark{
		{On: wire.BoardLine{Path: "README.md", Line: 2}, Body: "Two is enough."},
		{On: wire.BoardLine{Path: "README.md", Line: 2, Side: "old"}, Body: "This was fine."},
	}}
	call[wire.BoardReview](t, h, 201, request{who: "Bob Builder", method: post, path: at + "/reviews", body: review})
	reviews := call[wire.BoardReviews](t, h, 200, request{who: "vera", method: get, path: at + "/reviews"})
	if len(reviews.Reviews) != 1 || reviews.Reviews[0].Author != "Bob-Builder" || reviews.Reviews[0].Verdict != "request_changes" || len(reviews.Threads) != 2 {
		t.Fatalf("the reviews are %+v", reviews)
	}
	call[wire.BoardComment](t, h, 201, request{who: "alice", method: post, path: at + "/threads/" + reviews.Threads[0].ID, body: wire.BoardText{Body: "It is the title."}})
	details := call[wire.BoardDetails](t, h, 200, request{who: "vera", method: get, path: at})
	if len(details.Reviews) != 1 || len(details.Threads) != 2 || len(details.Threads[0].Comments) != 2 || details.Threads[1].On.Side != "old" {
		t.Errorf("the details are %+v", details)
	}
	if issue := call[wire.BoardDetails](t, h, 200, request{who: "vera", method: get, path: "/team/app/issues/1"}); !slices.Equal(issue.LinkedPulls, []wire.BoardLink{{Item: "team/app#2", State: "open"}}) {
		t.Errorf("the issue is linked to %+v", issue.LinkedPulls)
	}
	merged := call[wire.BoardItem](t, h, 200, request{who: "alice", method: post, path: at + "/merge"})
	if merged.State != "merged" {
		t.Errorf("merged %+v", merged)
	}
	if got := h.git(t, h.board.Path("team/app"), "show", "main:README.md"); got != "one\nTWO\nthree" {
		t.Errorf("main has %q", got)
	}
	if issue := call[wire.BoardDetails](t, h, 200, request{who: "vera", method: get, path: "/team/app/issues/1"}); issue.State != "closed" {
		t.Errorf("the issue is %s", issue.State)
	}
	for name, r := range map[string]request{
		"merging twice":   {who: "alice", method: post, path: at + "/merge"},
		"reopening":       {who: "alice", method: patch, path: at, body: wire.BoardChange{State: "open"}},
		"an older commit": {who: "Bob Builder", method: post, path: at + "/reviews", body: wire.NewBoardReview{Verdict: "comment", Body: "x", Commit: strings.Repeat("0", 40)}},
	} {
		h.refused(t, name, r, task.Conflict)
	}
}

func TestBoardBadInput(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	h.issue(t, "alice", "One")
	h.push(t, "x", "x\n")
	call[wire.BoardItem](t, h, 201, request{who: "alice", method: post, path: "/team/app/pulls", body: wire.NewBoardPull{Title: "Two", Head: "topic"}})
	mine := call[wire.BoardComment](t, h, 201, request{who: "alice", method: post, path: "/team/app/issues/1/comments", body: wire.BoardText{Body: "Mine."}})
	large := strings.Repeat("x", 10<<20)
	for name, c := range map[string]struct {
		method, path string
		body         any
		want         task.Code
	}{
		"an unknown repository":         {get, "/no/such/issues", nil, task.NotFound},
		"an issue there":                {post, "/no/such/issues", wire.NewBoardIssue{Title: "t"}, task.NotFound},
		"a name that cannot be":         {get, "/team/..%2f..%2fetc/issues", nil, task.Invalid},
		"a name with a NUL":             {get, "/team/a%00b", nil, task.Invalid},
		"an unknown number":             {get, "/team/app/issues/99", nil, task.NotFound},
		"a comment on an unknown":       {post, "/team/app/issues/99/comments", wire.BoardText{Body: "x"}, task.NotFound},
		"a label on an unknown":         {post, "/team/app/issues/99/labels", wire.BoardLabel{Label: "x"}, task.NotFound},
		"number zero":                   {get, "/team/app/issues/0", nil, task.Invalid},
		"a number below zero":           {get, "/team/app/issues/-1", nil, task.Invalid},
		"not a number":                  {get, "/team/app/issues/one", nil, task.Invalid},
		"a number that is too large":    {get, "/team/app/issues/99999999999999999999", nil, task.Invalid},
		"a pull request as an issue":    {get, "/team/app/issues/2", nil, task.NotFound},
		"an issue as a pull request":    {get, "/team/app/pulls/1/diff", nil, task.NotFound},
		"an empty title":                {post, "/team/app/issues", wire.NewBoardIssue{}, task.Invalid},
		"a title of control characters": {post, "/team/app/issues", wire.NewBoardIssue{Title: "\u0000\u0007\n"}, task.Invalid},
		"no title":                      {post, "/team/app/issues", "{}", task.Invalid},
		"an unknown field":              {post, "/team/app/issues", `{"title":"t","colour":"red"}`, task.Invalid},
		"a list":                        {post, "/team/app/issues", `[]`, task.Invalid},
		"an issue of 10 MB":             {post, "/team/app/issues", wire.NewBoardIssue{Title: "t", Body: large}, task.TooLarge},
		"a comment of 10 MB":            {post, "/team/app/issues/1/comments", wire.BoardText{Body: large}, task.TooLarge},
		"a comment of 1 MB":             {post, "/team/app/issues/1/comments", wire.BoardText{Body: large[:1<<20]}, task.TooLarge},
		"an empty comment":              {post, "/team/app/issues/1/comments", wire.BoardText{Body: " \n\u0000"}, task.Invalid},
		"an unknown comment":            {patch, "/team/app/issues/1/comments/none", wire.BoardText{Body: "x"}, task.NotFound},
		"a comment of another item":     {patch, "/team/app/pulls/2/comments/" + mine.ID, wire.BoardText{Body: "x"}, task.NotFound},
		"a label with a line break":     {post, "/team/app/issues/1/labels", wire.BoardLabel{Label: "a\nb"}, task.Invalid},
		"a label with a NUL":            {post, "/team/app/issues/1/labels", wire.BoardLabel{Label: "a\u0000"}, task.Invalid},
		"an empty label":                {post, "/team/app/issues/1/labels", wire.BoardLabel{}, task.Invalid},
		"no label to take off":          {remove, "/team/app/issues/1/labels", nil, task.Invalid},
		"an unknown assignee":           {post, "/team/app/issues/1/assignees", wire.BoardLogin{Login: "nobody"}, task.Invalid},
		"an unknown state":              {patch, "/team/app/issues/1", `{"state":"merged"}`, task.Invalid},
		"an unknown branch":             {post, "/team/app/pulls", wire.NewBoardPull{Title: "t", Head: "none"}, task.NotFound},
		"an unknown base":               {post, "/team/app/pulls", wire.NewBoardPull{Title: "t", Head: "topic", Base: "none"}, task.NotFound},
		"a branch that is an option":    {post, "/team/app/pulls", wire.NewBoardPull{Title: "t", Head: "--output=x"}, task.Invalid},
		"a branch with a NUL":           {post, "/team/app/pulls", wire.NewBoardPull{Title: "t", Head: "a\u0000b"}, task.Invalid},
		"nothing to merge":              {post, "/team/app/pulls", wire.NewBoardPull{Title: "t", Head: "main"}, task.Invalid},
		"an unknown verdict":            {post, "/team/app/pulls/2/reviews", `{"verdict":"perhaps"}`, task.Invalid},
		"an empty review":               {post, "/team/app/pulls/2/reviews", wire.NewBoardReview{Verdict: "comment"}, task.Invalid},
		"approving one's own":           {post, "/team/app/pulls/2/reviews", wire.NewBoardReview{Verdict: "approve"}, task.Invalid},
		"a line that is not there": {post, "/team/app/pulls/2/reviews", wire.NewBoardReview{Verdict: "comment", Lines: []wire.NewBoardRemark{
			{On: wire.BoardLine{Path: "x", Line: 7}, Body: "?"},
		}}, task.Invalid},
		"an unknown thread":     {post, "/team/app/pulls/2/threads/none", wire.BoardText{Body: "x"}, task.NotFound},
		"merging an unknown":    {post, "/team/app/pulls/99/merge", nil, task.NotFound},
		"an import of nothing":  {post, "", wire.NewBoardRepository{Name: "team/new"}, task.Invalid},
		"an import over ssh":    {post, "", wire.NewBoardRepository{Name: "team/new", Source: "ssh://host/x"}, task.Invalid},
		"the short form of ssh": {post, "", wire.NewBoardRepository{Name: "team/new", Source: "git@host:x"}, task.Invalid},
		"a program to run":      {post, "", wire.NewBoardRepository{Name: "team/new", Source: "ext::sh -c true"}, task.Invalid},
		"an option":             {post, "", wire.NewBoardRepository{Name: "team/new", Source: "--upload-pack=x"}, task.Invalid},
		"a file by URL":         {post, "", wire.NewBoardRepository{Name: "team/new", Source: "file://" + h.source}, task.Invalid},
		"a folder":              {post, "", wire.NewBoardRepository{Name: "team/new", Source: h.source}, task.Forbidden},
		"nobody there":          {post, "", wire.NewBoardRepository{Name: "team/new", Source: "http://127.0.0.1:1/x"}, task.Invalid},
	} {
		h.refused(t, name, request{who: "alice", method: c.method, path: c.path, body: c.body}, c.want)
	}
	for _, document := range []any{nil, `{"title":`} {
		if status, text := h.do(t, request{who: "alice", method: post, path: "/team/app/issues", body: document}); status != 400 {
			t.Errorf("the document %v answers %d %s", document, status, text)
		}
	}
	// Nothing of all that has left anything behind.
	if got := call[wire.BoardDetails](t, h, 200, request{who: "vera", method: get, path: "/team/app/issues/1"}); len(got.Comments) != 1 || len(got.Timeline) != 0 {
		t.Errorf("the issue is %+v", got)
	}
	if got := call[wire.BoardItems](t, h, 200, request{who: "vera", method: get, path: "/team/app/issues?state=all"}); len(got.Items) != 1 {
		t.Errorf("the issues are %+v", got)
	}
}

func TestBoardImport(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	folder := request{who: "root", method: post, body: wire.NewBoardRepository{Name: "team/new", Source: h.source}}
	if made := call[wire.BoardRepository](t, h, 201, folder); made.Name != "team/new" || made.DefaultBranch != "main" {
		t.Errorf("imported %+v", made)
	}
	h.refused(t, "a name that is taken", folder, task.Conflict)

	// A repository on a web server, as git update-server-info makes it.
	bare := t.TempDir()
	h.git(t, bare, "clone", "-q", "--bare", h.source, "app.git")
	h.git(t, filepath.Join(bare, "app.git"), "update-server-info")
	web := httptest.NewServer(http.FileServer(http.Dir(bare)))
	defer web.Close()
	made := call[wire.BoardRepository](t, h, 201, request{who: "alice", method: post, body: wire.NewBoardRepository{Name: "team/web", Source: web.URL + "/app.git"}})
	if made.DefaultBranch != "main" {
		t.Errorf("imported %+v", made)
	}
}

func TestBoardRoles(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	issue := h.issue(t, "alice", "One")
	at := fmt.Sprintf("/team/app/issues/%d", issue.Number)
	comment := call[wire.BoardComment](t, h, 201, request{who: "alice", method: post, path: at + "/comments", body: wire.BoardText{Body: "Mine."}})
	writes := map[string]request{
		"open":    {method: post, path: "/team/app/issues", body: wire.NewBoardIssue{Title: "t"}},
		"comment": {method: post, path: at + "/comments", body: wire.BoardText{Body: "x"}},
		"edit":    {method: patch, path: at + "/comments/" + comment.ID, body: wire.BoardText{Body: "x"}},
		"label":   {method: post, path: at + "/labels", body: wire.BoardLabel{Label: "x"}},
		"close":   {method: patch, path: at, body: wire.BoardChange{State: "closed"}},
		"import":  {method: post, body: wire.NewBoardRepository{Name: "team/new", Source: "https://127.0.0.1:1/x"}},
		"merge":   {method: post, path: "/team/app/pulls/1/merge"},
	}
	for name, r := range writes {
		r.who = "vera"
		h.refused(t, "a viewer: "+name, r, task.Forbidden)
		r.who = ""
		h.refused(t, "nobody: "+name, r, task.Unauthorized)
	}
	reads := request{method: get, path: at}
	h.refused(t, "nobody reads", reads, task.Unauthorized)
	reads.who = "machine"
	h.refused(t, "an agent reads", reads, task.Forbidden)

	edit := writes["edit"]
	for _, who := range []string{"Bob Builder", "root"} {
		edit.who = who
		h.refused(t, who+" edits what is not theirs", edit, task.Forbidden)
	}
	// An administrator may act as someone else, but nobody else may.
	edit.who, edit.as = "root", "alice"
	if got := call[wire.BoardComment](t, h, 200, edit); got.Author != "alice" || got.Body != "x" {
		t.Errorf("edited %+v", got)
	}
	gone := request{who: "Bob Builder", method: remove, path: at + "/comments/" + comment.ID}
	h.refused(t, "removing what is not theirs", gone, task.Forbidden)
	gone.who = "root"
	if status, text := h.do(t, gone); status != http.StatusNoContent {
		t.Errorf("an administrator removes a comment: %d %s", status, text)
	}
	h.refused(t, "removing it again", gone, task.NotFound)
	edit.as = "nobody"
	h.refused(t, "acting as nobody", edit, task.Invalid)
	edit.who, edit.as = "Bob Builder", "alice"
	h.refused(t, "acting as someone else", edit, task.Forbidden)
}

// What an administrator of the board decides about an account goes over the
// token's role.
func TestBoardAccess(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	h.issue(t, "alice", "One")
	label := request{who: "alice", method: post, path: "/team/app/issues/1/labels", body: wire.BoardLabel{Label: "x"}}
	must(t, h.board.SetAccess(t.Context(), "alice", forge.ReadAccess))
	h.refused(t, "with read access", label, task.Forbidden)
	must(t, h.board.SetAccess(t.Context(), "alice", forge.NoAccess))
	h.refused(t, "without access", label, task.NotFound)
	h.refused(t, "importing without access", request{who: "alice", method: post, body: wire.NewBoardRepository{Name: "a/b", Source: "http://127.0.0.1:1/x"}}, task.NotFound)
	must(t, h.board.RemoveUser(t.Context(), "alice"))
	h.refused(t, "after removal", label, task.Forbidden)

	users, err := h.board.Users(t.Context())
	if err != nil || len(users) != 0 {
		t.Errorf("the users are %+v, %v", users, err)
	}
	// A token without a name that could be a login has one of its own.
	h.tokens["夜勤"] = h.namedToken(t, access.Operator, "夜勤")
	if made := h.issue(t, "夜勤", "Two"); !strings.HasPrefix(made.Author, "token-") {
		t.Errorf("opened by %q", made.Author)
	}
	for who, want := range map[string]forge.Access{"vera": forge.ReadAccess, "Bob Builder": forge.WriteAccess, "root": forge.AdminAccess} {
		call[wire.BoardItems](t, h, 200, request{who: who, method: get, path: "/team/app/issues"})
		login, _ := h.board.LoginOf(who)
		users, err := h.board.Users(t.Context())
		if err != nil || !slices.Contains(users, board.User{Login: login, Access: want}) {
			t.Errorf("%s is not among %+v with %s access, %v", login, users, want, err)
		}
	}
}

// Many comment at once, for the first time: all comments are there, in the order
// in which they were made.
func TestBoardCommentsAtOnce(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	h.issue(t, "alice", "One")
	path := "/team/app/issues/1/comments"
	first := call[wire.BoardComment](t, h, 201, request{who: "alice", method: post, path: path, body: wire.BoardText{Body: "first"}})
	var lock sync.Mutex
	made := map[string]wire.BoardComment{}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			status, text := h.do(t, request{who: "Bob Builder", method: post, path: path, body: wire.BoardText{Body: fmt.Sprint(i)}})
			var comment wire.BoardComment
			if err := json.Unmarshal([]byte(text), &comment); err != nil || status != 201 {
				t.Errorf("comment %d: %d %s, %v", i, status, text, err)
			}
			lock.Lock()
			defer lock.Unlock()
			made[comment.ID] = comment
		})
	}
	group.Wait()
	last := call[wire.BoardComment](t, h, 201, request{who: "alice", method: post, path: path, body: wire.BoardText{Body: "last"}})
	got := call[wire.BoardComments](t, h, 200, request{who: "vera", method: get, path: path}).Comments
	if len(made) != 20 || len(got) != 22 || got[0] != first || got[21] != last {
		t.Fatalf("made %d, there are %d: %+v", len(made), len(got), got)
	}
	for i, comment := range got[1:21] {
		if comment != made[comment.ID] {
			t.Errorf("%+v was made as %+v", comment, made[comment.ID])
		}
		if comment.CreatedAt.Before(got[i].CreatedAt) {
			t.Errorf("%+v comes after %+v", comment, got[i])
		}
	}
}

// An agent sees the tasks that it holds, and nothing of the board.
func TestBoardIsNotForAgents(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t)
	_, _, text := h.get(t, "/openapi.json", "")
	var document struct{ Paths map[string]map[string]any }
	must(t, json.Unmarshal([]byte(text), &document))
	seen := 0
	for path, operations := range document.Paths {
		below, onBoard := strings.CutPrefix(path, boardPath)
		if !onBoard {
			continue
		}
		for method := range operations {
			seen++
			h.refused(t, method+" "+path, request{who: "machine", method: strings.ToUpper(method), path: strings.NewReplacer("{", "", "}", "").Replace(below)}, task.Forbidden)
		}
	}
	if seen < 20 {
		t.Errorf("only %d operations were found", seen)
	}
}

func TestWithoutABoard(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if status, _, _ := h.get(t, boardPath, h.token(t, access.Admin)); status != http.StatusNotFound {
		t.Errorf("without a board it answers %d", status)
	}
}
