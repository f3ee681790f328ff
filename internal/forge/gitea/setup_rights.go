package gitea

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// trial is a request that shows whether we have a right. Gitea looks at the scopes of the token
// first, then at the repository, at what the account may do in it, and at last at the body.
//
// A trial never changes anything. Where it is a write, its body is a list: Gitea wants an object
// and refuses everything else before the call begins. Most of them name something besides that
// cannot be there: the issue 0, a commit of zeros.
type trial struct {
	right        forge.Right
	method, path string
	scope        string // that the token needs
	role         string // that the account needs besides
}

// invalidBody is what no call of Gitea's takes.
const invalidBody = `[]`

// noCommit is the hash of no commit.
const noCommit = "0000000000000000000000000000000000000000"

// trials are in the order of [forge.NeededRights]. Gitea has no right of its own for workflows.
func trials(repository string) []trial {
	const (
		get, post       = http.MethodGet, http.MethodPost
		readCode        = "the right to read the code"
		writeCode       = "the right to write, as a collaborator or by a team"
		issues          = "issues or pull requests that are switched on in the repository and that the account may read"
		readRepository  = "read:repository"
		writeRepository = "write:repository"
	)
	return []trial{
		{forge.ReadSelf, get, "/user", "read:user", ""},
		{forge.ReadCode, get, repository + "/branches?limit=1", readRepository, readCode},
		{forge.Push, post, repository + "/branches", writeRepository, writeCode},
		{forge.ReadItems, get, repository + "/issues?limit=1", "read:issue", issues},
		{forge.CommentOn, post, repository + "/issues/0/comments", "write:issue", issues},
		{forge.LabelItems, post, repository + "/labels", "write:issue", "the right to write issues or pull requests, as a collaborator or by a team"},
		{forge.OpenPulls, post, repository + "/pulls", writeRepository, "pull requests that are switched on in the repository and that the account may read"},
		{forge.SetStatuses, post, repository + "/statuses/" + noCommit, writeRepository, writeCode},
		{forge.ReadChecks, get, repository + "/statuses/" + noCommit, readRepository, readCode},
		{forge.ManageHooks, post, repository + "/hooks", writeRepository, "the right to administer the repository, as its owner, a collaborator or by a team"},
	}
}

// CheckRights tries what we need in a repository.
func (f *Forge) CheckRights(ctx context.Context, repository string) ([]forge.RightCheck, error) {
	path, err := repositoryPath(repository)
	if err != nil {
		return nil, err
	}
	var found sdk.Repository
	var checks []forge.RightCheck
	for i, one := range trials(path) {
		if i == 1 { // once the token is known to be good
			if found, err = f.seenRepository(ctx, repository); err != nil {
				return nil, err
			}
		}
		check, err := f.try(ctx, repository, one)
		if err != nil {
			return nil, err
		}
		checks = append(checks, inRepository(check, found))
	}
	return checks, nil
}

// seenRepository is the repository, which has to be there for the token. Without the scope for it
// that is not known, and what is tried says so.
func (f *Forge) seenRepository(ctx context.Context, repository string) (sdk.Repository, error) {
	owner, name, err := split(repository)
	if err != nil {
		return sdk.Repository{}, err
	}
	found, answer, err := f.client(ctx).GetRepo(owner, name)
	err = callError("read the repository "+repository, answer, err)
	switch task.CodeOf(err) {
	case task.Forbidden:
		return sdk.Repository{}, nil
	case task.NotFound:
		return sdk.Repository{}, task.Wrap(task.NotFound, err, "Gitea shows us no repository "+repository).
			WithHint("check the name, and make the account a collaborator or a member of a team that has the repository")
	}
	if err != nil || found == nil {
		return sdk.Repository{}, err
	}
	return *found, nil
}

// inRepository adds to what was found what the repository says of itself. Where it can have no pull
// requests Gitea answers as if they were switched off. Where only issues are switched off, or are those
// of another program, it answers with pull requests in place of them.
func inRepository(check forge.RightCheck, found sdk.Repository) forge.RightCheck {
	missing := check.State == forge.RightMissing
	noIssues := found.ID != 0 && (!found.HasIssues || found.ExternalTracker != nil)
	switch {
	case check.Right == forge.OpenPulls && missing && found.Empty:
		check.Given, check.Found = "a first commit in the repository", "the repository is empty"
	case check.Right == forge.OpenPulls && missing && found.Mirror:
		check.Given, check.Found = "a repository that is no mirror of another", "the repository is a mirror"
	case (check.Right == forge.ReadItems || check.Right == forge.CommentOn) && !missing && noIssues:
		check.State, check.Given, check.Found = forge.RightMissing, "issues that are switched on in the repository", "issues are switched off"
	}
	return check
}

// try tries one right. An error is that Gitea does not take the token at all, or did not answer.
func (f *Forge) try(ctx context.Context, repository string, one trial) (forge.RightCheck, error) {
	var body io.Reader = http.NoBody
	if one.method != http.MethodGet {
		body = strings.NewReader(invalidBody)
	}
	what := "find out what we may do in " + repository
	request, err := f.newRequest(ctx, one.method, one.path, body)
	if err != nil {
		return forge.RightCheck{}, callError(what, nil, err)
	}
	answer, err := f.http.Do(request)
	if err != nil {
		return forge.RightCheck{}, callError(what, nil, fmt.Errorf("send the request: %w", err))
	}
	defer func() { _ = answer.Body.Close() }()
	said := saidBy(answer)
	if answer.StatusCode >= http.StatusMultipleChoices {
		err := callError(what, &sdk.Response{Response: answer}, errors.New(said))
		switch code := task.CodeOf(err); {
		case code == task.Unauthorized, code == task.Unavailable:
			return forge.RightCheck{}, err
		case code == task.NotFound && one.right == forge.ReadSelf: // it knows nothing of the interface, or redirects
			return forge.RightCheck{}, task.Wrap(task.NotFound, err, "this is not the address of a Gitea server").
				WithHint("check the URL of the server: it has to be the one that people use, with https and a path if that has them")
		}
	}
	return one.judge(answer.StatusCode, said), nil
}

// saidBy is the reason that Gitea gives in an answer.
func saidBy(answer *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
	var reason struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &reason) == nil && reason.Message != "" {
		return forge.ShortReason(reason.Message)
	}
	return forge.ShortReason(answer.Status)
}

// judge says what an answer shows.
func (t trial) judge(status int, said string) forge.RightCheck {
	check := forge.RightCheck{Right: t.right, State: forge.RightGiven, Given: "the scope " + t.scope}
	if t.role != "" {
		check.Given += ", and " + t.role
	}
	reads := t.method == http.MethodGet
	switch {
	case reads && status < http.StatusMultipleChoices:
	case !reads && (status == http.StatusUnprocessableEntity || status == http.StatusBadRequest): // it came to the body
	case status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusLocked:
		check.State, check.Found, check.Given = forge.RightMissing, said, t.missing(status, said)
	default:
		check.State, check.Found = forge.RightUnknown, said
	}
	return check
}

// missing is what would give the right, by the reason that Gitea gave.
func (t trial) missing(status int, said string) string {
	switch {
	case strings.Contains(said, "required scope"):
		return "the scope " + t.scope
	case strings.Contains(said, "limited to public"):
		return "a token that is not limited to what is public"
	case strings.Contains(said, "webhooks disabled"):
		return "webhooks, which are switched off for all of Gitea (DISABLE_WEBHOOKS in the section [security] of its configuration)"
	case status == http.StatusLocked:
		return "a repository that is not archived"
	case t.role == "":
		return "an account that Gitea lets in"
	}
	return t.role
}
