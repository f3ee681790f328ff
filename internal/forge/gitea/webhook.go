package gitea

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

// WebhookEvents are the events of Gitea and Forgejo that tell of changes to items and
// of checks. A reply on a line of a pull request is sent as a comment on it. Jobs of Gitea's
// own set statuses.
var WebhookEvents = forge.WebhookEvents{
	{Name: "issues", Title: "Issues", Issue: []forge.ItemChange{forge.TextChanged}},
	{Name: "issue_assign", Title: "Issue Assigned", Issue: []forge.ItemChange{forge.AssigneesChanged}},
	{Name: "issue_label", Title: "Issue Labeled", Issue: []forge.ItemChange{forge.LabelsChanged}},
	{Name: "issue_comment", Title: "Issue Comment", Issue: []forge.ItemChange{forge.CommentsChanged}},
	{Name: "pull_request", Title: "Pull Request", Pull: []forge.ItemChange{forge.TextChanged}},
	{Name: "pull_request_assign", Title: "Pull Request Assigned", Pull: []forge.ItemChange{forge.AssigneesChanged}},
	{Name: "pull_request_label", Title: "Pull Request Labeled", Pull: []forge.ItemChange{forge.LabelsChanged}},
	{Name: "pull_request_sync", Title: "Pull Request Synchronized", Pull: []forge.ItemChange{forge.CommitsChanged}},
	{Name: "pull_request_review", Title: "Pull Request Reviewed", Pull: []forge.ItemChange{forge.ReviewsChanged, forge.ReviewCommentsChanged}},
	{Name: "pull_request_comment", Title: "Pull Request Comment", Pull: []forge.ItemChange{forge.CommentsChanged, forge.ReviewCommentsChanged}},
	{Name: "status", Title: "Statuses"},
}

// hookBody is what we read of a webhook.
type hookBody struct {
	Action     string `json:"action"`
	Ref        string `json:"ref"`
	IsPull     bool   `json:"is_pull"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
	Sender struct {
		Login string `json:"login"`
	} `json:"sender"`
	SHA         string    `json:"sha"` // of a status
	WorkflowJob hookRun   `json:"workflow_job"`
	WorkflowRun hookRun   `json:"workflow_run"`
	Comment     *struct{} `json:"comment"`
	Issue       *hookItem `json:"issue"`
	PullRequest *hookItem `json:"pull_request"`
}

type hookItem struct {
	Number      int64     `json:"number"`
	PullRequest *struct{} `json:"pull_request"` // there if the issue is one
}

// hookRun is something that ran on a commit.
type hookRun struct {
	HeadSHA string `json:"head_sha"`
}

// ParseWebhook verifies a webhook of Gitea or Forgejo and says what it is about.
func ParseWebhook(secret string, header http.Header, body ...[]byte) (forge.Delivery, error) {
	text, err := verified(secret, header, body)
	if err != nil {
		return forge.Delivery{}, err
	}
	var hook hookBody
	if err := json.Unmarshal(text, &hook); err != nil {
		return forge.Delivery{}, task.Wrap(task.Invalid, err, "the webhook of Gitea cannot be read")
	}
	delivery := forge.Delivery{
		ID:         cmp.Or(forge.DeliveryID(header, "X-Gitea-Delivery"), forge.DeliveryID(header, "X-Forgejo-Delivery")),
		Forge:      task.Gitea,
		Kind:       forge.NothingChanged,
		Event:      forge.Clean(cmp.Or(header.Get("X-Gitea-Event"), header.Get("X-Forgejo-Event"))),
		Repository: hook.Repository.FullName,
		Actor:      hook.Sender.Login,
	}
	delivery.CommentEdited = hook.Comment != nil && hook.Action == "edited"
	return hook.classify(delivery)
}

// verified returns the JSON of a webhook that is signed. What is signed is the JSON,
// also when it is sent in a form.
func verified(secret string, header http.Header, body [][]byte) ([]byte, error) {
	if !forge.IsForm(header) {
		if err := forge.CheckSignature(secret, signatureOf(header), body...); err != nil {
			return nil, err
		}
		return forge.WebhookJSON(header, body...)
	}
	text, err := forge.WebhookJSON(header, body...)
	if err != nil {
		return nil, err
	}
	return text, forge.CheckSignature(secret, signatureOf(header), text)
}

// SignedWebhook says whether the headers of a webhook have a signature.
func SignedWebhook(secret string, header http.Header) error {
	return forge.IsSignature(secret, signatureOf(header))
}

// signatureOf is the signature of a webhook. Forgejo sends Gitea's headers as well
// as its own.
func signatureOf(header http.Header) string {
	return cmp.Or(header.Get("X-Gitea-Signature"), header.Get("X-Forgejo-Signature"))
}

// enabled is the event that the webhook is enabled for when it tells of an item. The
// header has but the group of the event; the action has which of them it is.
func (h hookBody) enabled(kind task.ItemKind) string {
	issue, pull := "", ""
	switch {
	case h.Comment != nil:
		issue, pull = "issue_comment", "pull_request_comment"
	case h.Action == "opened", h.Action == "closed", h.Action == "reopened", h.Action == "edited":
		issue, pull = "issues", "pull_request"
	case h.Action == "assigned", h.Action == "unassigned":
		issue, pull = "issue_assign", "pull_request_assign"
	case h.Action == "label_updated", h.Action == "label_cleared":
		issue, pull = "issue_label", "pull_request_label"
	case h.Action == "synchronized":
		pull = "pull_request_sync"
	case h.Action == "reviewed":
		pull = "pull_request_review"
	}
	if kind == task.Pull {
		return pull
	}
	return issue
}

// classify says what the event is about. The names of events differ between versions;
// what is in the body does not.
func (h hookBody) classify(delivery forge.Delivery) (forge.Delivery, error) {
	item := task.Key{Forge: task.Gitea, Repository: delivery.Repository, Kind: task.Issue}
	switch {
	case delivery.Event == "status":
		delivery.Enabled = "status"
		return delivery.OfChecks(h.SHA)
	case delivery.Event == "workflow_job", delivery.Event == "workflow_run": // which may name a pull request
		return delivery.OfChecks(cmp.Or(h.WorkflowJob.HeadSHA, h.WorkflowRun.HeadSHA))
	case h.PullRequest != nil:
		item.Kind, item.Number = task.Pull, h.PullRequest.Number
		delivery.Enabled = h.enabled(item.Kind)
		return delivery.About(item)
	case h.Issue != nil:
		item.Number = h.Issue.Number
		if h.IsPull || h.Issue.PullRequest != nil {
			item.Kind = task.Pull
		}
		delivery.Enabled = h.enabled(item.Kind)
		return delivery.About(item)
	case delivery.Event == "push":
		if branch, found := strings.CutPrefix(h.Ref, "refs/heads/"); found {
			delivery.Kind, delivery.Branch = forge.Pushed, branch
		}
	case delivery.Event == "repository":
		delivery.Kind = forge.RepositoryChanged
	}
	return delivery, nil
}
