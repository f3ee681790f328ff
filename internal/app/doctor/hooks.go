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
	"github.com/toryo-dev/toryo/internal/task"
)

// webhooks looks for our webhook in repositories: is it there, does it tell of all events, and
// how did its last delivery go? What has arrived here, [Webhooks] says.
func (s forgeSurvey) webhooks(ctx context.Context, repositories []string) []Finding {
	name := string(s.name) + " webhook"
	if _, taken := s.Events[s.name]; !taken {
		return []Finding{{
			Name: name, Status: OK, Found: fmt.Sprintf("none are taken, because %s.webhook_secret is not set: the forge is polled", s.name),
			Hint: "with webhooks Toryo reacts sooner and asks the forge less; this creates them:", Command: setUp,
		}}
	}
	if s.app || s.setup == nil {
		return nil // the App's own is not of a repository; without a way to look, nothing is said
	}
	return s.each(ctx, " webhook", repositories, s.hook)
}

// address is where the webhook of the forge is to deliver.
func (s forgeSurvey) address() string {
	return strings.TrimSuffix(s.URL, "/") + webhookPath(s.name)
}

func webhookPath(name task.Forge) string { return "/webhooks/" + string(name) }

func (s forgeSurvey) hook(ctx context.Context, repository string) Finding {
	hooks, err := s.setup.Hooks(ctx, repository)
	if code := task.CodeOf(err); code == task.Forbidden || code == task.NotFound {
		return Finding{
			Status: OK, Found: s.account.BotName + " is not shown its webhooks, which only administrators are",
			Hint: "look in the settings of the repository whether it has one for " + s.address(),
		}
	}
	if err != nil {
		return failure(err)
	}
	same := func(h forge.Hook) bool { return strings.EqualFold(strings.TrimSuffix(h.URL, "/"), s.address()) }
	at := slices.IndexFunc(hooks, same)
	if at < 0 {
		return s.noHook(hooks)
	}
	return s.ourHook(hooks[at])
}

// noHook says that a repository has no webhook of ours. One for another address may be meant.
func (s forgeSurvey) noHook(hooks []forge.Hook) Finding {
	finding := Finding{
		Status: Warning, Found: "none for " + s.address() + ": the repository is polled",
		Hint: "create it, or let this do so:", Command: setUp,
	}
	for _, hook := range hooks {
		if base, is := strings.CutSuffix(strings.TrimSuffix(withoutUser(hook.URL), "/"), webhookPath(s.name)); is {
			finding.Found += "; it has one for " + base + webhookPath(s.name)
			finding.Hint = "if forges reach the server there, set server.public_url to " + base + "; otherwise change the webhook, or let this do so:"
			break
		}
	}
	return finding
}

// withoutUser is an address without a name and a password in it, or "" if it is none.
func withoutUser(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	at.User = nil
	return at.String()
}

// ourHook says whether our webhook is as it has to be.
func (s forgeSurvey) ourHook(hook forge.Hook) Finding {
	var missing []string
	for _, event := range s.Events[s.name] {
		if !slices.Contains(hook.Events, event.Name) {
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
	case !hook.LastAt.IsZero() && (hook.LastStatus < http.StatusOK || hook.LastStatus >= http.StatusMultipleChoices):
		finding.Found, finding.Hint = s.notDelivered(hook)
	default:
		return Finding{Status: OK, Found: "delivers to " + s.address() + " with every event" + last(hook.LastAt)}
	}
	return finding
}

// last says when something was delivered last, to the day: repositories of which the same is
// known are said together.
func last(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", last on " + at.UTC().Format(time.DateOnly)
}

// notDelivered says why the last delivery of a webhook came to nothing.
func (s forgeSurvey) notDelivered(hook forge.Hook) (found, hint string) {
	found = fmt.Sprintf("the last delivery, %s, was answered with status %d", moment(hook.LastAt), hook.LastStatus)
	switch hook.LastStatus {
	case 0:
		return fmt.Sprintf("the last delivery, %s, did not arrive", moment(hook.LastAt)),
			"see whether the forge can reach " + s.address() + ": server.public_url, the firewall, the certificate, and on Gitea webhook.ALLOWED_HOST_LIST"
	case http.StatusUnauthorized:
		return found, fmt.Sprintf("the secret of the webhook is another than %s.webhook_secret: set both to the same, or let this do so:", s.name)
	case http.StatusNotFound:
		return found, "something else answers at " + s.address() + ", or the server was started without the secret: check server.public_url"
	}
	return found, "the log of the server has the reason; the forge shows the delivery beside the webhook"
}
