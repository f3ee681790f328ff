package gitlab

import (
	"bytes"
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

// WebhookEvents are the events of GitLab that tell of changes to items and of checks. Confidential
// issues and comments have events of their own, which tell nothing of the others.
var WebhookEvents = forge.WebhookEvents{
	{Name: "issues_events", Title: "Issues events", Issue: []forge.ItemChange{forge.TextChanged, forge.AssigneesChanged, forge.LabelsChanged}},
	{
		Name: "note_events", Title: "Comments", Issue: []forge.ItemChange{forge.CommentsChanged},
		Pull: []forge.ItemChange{forge.CommentsChanged, forge.ReviewsChanged, forge.ReviewCommentsChanged},
	},
	{
		Name: "merge_requests_events", Title: "Merge request events",
		Pull: []forge.ItemChange{forge.TextChanged, forge.AssigneesChanged, forge.LabelsChanged, forge.CommitsChanged},
	},
	{Name: "pipeline_events", Title: "Pipeline events"},
	{Name: "job_events", Title: "Job events"},
}

// hookBody is what we read of a webhook. System hooks have an event name in place
// of the kind, and for some events the project's path on the outside.
type hookBody struct {
	ObjectKind       string      `json:"object_kind"`
	EventName        string      `json:"event_name"`
	EventType        string      `json:"event_type"` // tells what is confidential
	Ref              string      `json:"ref"`
	SHA              string      `json:"sha"` // of a job
	Path             string      `json:"path_with_namespace"`
	OldPath          string      `json:"old_path_with_namespace"`
	Project          hookProject `json:"project"`
	ObjectAttributes struct {
		IID    int64       `json:"iid"`
		SHA    string      `json:"sha"` // of a pipeline
		Action string      `json:"action"`
		Hidden bool        `json:"confidential"`
		Target hookProject `json:"target"`
	} `json:"object_attributes"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Issue        *hookItem `json:"issue"`
	MergeRequest *hookItem `json:"merge_request"`
}

type hookProject struct {
	Path string `json:"path_with_namespace"`
}

type hookItem struct {
	IID int64 `json:"iid"`
}

// ParseWebhook verifies a webhook of GitLab and says what it is about. Older
// servers send no id, and failed deliveries are not sent again by any.
func ParseWebhook(secret string, header http.Header, body ...[]byte) (forge.Delivery, error) {
	if err := SignedWebhook(secret, header); err != nil {
		return forge.Delivery{}, err
	}
	var hook hookBody
	if err := json.Unmarshal(bytes.Join(body, nil), &hook); err != nil {
		return forge.Delivery{}, task.Wrap(task.Invalid, err, "the webhook of GitLab cannot be read")
	}
	kind := cmp.Or(hook.ObjectKind, hook.EventName)
	delivery := forge.Delivery{
		ID:         forge.DeliveryID(header, "Idempotency-Key"),
		Forge:      task.GitLab,
		Kind:       forge.NothingChanged,
		Event:      forge.Clean(kind),
		Repository: cmp.Or(hook.Project.Path, hook.OldPath, hook.Path),
		Actor:      hook.User.Username,
	}
	if !strings.HasPrefix(header.Get("X-Gitlab-Event"), "Confidential ") { // all that old servers say about it
		delivery.Enabled = hook.enabled(kind)
	}
	delivery.CommentEdited = kind == "note" && hook.ObjectAttributes.Action == "update"
	return hook.classify(delivery, kind)
}

// enabled is the event that the webhook is enabled for. The test that people can send
// on the page of a webhook has no action, and shows nothing.
func (h hookBody) enabled(kind string) string {
	switch {
	case h.ObjectAttributes.Hidden, strings.HasPrefix(h.EventType, "confidential_"):
		return ""
	case kind == "note":
		return "note_events"
	case kind == "pipeline":
		return "pipeline_events"
	case kind == "build":
		return "job_events"
	case h.ObjectAttributes.Action == "":
		return ""
	case kind == "issue", kind == "work_item":
		return "issues_events"
	case kind == "merge_request":
		return "merge_requests_events"
	}
	return ""
}

// SignedWebhook says whether the headers of a webhook have the secret, which is
// all that GitLab sends.
func SignedWebhook(secret string, header http.Header) error {
	return forge.CheckToken(secret, header.Get("X-Gitlab-Token"))
}

// classify says what the event is about.
func (h hookBody) classify(delivery forge.Delivery, kind string) (forge.Delivery, error) {
	about := func(kind task.ItemKind, number int64) (forge.Delivery, error) {
		return delivery.About(task.Key{Forge: task.GitLab, Repository: delivery.Repository, Kind: kind, Number: number})
	}
	switch kind {
	case "issue", "work_item":
		return about(task.Issue, h.ObjectAttributes.IID)
	case "merge_request":
		delivery.Repository = cmp.Or(h.ObjectAttributes.Target.Path, delivery.Repository)
		return about(task.Pull, h.ObjectAttributes.IID)
	case "note", "emoji":
		switch {
		case h.MergeRequest != nil:
			return about(task.Pull, h.MergeRequest.IID)
		case h.Issue != nil:
			return about(task.Issue, h.Issue.IID)
		}
	case "pipeline", "build":
		if delivery.Repository != "" { // older servers do not say it of jobs
			return delivery.OfChecks(cmp.Or(h.ObjectAttributes.SHA, h.SHA))
		}
	case "push":
		if branch, found := strings.CutPrefix(h.Ref, "refs/heads/"); found {
			delivery.Kind, delivery.Branch = forge.Pushed, branch
		}
	case "project_rename", "project_transfer", "project_update", "project_destroy",
		"user_add_to_team", "user_remove_from_team", "user_update_for_team":
		if delivery.Repository != "" {
			delivery.Kind = forge.RepositoryChanged
		}
	}
	return delivery, nil
}
