package forge_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
)

func TestMentions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"@toryo-bot rename it":                    true,
		"Rename it, @Toryo-Bot.":                  true,
		"(@toryo-bot)":                            true,
		"@toryo-botお願いします":                        true,
		"> @toryo-bot rename it\n\nI agree.":      false,
		"> @toryo-bot rename it\n\n@toryo-bot do": true,
		"`@toryo-bot`":                            false,
		"```\n@toryo-bot\n```":                    false,
		"@toryo-bot2 rename it":                   false,
		"@toryo-bot/team rename it":               false,
		"mail@toryo-bot":                          false,
		"https://forge.invalid/@toryo-bot":        false,
		"toryo-bot":                               false,
		"":                                        false,
	} {
		if got := forge.Mentions(text, "toryo-bot"); got != want {
			t.Errorf("%q mentions it: %v", text, got)
		}
	}
	if !forge.Mentions("@toryo do", "toryo[bot]") {
		t.Error("an app is not mentioned by its name")
	}
}

func TestAutomated(t *testing.T) {
	t.Parallel()
	for login, want := range map[string]bool{
		"dependabot[bot]": true, "project_12_bot_1f": true, "group_3_bot": true, "ghost": true, "ann": false, "project_bot": false, "robot": false,
	} {
		if got := forge.Automated(login); got != want {
			t.Errorf("%s is automated: %v", login, got)
		}
	}
}
