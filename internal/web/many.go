package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// maxPicked is how many rows of a list something is done with at once.
const maxPicked = 200

// manyChoice is something that can be done with the rows that are picked in a list, as people see
// it.
type manyChoice struct{ do, kind, label, sure string }

// manyAction is what can be done with the rows that are picked in a list.
type manyAction struct {
	name string // of what the rows are, as a stable word for the audit log
	path string // before the id of a row it is what the audit log says that was acted on
	do   map[string]func(ctx context.Context, v visit, id string) error
}

// many answers the form of a list: it does the same with each row that is picked. Each is in the
// audit log by itself. Those with which it cannot be done stay as they are, and are counted.
func (p *Pages) many(w http.ResponseWriter, r *http.Request, v visit, action manyAction) {
	what, next := r.PostForm.Get("do"), safeNext(r.PostForm.Get("next"))
	do, known := action.do[what]
	switch {
	case what == "": // no button was pressed, but Enter in a box
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	case !known:
		p.fail(w, r, v, task.Errorf(task.Invalid, "the form does not say what is to be done with what is picked"))
		return
	}
	done, refused, picked := 0, []string{}, r.PostForm[manyField]
	for i, id := range picked {
		err := p.audited(r.Context(), v.user.Login, action.name+"."+what, action.path+id, func() error { return do(r.Context(), v, id) })
		if err == nil {
			done++
			continue
		}
		why, is := refusal(what, err)
		if !is { // it would go no better with the others
			if r.Context().Err() != nil {
				return // nobody waits for the answer
			}
			p.Log.ErrorContext(r.Context(), "a list could not be worked through", "action", action.name+"."+what, "id", id, "error", err)
			refused = append(refused, slices.Repeat([]string{refusedError}, len(picked)-i)...)
			break
		}
		refused = append(refused, why)
	}
	http.Redirect(w, r, withDid(next, what, done, refused), http.StatusSeeOther)
}

// The reasons for which something is not done with a row.
const (
	refusedState    = "state"    // its state does not allow it
	refusedGone     = "gone"     // it is not there
	refusedPause    = "pause"    // nothing can be paused on this server
	refusedApproval = "approval" // its plan waits to be approved
	refusedUnwanted = "unwanted" // its item does not want the work any more
	refusedDone     = "done"     // it is done
	refusedError    = "error"    // something failed that is not about the row
	refusedMixed    = "mixed"    // one for this and one for that
)

var refusals = []string{refusedGone, refusedPause, refusedApproval, refusedUnwanted, refusedDone, refusedError}

// errDone says that a task that is done is not begun again together with others.
var errDone = task.Errorf(task.Conflict, "the task is done").WithHint("retry it on its own page")

// refusal is why something is not done with a row; false if the error is none that is about the
// row.
func refusal(what string, err error) (string, bool) {
	code := task.CodeOf(err)
	switch {
	case errors.Is(err, errDone):
		return refusedDone, true
	case code == task.NotFound:
		return refusedGone, true
	case code == task.Conflict && what == "pause":
		return refusedPause, true
	case code == task.Conflict && what == "resume":
		return refusedApproval, true
	case code == task.Conflict && what == "retry":
		return refusedUnwanted, true
	case slices.Contains([]task.Code{task.IllegalMove, task.StaleGeneration, task.Conflict, task.Invalid, task.Forbidden}, code):
		return refusedState, true
	}
	return "", false
}

// didName is where the address says what was done with many rows.
const didName = "did"

// withDid is an address that says what was done with many rows.
func withDid(address, what string, done int, refused []string) string {
	next, err := url.Parse(address)
	if err != nil { // it was parsed before
		next = &url.URL{Path: "/"}
	}
	why := ""
	if len(refused) > 0 {
		why = refused[0]
	}
	switch {
	case slices.Contains(refused, refusedError):
		why = refusedError
	case slices.ContainsFunc(refused, func(one string) bool { return one != why }):
		why = refusedMixed
	}
	query := next.Query()
	query.Set(didName, fmt.Sprintf("%s-%d-%d-%s", what, done, len(refused), why))
	next.RawQuery = query.Encode()
	return next.String()
}

