package config

import (
	"cmp"
	"maps"
	"net/url"
	"slices"

	"github.com/toryo-dev/toryo/internal/notify/format"
	"github.com/toryo-dev/toryo/internal/notify/quiet"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// Notifications is the section "notifications".
type Notifications struct {
	Webhooks   map[string]NotificationWebhook `key:"webhooks" names:"webhook" example:"team" about:"Webhooks by which people are told what waits for them. Each is told of each thing once."`
	QuietHours []string                       `key:"quiet_hours" format:"hours" example:"['22:00-07:00', 'sat sun 00:00-24:00']" about:"Hours in which nobody is told anything, neither by webhooks nor by browsers; what still waits after them is told then. Days may stand before the hours: mon-fri 12:00-13:00."`
	TimeZone   string                         `key:"time_zone" default:"UTC" format:"zone" example:"Asia/Tokyo" about:"Time zone of the quiet hours, by its name in the IANA database."`
}

// NotificationWebhook is an entry of "notifications.webhooks".
type NotificationWebhook struct {
	Format     string        `key:"format" enum:"slack mattermost discord teams json" default:"json" usual:"true" about:"What is sent: a message as the service takes it, or JSON for a program of your own."`
	URL        redact.Secret `key:"url" format:"webhook" about:"Address of the webhook; it is a secret because who knows it can write there."`
	URLFile    string        `key:"url_file" usual:"true" example:"/run/secrets/slack-webhook" about:"File that holds the address and nothing else."`
	Secret     redact.Secret `key:"secret" format:"signing" about:"Secret with which messages are signed as Standard Webhooks says; without it they are not."`
	SecretFile string        `key:"secret_file" example:"/run/secrets/notify-secret" about:"File that holds the secret and nothing else."`
	About      []string      `key:"about" enum:"server pause tasks answer approval failure agent budget" default:"server,pause,tasks,answer,approval,failure,agent,budget" about:"What the webhook is told of: the server cannot use something, everything is paused, tasks that nobody takes, questions, plans to approve, failed tasks, agents that are offline or do not accept tasks, budgets."`
	Language   string        `key:"language" enum:"en ja" about:"Language of the messages; without it, that of language, or English."`
	Template   string        `key:"template" format:"template" about:"JSON to send in place of that of the format. In it {{.Text}}, {{.Title}}, {{.URL}} and {{.ID}} are replaced; they have to stand in quotes."`
}

// Quiet are the hours in which nobody is told anything.
func (n Notifications) Quiet() (quiet.Hours, error) { return quiet.Parse(n.QuietHours, n.TimeZone) }

// WebhookNames lists the webhooks in order.
func (n Notifications) WebhookNames() []string { return slices.Sorted(maps.Keys(n.Webhooks)) }

// NotificationLanguage is the language of the messages to a webhook.
func (c Config) NotificationLanguage(to NotificationWebhook) task.Language {
	language := cmp.Or(to.Language, c.Language)
	if language == "auto" {
		return task.English
	}
	return task.Language(language)
}

// checkNotifications makes sure that each webhook has an address, and is told of something.
func (l *loader) checkNotifications() {
	for _, name := range l.config.Notifications.WebhookNames() {
		hook := l.config.Notifications.Webhooks[name]
		path := join("notifications.webhooks", pathName(name))
		if hook.URL == "" && hook.URLFile == "" {
			l.conflict(complain("set url_file to a file with the address that the service gave you", "the webhook has no address"), path, path+".url_file", path+".url")
		}
		if len(hook.About) == 0 {
			l.conflict(complain("remove the line to be told of everything", "the webhook is told of nothing"), path+".about")
		}
	}
}

// checkWebhook checks the address of a webhook, and repeats nothing of it.
func checkWebhook(text string) *complaint {
	const hint = "give the whole address as the service shows it, such as https://hooks.example.com/…"
	address, err := url.Parse(text)
	switch {
	case err != nil, address.Scheme != "http" && address.Scheme != "https", address.Hostname() == "":
		return complain(hint, "the value is not a URL that begins with http:// or https://")
	case address.User != nil:
		return complain(hint, "the URL has a user name or password in it")
	case address.Fragment != "":
		return complain(hint, "the URL has a fragment")
	}
	return nil
}

// checkSigningSecret checks a secret with which messages are signed, and repeats nothing of it.
func checkSigningSecret(text string) *complaint {
	_, err := format.SigningKey(text)
	return complaintOf(err)
}

func checkHours(text string) *complaint { return complaintOf(quiet.Check(text)) }

func checkZone(text string) *complaint {
	_, err := quiet.Zone(text)
	return complaintOf(err)
}

func checkTemplate(text string) *complaint {
	if text == "" {
		return nil
	}
	return complaintOf(format.Check(text))
}

// complaintOf is an error with a hint as a complaint.
func complaintOf(err error) *complaint {
	if err == nil {
		return nil
	}
	hint := ""
	if coded, is := task.AsError(err); is {
		hint = coded.Hint
	}
	return complain(hint, "%s", plainCause(err))
}
