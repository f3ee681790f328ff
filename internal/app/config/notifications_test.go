package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// Webhooks of notifications are read with their secrets, and what is wrong with them is said
// without repeating an address.
func TestNotifications(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("url", "https://hooks.example.com/services/T0/s3cret?sig=s3cret\n")
	write("secret", "whsec_0000")
	write("torn", "whsec_s3cret0")
	write("ftp", "ftp://x/s3cret")
	write("user", "https://a:s3cret@x/")
	good := write("good.yaml", `
language: ja
notifications:
  quiet_hours: ['22:00-07:00', 'sat sun 00:00-24:00']
  time_zone: Asia/Tokyo
  webhooks:
    team: {format: slack, url_file: url}
    on-call: {url_file: url, secret_file: secret, about: [server, budget], language: en, template: '{"text": "{{.Text}}"}'}
`)
	c, report := Load(good, nil, nil)
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	team, other := c.Notifications.Webhooks["team"], c.Notifications.Webhooks["on-call"]
	if team.URL.Reveal() != "https://hooks.example.com/services/T0/s3cret?sig=s3cret" || len(team.About) != len(task.NeedKinds) || team.Format != "slack" {
		t.Errorf("the webhook is %+v", team)
	}
	for i, kind := range task.NeedKinds {
		if team.About[i] != string(kind) {
			t.Errorf("about has %s, and what waits for people is %s", team.About[i], kind)
		}
	}
	if c.NotificationLanguage(team) != task.Japanese || c.NotificationLanguage(other) != task.English || len(other.About) != 2 || other.Format != "json" {
		t.Errorf("the webhook is %+v", other)
	}
	if _, err := c.Notifications.Quiet(); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"notifications: {webhooks: {team: {format: slack}}}":                                       "notifications.webhooks.team: the webhook has no address",
		"notifications: {webhooks: {team: {url_file: ftp}}}":                                       "the value is not a URL",
		"notifications: {webhooks: {team: {url_file: user}}}":                                      "user name or password",
		"notifications: {webhooks: {team: {url_file: url, format: smoke}}}":                        `"smoke" is not allowed`,
		"notifications: {webhooks: {team: {url_file: url, about: [weather]}}}":                     `"weather" is not allowed`,
		"notifications: {webhooks: {team: {url_file: url, about: []}}}":                            "told of nothing",
		"notifications: {webhooks: {team: {url_file: url, template: '{\"a\": {{.Text}}}'}}}":       "does not make JSON",
		"notifications: {webhooks: {team: {url_file: url, template: '{\"a\": \"{{ .Text }}\"}'}}}": "no name that is known",
		"notifications: {webhooks: {team: {url_file: url, secret_file: torn}}}":                    "not base64",
		"notifications: {webhooks: {Team: {url_file: url}}}":                                       "not a name for a webhook",
		"notifications: {quiet_hours: ['at night']}":                                               `"at night" is not a span of hours`,
		"notifications: {time_zone: Mars/Olympus}":                                                 `"Mars/Olympus" is not a time zone`,
	} {
		_, report := Load(write("bad.yaml", text), nil, nil)
		if err := report.Err(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
