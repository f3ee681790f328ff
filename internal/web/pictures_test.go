package web

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var picturesFolder = flag.String("pictures", "", "take the pictures of the documentation anew, into this `FOLDER`")

// maxPicture is how large a picture of the documentation may be: each is in the program.
const maxPicture = 100 << 10

// The pictures of the documentation are small. make pictures takes them anew. That those which
// pages show are there is a matter of package docsite.
func TestPictures(t *testing.T) {
	t.Parallel()
	if *picturesFolder != "" {
		takePictures(t, *picturesFolder)
	}
	names, err := filepath.Glob(filepath.Join("..", "..", "docs", "images", "*"))
	must(t, err)
	for _, name := range names {
		content, err := os.ReadFile(name)
		must(t, err)
		if kind := http.DetectContentType(content); kind != "image/webp" || len(content) > maxPicture {
			t.Errorf("the picture %s is %s and has %d bytes", name, kind, len(content))
		}
	}
}

// takePictures takes them of pages with something on them.
func takePictures(t *testing.T, folder string) {
	t.Helper()
	h, paths := furnished(t)
	for i, title := range []string{"The gate opens twice", "Say how long the gate stays open", "A test for the hinge"} {
		made, err := h.board.As("bob").CreateIssue(t.Context(), "team/app", forge.NewIssue{Title: title, Body: "As it says.", Assignees: []string{bot}})
		must(t, err)
		if i == 0 {
			h.journal(t, h.runningTask(t, made.Key.Number, title)).run()
			continue
		}
		_, _, err = h.store.Assign(t.Context(), store.NewTask{Key: made.Key, Type: task.Development, Role: "BACKENDCODER", Title: title, Reason: task.ReasonAssigned}, nil)
		must(t, err)
	}
	chat := pictureOfChat(t, h)
	root := h.window(t, "root")
	root.Run("choose a size", chromedp.EmulateViewport(1200, 800))
	root.choose("en", "light")
	for name, path := range map[string]string{"home": paths["home"], "task": paths["task"], "chat": chat} {
		root.Open(path)
		root.Until(`document.readyState === "complete"`)
		root.Run("show the beginning of the journal", chromedp.Evaluate(`document.querySelector("#journal")?.scrollTo(0, 0)`, nil))
		root.Picture(filepath.Join(folder, fmt.Sprint(name, ".webp")))
	}
}

// pictureOfChat makes a review, and a question about it. The result is its page.
func pictureOfChat(t *testing.T, h *house) string {
	t.Helper()
	judgement, err := json.Marshal(map[string]any{
		"overall_review": "The steps are right, but they end too early.",
		"strengths":      []any{map[string]any{"point": "It names the oil", "paragraph_numbers": []int{1}}},
		"weaknesses":     []any{map[string]any{"point": "It does not say what to do about the hinges", "paragraph_numbers": []int{2}}},
	})
	must(t, err)
	made, err := h.pages.Reviews.AddReview(t.Context(), "root", store.Review{
		CustomQuestionText: "How is a gate fixed?", AnswerText: "$$[1] Oil the gate, and open it ten times.\n\n$$[2] Then look at the hinges.\n", Judgement: judgement,
	})
	must(t, err)
	thread, err := h.pages.Reviews.AddThread(t.Context(), "root", made.ID, "en")
	must(t, err)
	h.ask(t, "root", thread.ID, "§2 Where does it say what to look at?")
	return "/reviews/" + made.ID
}
