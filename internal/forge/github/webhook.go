package github

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

var (
	_ forge.WebhookParser = ParseWebhook
	_ forge.WebhookSigned = SignedWebhook
)

// WebhookEvents are the events of GitHub that tell of changes to items and of checks.
var WebhookEvents = forge.WebhookEvents{
	{Name: "issues", Title: "Issues", Issue: []forge.ItemChange{forge.TextChanged, forge.AssigneesChanged, forge.LabelsChanged}},
	{Name: "issue_comment", Title: "Issue comments", Issue: []forge.ItemChange{forge.CommentsChanged}, Pull: []forge.ItemChange{forge.CommentsChanged}},
	{
		Name: "pull_request", Title: "Pull requests",
		Pull: []forge.ItemChange{forge.TextChanged, forge.AssigneesChanged, forge.LabelsChanged, forge.CommitsChanged},
	},
	{Name: "pull_request_review", Title: "Pull request reviews", Pull: []forge.ItemChange{forge.ReviewsChanged}},
	{Name: "pull_request_review_comment", Title: "Pull request review comments", Pull: []forge.ItemChange{forge.ReviewCommentsChanged}},
	{Name: "check_run", Title: "Check runs"},
	{Name: "status", Title: "Statuses"},
}

// hookBody is what we read of a webhook.
type hookBody struct {
	Action      string     `json:"action"`
	Ref         string     `json:"ref"`
	Repository  hookRepo   `json:"repository"`
	Sender      hookUser   `json:"sender"`
	Issue       *hookIssue `json:"issue"`
	PullRequest *hookIssue `json:"pull_request"`
	SHA         string     `json:"sha"` // of a status
	CheckRun    hookRun    `json:"check_run"`
	CheckSuite  hookRun    `json:"check_suite"`
	WorkflowJob hookRun    `json:"workflow_job"`
	WorkflowRun hookRun    `json:"workflow_run"`
	Changes     struct {
		NewIssue      *hookIssue `json:"new_issue"`
		NewRepository hookRepo   `json:"new_repository"`
	} `json:"changes"`
}

type hookRepo struct {
	FullName string `json:"full_name"`
}

type hookUser struct {
	Login string `json:"login"`
}

type hookIssue struct {
	Number      int       `json:"number"`
	PullRequest *struct{} `json:"pull_request"` // there if the issue is one
}

// hookRun is something that ran on a commit.
type hookRun struct {
	HeadSHA string `json:"head_sha"`
}

// ParseWebhook verifies a webhook of GitHub and says what it is about.
func ParseWebhook(secret string, header http.Header, body ...[]byte) (forge.Delivery, error) {
	if err := forge.CheckSignature(secret, signatureOf(header), body...); err != nil {
		return forge.Delivery{}, err
	}
	text, err := forge.WebhookJSON(header, body...)
	if err != nil {
		return forge.Delivery{}, err
	}
	var hook hookBody
	if err := json.Unmarshal(text, &hook); err != nil {
		return forge.Delivery{}, task.Wrap(task.Invalid, err, "the webhook of GitHub cannot be read")
	}
	delivery := forge.Delivery{
		ID:         forge.DeliveryID(header, "X-Github-Delivery"),
		Forge:      task.GitHub,
		Kind:       forge.NothingChanged,
		Event:      forge.Clean(header.Get("X-Github-Event")),
		Repository: hook.Repository.FullName,
		Actor:      hook.Sender.Login,
	}
	if WebhookEvents.Has(delivery.Event) {
		delivery.Enabled = delivery.Event
	}
	delivery.CommentEdited = delivery.Event == "issue_comment" && hook.Action == "edited"
	return hook.classify(delivery)
}

// SignedWebhook says whether the headers of a webhook have a signature.
func SignedWebhook(secret string, header http.Header) error {
	return forge.IsSignature(secret, signatureOf(header))
}

func signatureOf(header http.Header) string {
	signature, found := strings.CutPrefix(header.Get("X-Hub-Signature-256"), "sha256=")
	if !found {
		return ""
	}
	return signature
}

// classify says what the event is about.
func (h hookBody) classify(delivery forge.Delivery) (forge.Delivery, error) {
	switch delivery.Event {
	case "issues", "issue_comment":
		return h.classifyIssue(delivery)
	case "pull_request", "pull_request_target", "pull_request_review",
		"pull_request_review_comment", "pull_request_review_thread":
		if h.PullRequest == nil {
			return forge.Delivery{}, task.Errorf(task.Invalid, "the webhook %s of GitHub names no pull request", delivery.Event)
		}
		return delivery.About(key(h.Repository.FullName, task.Pull, h.PullRequest.Number))
	case "status", "check_run", "check_suite", "workflow_job", "workflow_run":
		return delivery.OfChecks(cmp.Or(h.SHA, h.CheckRun.HeadSHA, h.CheckSuite.HeadSHA, h.WorkflowJob.HeadSHA, h.WorkflowRun.HeadSHA))
	case "push":
		if branch, found := strings.CutPrefix(h.Ref, "refs/heads/"); found {
			delivery.Kind, delivery.Branch = forge.Pushed, branch
		}
	case "label", "repository", "member", "team_add":
		delivery.Kind = forge.RepositoryChanged
	}
	return delivery, nil
}

func (h hookBody) classifyIssue(delivery forge.Delivery) (forge.Delivery, error) {
	if h.Issue == nil {
		return forge.Delivery{}, task.Errorf(task.Invalid, "the webhook %s of GitHub names no issue", delivery.Event)
	}
	kind := task.Issue
	if h.Issue.PullRequest != nil {
		kind = task.Pull
	}
	items := []task.Key{key(h.Repository.FullName, kind, h.Issue.Number)}
	if to := h.Changes.NewIssue; to != nil && h.Changes.NewRepository.FullName != "" {
		items = append(items, key(h.Changes.NewRepository.FullName, kind, to.Number))
	}
	return delivery.About(items...)
}
