package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// webhooks looks for our webhook in repositories: is it there, does it tell of all events, and
// how did its last delivery go? Which events have arrived here, [Webhooks] says.
func (s forgeSurvey) webhooks(ctx context.Context, repositories []string) []Finding {
	name := string(s.name) + " webhook"
	if _, taken := s.Events[s.name]; !taken {
		return []Finding{{
			Name: name, Status: OK, Found: fmt.Sprintf("none are taken, because %s.webhook_secret is not set: the forge is polled", s.name),
			Hint: "with webhooks Toryo reacts sooner and asks the forge less; this creates them:", Command: setUp,
		}}
	}
	if s.app != nil || s.setup == nil {
		return nil // the App's own is not of a repository; without a way to look, nothing is said
	}
	s.arrived = s.look(ctx)
	return s.each(ctx, " webhook", repositories, s.hook)
}

// Received is what servers have received of the webhooks of a forge.
type Received struct {
	// Counted are the repositories that servers have worked on, with what each has delivered.
	Counted []items.WebhookReport
	// Last are the deliveries that came in last, tests and those that were refused too, newest
	// first.
	Last []store.Received
}

// arrivals is what has arrived here.
type arrivals struct {
	from    map[string]arrival // by repository
	refused store.Received     // the last that was
}

// arrival is what has arrived from a repository.
type arrival struct {
	known  bool      // a server has worked on the repository, and would know
	last   time.Time // zero if nothing has arrived
	recent bool      // not so long ago that the webhook is not relied on any more
}

func (s forgeSurvey) look(ctx context.Context) arrivals {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	received, err := s.Received(ctx, s.name)
	if err != nil {
		return arrivals{} // [Webhooks] says so
	}
	found := arrivals{from: map[string]arrival{}}
	for _, report := range received.Counted {
		if report.Forge == s.name {
			found.from[report.Repository] = arrivalOf(report)
		}
	}
	for _, one := range slices.Backward(received.Last) { // the newest comes last
		came := found.from[one.Repository]
		switch {
		case one.Problem != "":
			found.refused = one
		case came.known && one.At.After(came.last):
			came.last = one.At
			found.from[one.Repository] = came
		}
	}
	return found
}

func arrivalOf(report items.WebhookReport) arrival {
	came := arrival{known: true}
	for _, event := range report.Events {
		if event.Delivered > 0 && event.LastAt.After(came.last) {
			came.last = event.LastAt
		}
		came.recent = came.recent || event.State == items.WebhookTrusted
	}
	return came
}

// address is where the webhook of the forge is to deliver.
func (s forgeSurvey) address() string {
	return strings.TrimSuffix(s.URL, "/") + webhookPath(s.name)
}

func webhookPath(name task.Forge) string { return "/webhooks/" + string(name) }

func (s forgeSurvey) hook(ctx context.Context, repository string) Finding {
	came := s.arrived.from[repository]
	hooks, err := s.setup.Hooks(ctx, repository)
	if code := task.CodeOf(err); code == task.Forbidden || code == task.NotFound {
		return s.hidden(came)
	}
	if err != nil {
		return failure(err)
	}
	same := func(h forge.Hook) bool { return strings.EqualFold(strings.TrimSuffix(h.URL, "/"), s.address()) }
	at := slices.IndexFunc(hooks, same)
	if at < 0 {
		return s.noHook(hooks, came)
	}
	return s.ourHook(ctx, repository, hooks[at])
}

// hidden is about a repository whose webhooks we are not shown.
func (s forgeSurvey) hidden(came arrival) Finding {
	finding := Finding{Status: OK, Found: s.account.BotName + " is not shown its webhooks, which only administrators are"}
	if came.recent {
		finding.Found += "; deliveries arrive" + last(came.last)
	} else {
		finding.Hint = "look in the settings of the repository whether it has one for " + s.address()
	}
	return finding
}

// noHook says that a repository has no webhook of ours. What arrives nevertheless comes from one
// that is not of the repository alone, which we do not look for. One for another address may be
// meant for us.
func (s forgeSurvey) noHook(hooks []forge.Hook, came arrival) Finding {
	if came.recent {
		return Finding{Status: OK, Found: "delivered by a webhook elsewhere (organisation, group or system)" + last(came.last) + "; the repository has none for " + s.address()}
	}
	finding := Finding{
		Status: Warning, Found: "none for " + s.address() + ": the repository is polled",
		Hint:    "if a webhook of the organisation, group or system is to deliver, see there why nothing arrives; otherwise create one, or let this do so:",
		Command: setUp,
	}
	for _, hook := range hooks {
		// Whoever administers the repository has chosen the address: it is shown, not proposed.
		if at := strings.TrimSuffix(withoutSecrets(hook.URL), "/"); strings.HasSuffix(at, webhookPath(s.name)) {
			finding.Found += "; it has one for " + textfmt.Shorten(at, longestReason)
			finding.Hint = "if that is meant to be this server, correct the webhook, or server.public_url if that is not where forges reach the server; otherwise create one, or let this do so:"
			break
		}
	}
	return finding
}

