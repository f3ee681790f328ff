package comments_test

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/broker/comments"
)

func TestApproves(t *testing.T) {
	t.Parallel()
	own := func(login string) bool { return strings.EqualFold(login, "toryo") }
	for text, want := range map[string]bool{
		"approve": true, "Approved.": true, "  LGTM!!\n": true, "@toryo lgtm": true, "@Toryo: go ahead, @toryo": true, "OK": true, "ＯＫ": true, "ＯＫです！": true,
		"承認": true, "承認します。": true, "進めてください！": true, "@toryo　承認します": true, "👍": true, "👍🏽": true, ":+1:": true, "**approve**": true, "Please  go\nahead": true,
		"": false, "@toryo": false, "not approved": false, "approve?": false, "LGTM but use grease": false, "@bob LGTM": false, "承認しません": false, "承認は待ってください": false,
		"OK, but rename it": false, "> LGTM": false, "👎": false, "no": false, strings.Repeat(" ", 500) + "ok": false,
	} {
		if got := comments.Approves(text, own); got != want {
			t.Errorf("%q approves: %v", text, got)
		}
	}
}
