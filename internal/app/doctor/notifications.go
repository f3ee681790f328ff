package doctor

import (
	"context"
	"fmt"
	"net/http"

	"github.com/toryo-dev/toryo/internal/app/reach"
	"github.com/toryo-dev/toryo/internal/notify/format"
)

// NotificationAccess is a webhook by which people are told what waits for them.
type NotificationAccess struct {
	Name, Format string
	// Reach asks for an answer without sending a message.
	Reach func(ctx context.Context) (status int, err error)
	// Unsent says how many things could not be told yet, and why.
	Unsent func(ctx context.Context) (count int, why string, err error)
}

// Notifications says whether people can be told what waits for them. Nothing is sent.
func Notifications(ctx context.Context, all []NotificationAccess) []Finding {
	checks := make([]Check, 0, len(all))
	for _, one := range all {
		checks = append(checks, one.check)
	}
	return Examine(ctx, checks)
}

// gone says whether a status is that of a webhook that was deleted, or may not be used any more.
func (n NotificationAccess) gone(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusGone:
		return true
	case http.StatusNotFound:
		// Some of the programs that teams write themselves know an address for messages only.
		return n.Format != string(format.JSON)
	default:
		return false
	}
}

func (n NotificationAccess) check(ctx context.Context) Finding {
	finding := Finding{Name: "notifications", Status: Warning, Command: "toryo notify test " + n.Name}
	status, err := n.Reach(ctx)
	if err != nil {
		problem, _ := reach.Target{
			Setting: "the address of notifications.webhooks." + n.Name, Authority: "add its certificate authority to those of this machine",
		}.Explain(err)
		finding.Found, finding.Hint = fmt.Sprintf("%s (%s): %s", n.Name, n.Format, problem.Found), problem.Hint
		return finding
	}
	// A database that cannot be read is a finding of its own.
	unsent, why, err := n.Unsent(ctx)
	if err == nil && unsent > 0 {
		finding.Found = fmt.Sprintf("%s (%s): %d things could not be told: %s", n.Name, n.Format, unsent, why)
		finding.Hint = "check the url and the format of the webhook; Toryo tries again automatically"
		return finding
	}
	if n.gone(status) {
		finding.Found = fmt.Sprintf("%s (%s): answers HTTP %d to a request without a message, as if the webhook no longer existed", n.Name, n.Format, status)
		finding.Hint = "send a test message; if it does not arrive, create a new webhook and set its address"
		return finding
	}
	finding.Status = OK
	finding.Found = fmt.Sprintf("%s (%s): answers, HTTP %d to a request without a message", n.Name, n.Format, status)
	if status == http.StatusNotFound {
		finding.Found += "; toryo notify test " + n.Name + " shows whether it takes messages"
	}
	return finding
}
