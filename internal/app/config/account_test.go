package config

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// What a GitHub App does is shown under its own name, while people assign an account: both are the
// bot.
func TestAccountsOfTheBot(t *testing.T) {
	t.Parallel()
	var c Config
	c.GitHub.BotName, c.GitHub.AppName = "toryo-bot", "Our-App"
	c.Gitea.BotName = "toryo-bot"
	for login, want := range map[string]bool{
		"toryo-bot": true, "Toryo-Bot": true, "toryo-bot[bot]": true, "our-app[bot]": true, "our-app": true,
		"somebody": false, "app[bot]": false, "": false, "[bot]": false,
	} {
		if got := c.Account(task.GitHub).Is(login); got != want {
			t.Errorf("%q is the bot: %t", login, got)
		}
	}
	if c.Account(task.Gitea).Is("our-app[bot]") || c.Account(task.Gitea).Is("") {
		t.Error("the App is of GitHub alone")
	}
}
