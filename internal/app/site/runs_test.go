package site

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestOwnLogin(t *testing.T) {
	t.Parallel()
	var c config.Config
	c.GitHub.BotName = "kim[bot]"
	own := ownLogin(c)
	for login, want := range map[string]bool{"kim": true, "Kim[bot]": true, "KIM[Bot]": true, "\u212Aim": false, "kimi": false, "": false} {
		if got := own(task.GitHub, login); got != want {
			t.Errorf("%q is the bot's: %v", login, got)
		}
	}
}