// manyLabels are the names of what can be done with many rows.
var manyLabels = map[string]string{
	"stop": "task.stop", "pause": "task.pause", "resume": "task.resume", "retry": "task.retry",
	"revoke": "settings.revoke", "close": "item.close", "reopen": "item.reopen", "delete": "review.delete",
}

// did says what was done with many rows, by the address to which that has led.
func did(r *http.Request, v visit) string {
	parts := strings.Split(r.URL.Query().Get(didName), "-")
	if len(parts) != 4 || manyLabels[parts[0]] == "" {
		return ""
	}
	done, failed := strconv.Atoi(parts[1])
	refused, failedToo := strconv.Atoi(parts[2])
	if failed != nil || failedToo != nil || done < 0 || refused < 0 {
		return ""
	}
	label, ofTasks := v.t(manyLabels[parts[0]]), strings.HasPrefix(manyLabels[parts[0]], "task.")
	text := v.t("list.did", label, done)
	switch why := parts[3]; {
	case refused == 0:
	case why == refusedState && ofTasks:
		text += " " + v.t("queue.refused", refused)
	case slices.Contains(refusals, why):
		text += " " + v.t("list.refused_"+why, refused)
	default:
		text += " " + v.t("list.refused_"+refusedMixed, refused)
	}
	return text
}

// moves are what people do with a task: on its page, or with many at once.
func (p *Pages) moves() map[string]func(ctx context.Context, v visit, id task.ID) error {
	by := func(move func(context.Context, task.ID) error) func(context.Context, visit, task.ID) error {
		return func(ctx context.Context, _ visit, id task.ID) error { return move(ctx, id) }
	}
	return map[string]func(context.Context, visit, task.ID) error{
		"stop": by(p.Steering.Stop), "pause": by(p.Steering.Pause), "resume": by(p.Steering.Resume), "retry": p.retry,
	}
}

// retry begins a task again that has ended, unless its item does not want the work any more: the
// run would be stopped for the same reason.
func (p *Pages) retry(ctx context.Context, v visit, id task.ID) error {
	var view taskView
	var err error
	if view.Task, err = p.Store.Task(ctx, id); err != nil {
		return err
	}
	if err := p.readItem(ctx, v, &view); err != nil {
		return err
	}
	if view.State.Terminal() && !view.mayRetry() {
		return task.Errorf(task.Conflict, "the item of task %s does not want the work any more", id).WithHint("open or assign the item again")
	}
	return p.Steering.Retry(ctx, id)
}

// steerMany does the same with several tasks.
func (p *Pages) steerMany(w http.ResponseWriter, r *http.Request, v visit) {
	action := manyAction{name: "task", path: "/tasks/", do: map[string]func(context.Context, visit, string) error{}}
	for name, move := range p.moves() {
		action.do[name] = func(ctx context.Context, v visit, id string) error { return move(ctx, v, task.ID(id)) }
	}
	retry := action.do["retry"]
	action.do["retry"] = func(ctx context.Context, v visit, id string) error {
		// A new run of something that is done costs as much as the first one: who wants it says so
		// for one task after the other.
		if is, err := p.Store.Task(ctx, task.ID(id)); err == nil && is.State == task.Done {
			return errDone
		}
		return retry(ctx, v, id)
	}
	p.many(w, r, v, action)
}

// taskChoices are what can be done with many tasks, with what will happen.
func taskChoices(v visit) []manyChoice {
	var choices []manyChoice
	for _, name := range []string{"pause", "resume", "retry", "stop"} {
		choices = append(choices, manyChoice{name, buttonKind(name), v.t("task." + name), v.t("queue.bulk_" + name)})
	}
	return choices
}

// tokenChoices are what can be done with many tokens.
func tokenChoices(v visit) []manyChoice {
	return []manyChoice{{"revoke", "danger", v.t("settings.revoke"), v.t("settings.tokens_revoke_sure")}}
}
