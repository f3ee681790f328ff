package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// signedReceipt keeps a receipt of a task, with names that would command a browser.
func (h *house) signedReceipt(t *testing.T, of task.Task) store.Receipt {
	t.Helper()
	key, err := receipt.NewKey()
	must(t, err)
	public, err := receipt.PEM(key.PublicKey)
	must(t, err)
	private, err := key.Encode()
	must(t, err)
	_, err = h.store.AddReceiptKey(t.Context(), store.ReceiptKey{ID: key.ID(), Public: public, Private: private}, true)
	must(t, err)
	commit := strings.Repeat("c0", 20)
	statement, err := receipt.New(receipt.Facts{
		Repository: "board:team/app", Commit: commit, Base: strings.Repeat("ba", 20), BaseBranch: "main", Item: of.Key.String(), Task: of.ID, Generation: of.Generation,
	}, receipt.Verdict{
		Passed: true, Environment: receipt.Environment{Name: "go", Ready: true, Sandbox: "bubblewrap", Identity: "host-1"},
		Projects: []receipt.Project{{Folder: "lib", Runs: []receipt.Run{{
			Kind: receipt.TestRun, Command: "go test ./...", ExitCode: 1, FailedBefore: []string{"<script>alert(1)</script>"}, Counts: &receipt.Counts{Passed: 12, Failed: 1},
		}}}},
		Findings: []string{`"><img src=x onerror=alert(2)>`},
	})
	must(t, err)
	envelope, err := receipt.Sign(t.Context(), key, statement)
	must(t, err)
	kept, err := h.store.KeepReceipt(t.Context(), store.Receipt{Task: of.ID, Generation: of.Generation, Commit: commit, Key: key.ID(), Envelope: envelope})
	must(t, err)
	return kept
}

// Whoever may see a task sees its receipts, whose texts are nothing but text, and can
// have the very bytes that were signed.
func TestReceiptsOnPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	one := h.runningTask(t, 1, "Fix the gate")
	kept := h.signedReceipt(t, one)
	vera := h.visitor(t, "vera")
	if _, page := vera.get("/tasks/" + string(one.ID) + "?tab=checks"); !strings.Contains(page, `href="/receipts/`+kept.ID+`"`) {
		t.Error("the page of the task has no link to it")
	}
	status, page := vera.get("/receipts/" + kept.ID)
	if status != http.StatusOK {
		t.Fatalf("the page answers %d", status)
	}
	for what, text := range map[string]string{
		"the commit": kept.Commit, "the base": strings.Repeat("ba", 20), "the key": kept.Key, "the command": "go test ./...", "the folder": "lib", "the exit code": "exit code 1",
		"the counts": "12 passed, 1 failed, 0 skipped", "a test": "&lt;script&gt;alert(1)", "a finding": "&lt;img src=x", "the environment": "host-1",
		"how to check it": "toryo receipt verify " + kept.ID, "the result": "No regressions",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("%s is not on the page", what)
		}
	}
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") {
		t.Error("a text of the receipt is part of the page")
	}
	status, sent := vera.get("/receipts/" + kept.ID + "/envelope.json")
	if status != http.StatusOK || sent != string(kept.Envelope) {
		t.Errorf("%d bytes are sent with %d, of %d", len(sent), status, len(kept.Envelope))
	}
	for _, path := range []string{"/receipts/none", "/receipts/none/envelope.json"} {
		if status, _ := vera.get(path); status != http.StatusNotFound {
			t.Errorf("%s answers %d", path, status)
		}
	}
	for _, path := range []string{"/receipts/" + kept.ID, "/receipts/" + kept.ID + "/envelope.json"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.web.URL+path, nil)
		must(t, err)
		answer, err := new(http.Client).Do(request)
		must(t, err)
		must(t, answer.Body.Close())
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s is answered with %s to somebody who is not signed in", path, answer.Status)
		}
	}
}
