package gitlab

import (
	"context"
	"net/http"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// MergePull merges a merge request, by the method of the project and with the settings of
// the merge request. GitLab has nobody pass its rules by this call.
func (f *Forge) MergePull(ctx context.Context, key task.Key, head string) error {
	if err := checkPull(key); err != nil {
		return err
	}
	request, err := f.request(ctx, key)
	if err != nil {
		return err
	}
	item := pullItem(key.Repository, &request.BasicMergeRequest)
	if item.State == forge.Merged {
		return nil
	}
	if err := forge.Mergeable(item, head); err != nil {
		return err
	}
	if err := mergeable(key, request); err != nil {
		return err
	}
	options := gl.AcceptMergeRequestOptions{SHA: &head}
	merged, _, err := f.client.MergeRequests.AcceptMergeRequest(key.Repository, key.Number, &options, in(ctx))
	switch status(err) {
	case http.StatusUnauthorized: // GitLab has just told us about it: it is a right that is missing
		return task.Wrap(task.Forbidden, err, "the account may not merge "+key.String())
	case http.StatusUnprocessableEntity:
		return task.Wrap(task.Conflict, err, key.String()+" cannot be merged")
	}
	if err == nil && (merged == nil || merged.IID != key.Number) {
		err = errNonsense
	}
	if err != nil {
		return callError(err, "merge %s", key)
	}
	return nil
}

// mergeable refuses a state in which rules are not met. Servers before 15.6 do not tell it,
// and refuse when they are asked to merge.
func mergeable(key task.Key, request *gl.MergeRequest) error {
	state := request.DetailedMergeStatus
	switch {
	case request.State == "locked", state == "checking", state == "unchecked", state == "preparing", state == "approvals_syncing":
		return task.Errorf(task.Unavailable, "GitLab does not know yet whether %s can be merged", key)
	case state == "mergeable" || state == "":
		return nil
	default: // ci_must_pass, conflict, discussions_not_resolved, need_rebase, not_approved...
		return task.Errorf(task.Conflict, "GitLab does not let %s be merged: its status is %s", key, forge.Clean(state))
	}
}