// withoutSecrets is an address without what may be a secret in it, or "" if it is none.
func withoutSecrets(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	at.User, at.RawQuery, at.Fragment = nil, "", ""
	return at.String()
}

// ourHook says whether our webhook is as it has to be.
func (s forgeSurvey) ourHook(ctx context.Context, repository string, hook forge.Hook) Finding {
	lacks := hook.MissingEvents(s.Events[s.name])
	var missing []string
	for _, event := range s.Events[s.name] {
		if slices.Contains(lacks, event.Name) {
			missing = append(missing, event.Title)
		}
	}
	finding := Finding{Status: Warning, Command: setUp}
	switch {
	case !hook.Active:
		finding.Found = "the webhook is switched off"
		finding.Hint = "switch it on in the settings of the repository, or let this do so:"
	case len(missing) > 0:
		finding.Found = "the webhook does not tell of " + strings.Join(missing, ", ")
		finding.Hint = "enable these events in the webhook, or let this do so:"
	default:
		return s.deliveries(ctx, repository, hook.ID)
	}
	return finding
}

// deliveries says how the deliveries of our webhook go: what the forge tells, and otherwise what
// has arrived here.
func (s forgeSurvey) deliveries(ctx context.Context, repository, id string) Finding {
	delivery, err := s.setup.LastDelivery(ctx, repository, id)
	switch {
	case err != nil:
		return failure(err)
	case delivery.At.IsZero():
		return s.untold(s.arrived.from[repository])
	case delivery.Status < http.StatusOK || delivery.Status >= http.StatusMultipleChoices:
		return s.notDelivered(delivery)
	}
	return Finding{Status: OK, Found: "delivers to " + s.address() + " with every event" + last(delivery.At)}
}

// untold is about a webhook of which the forge tells no delivery. Gitea never tells of any, so that
// one that never arrives looks there as one that does.
func (s forgeSurvey) untold(came arrival) Finding {
	finding := Finding{Status: OK, Found: "is set up for " + s.address() + " with every event; "}
	if s.name == task.Gitea {
		finding.Found += "the forge does not say how deliveries go"
	} else {
		finding.Found += "the forge tells of no delivery yet"
	}
	switch refused := s.arrived.refused; {
	case !came.last.IsZero():
		finding.Found += "; here the last one arrived on " + day(came.last)
	case !came.known:
		finding.Hint = "when the server has worked on it, toryo doctor says whether anything has arrived"
	case s.name != task.Gitea: // it would tell
	case refused.Status == http.StatusUnauthorized:
		finding.Status, finding.Command = Warning, setUp
		finding.Found += ", and none was accepted here; one that came in on " + day(refused.At) + " was refused with status 401"
		finding.Hint = s.otherSecret()
	default:
		finding.Status = Warning
		finding.Found += ", and none has arrived here"
		finding.Hint = "have the forge send one, with the test in the settings of the webhook; if it does not arrive, " + s.unreached()
	}
	return finding
}

// otherSecret is what to do about deliveries that are not signed with our secret.
func (s forgeSurvey) otherSecret() string {
	return fmt.Sprintf("the secret of the webhook is another than %s.webhook_secret: set both to the same, or let this do so:", s.name)
}

// unreached is what to look at when a forge does not reach the server.
func (s forgeSurvey) unreached() string {
	return "check whether the forge can reach " + s.address() + ": server.public_url, the firewall, the certificate, and on Gitea webhook.ALLOWED_HOST_LIST"
}

// last says when something was delivered last, to the day: repositories of which the same is
// known are said together.
func last(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", last on " + day(at)
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// notDelivered says why the last delivery of a webhook came to nothing.
func (s forgeSurvey) notDelivered(delivery forge.HookDelivery) Finding {
	finding := Finding{Status: Warning, Found: fmt.Sprintf("the last delivery, %s, was answered with status %d", moment(delivery.At), delivery.Status)}
	switch delivery.Status {
	case 0:
		finding.Found, finding.Hint = fmt.Sprintf("the last delivery, %s, did not arrive", moment(delivery.At)), s.unreached()
	case http.StatusUnauthorized:
		finding.Hint, finding.Command = s.otherSecret(), setUp
	case http.StatusNotFound:
		finding.Hint = "something else answers at " + s.address() + ", or the server was started without the secret: check server.public_url"
	default:
		finding.Hint = "the log of the server has the reason; the forge shows the delivery beside the webhook"
	}
	return finding
}
