package server

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	agentCommit = "0123456789abcdef0123456789abcdef01234567"
	otherCommit = "76543210fedcba9876543210fedcba9876543210"
)

// foundGood is what verification found, with names that would break out of a description.
func foundGood() *receipt.Verdict {
	return &receipt.Verdict{
		Passed:      true,
		Environment: receipt.Environment{Name: "go", Ready: true, SetupCommands: []string{"export KEY=" + maskedSecret}},
		Projects: []receipt.Project{{Folder: ".", Runs: []receipt.Run{
			{Kind: receipt.TestRun, Command: "go test ./...", Fixed: []string{"Test`](https://evil.example) @everyone closes #99\n## Injected"}},
		}}},
	}
}

// receipted offers a commit with a verdict.
func receipted(t *testing.T, held *wire.RunClient, branch, commit string, verdict *receipt.Verdict) (wire.Pulled, error) {
	t.Helper()
	return held.OpenPull(t.Context(), wire.OpenPull{Branch: branch, Commit: commit, Base: "main", Title: "Fix", Body: "Fixed.", Verdict: verdict})
}

var receiptLink = regexp.MustCompile(`\[signed receipt\]\(https://toryo\.example/receipts/([0-9a-f-]{36})\)`)

// verified follows the link in a text and checks the receipt as a stranger would who has
// a token.
func (w *workshop) verified(t *testing.T, text string) (id string, verified receipt.Verified) {
	t.Helper()
	link := receiptLink.FindStringSubmatch(text)
	if link == nil {
		t.Fatalf("there is no link in %q", text)
	}
	envelope, err := w.client(w.token(t, access.Viewer)).Receipt(t.Context(), link[1])
	if err != nil {
		t.Fatal(err)
	}
	status, _, public := w.get(t, wire.ReceiptKeysPath, "")
	if status != http.StatusOK {
		t.Fatalf("the keys are answered with %d", status)
	}
	keys, err := receipt.ParsePEM([]byte(public))
	if err != nil {
		t.Fatal(err)
	}
	if verified, err = receipt.Verify(t.Context(), envelope, keys...); err != nil {
		t.Fatal(err)
	}
	return link[1], verified
}

// The receipt is about the commit that was published, with what the server knows itself,
// and the pull request has its address and nothing else of it.
func TestPublishedWorkHasAReceipt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the sum")
		held, running := w.claim(t, made.ID)
		if _, err := receipted(t, held, made.Branch, agentCommit, foundGood()); err != nil {
			t.Fatal(err)
		}
		pull, _, err := w.forge.FindPull(t.Context(), repository, made.Branch, "main")
		if err != nil {
			t.Fatal(err)
		}
		id, verified := w.verified(t, pull.Body)
		facts := verified.Statement.Predicate.Toryo.Facts
		facts.SignedAt = facts.SignedAt.UTC()
		want := receipt.Facts{
			Repository: "gitea:" + repository, Commit: publishedHash(agentCommit), Tree: strings.Repeat("7", 40), Base: strings.Repeat("8", 40),
			BaseBranch: "main", Item: made.Key.String(), Task: made.ID, Generation: running.Generation, SignedAt: facts.SignedAt,
		}
		if facts != want || verified.Statement.Commit() != publishedHash(agentCommit) {
			t.Errorf("it states %+v, want %+v", facts, want)
		}
		verdict := verified.Statement.Predicate.Toryo.Verdict
		if verdict.Projects[0].Runs[0].Fixed[0] != foundGood().Projects[0].Runs[0].Fixed[0] || verified.Statement.Predicate.Result != receipt.Passed {
			t.Errorf("it says %+v", verdict)
		}
		if command := verdict.Environment.SetupCommands[0]; command != "export KEY=[masked]" {
			t.Errorf("a secret of the server is in it: %q", command)
		}
		if strings.Contains(pull.Body, "evil.example") || strings.Contains(pull.Body, "Injected") {
			t.Errorf("the description has text of the verdict: %q", pull.Body)
		}
		if want := "https://toryo.example/tasks/" + string(made.ID); verified.Statement.Predicate.URL != want {
			t.Errorf("its url is %q, want %q", verified.Statement.Predicate.URL, want)
		}
		listed, err := w.store.ReceiptsOf(t.Context(), made.ID)
		if err != nil || len(listed) != 1 || listed[0].ID != id {
			t.Errorf("the receipts of the task are %v, %v", listed, err)
		}
		for path, want := range map[string]int{"/v1/receipts/" + id: http.StatusUnauthorized, "/v1/tasks/" + string(made.ID) + "/receipts": http.StatusUnauthorized} {
			if status, _, _ := w.get(t, path, ""); status != want {
				t.Errorf("%s without a token is answered with %d", path, status)
			}
		}
	})
}

// The verdict is a commit status on what was published, once, with a link to the task. It is
// a success when tests were run and passed, or when there are none and the build did.
func TestTheVerdictIsACommitStatus(t *testing.T) {
	t.Parallel()
	change := func(do func(*receipt.Verdict)) *receipt.Verdict {
		verdict := foundGood()
		do(verdict)
		return verdict
	}
	for name, test := range map[string]struct {
		verdict *receipt.Verdict
		state   forge.StatusState
		says    string
	}{
		"passed": {foundGood(), forge.StatusSuccess, "Tests passed"},
		"some failed before": {change(func(v *receipt.Verdict) {
			v.Projects[0].Runs[0].FailedBefore, v.Projects[0].Runs[0].Counts = []string{"TestOld"}, &receipt.Counts{Passed: 7, Failed: 1}
		}), forge.StatusSuccess, "7 passed, 1 failed before too"},
		"worse": {change(func(v *receipt.Verdict) { v.Passed, v.Projects[0].Runs[0].Failed = false, []string{"TestNew"} }),
			forge.StatusFailure, "Tests that passed before now fail: 1"},
		"the command failed, and no test is named": {change(func(v *receipt.Verdict) {
			v.Projects[0].Runs[0].ExitCode, v.Projects[0].Runs[0].Compared = 2, true
		}), forge.StatusFailure, "The test command failed"},
		"did not pass":   {change(func(v *receipt.Verdict) { v.Passed = false }), forge.StatusFailure, "did not pass"},
		"tests not run":  {change(func(v *receipt.Verdict) { v.NotRun = "there are none @everyone" }), forge.StatusFailure, "Not tested: there are none"},
		"only a build":   {change(func(v *receipt.Verdict) { v.Projects[0].Runs[0].Kind = receipt.BuildRun }), forge.StatusFailure, "Not tested"},
		"no environment": {change(func(v *receipt.Verdict) { v.Environment.Ready = false }), forge.StatusFailure, "Not tested"},
		"no tests are known, and it is built": {change(func(v *receipt.Verdict) {
			v.NoTests, v.NotRun, v.Projects[0].Runs[0].Kind = true, "it is not known how", receipt.BuildRun
		}), forge.StatusSuccess, "No tests were found; the build passed"},
		"no tests are known, and the build fails as before": {change(func(v *receipt.Verdict) {
			v.NoTests, v.NotRun, v.Projects[0].Runs[0].Kind, v.Projects[0].Runs[0].ExitCode = true, "it is not known how", receipt.BuildRun, 1
		}), forge.StatusFailure, "No tests were found, and the build still fails"},
		"no tests are known, and nothing to build": {change(func(v *receipt.Verdict) { v.NoTests, v.NotRun, v.Projects = true, "it is not known how", nil }), "", ""},
		"nothing verified":                         {nil, forge.StatusFailure, "nothing was verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t)
			made := w.issue(t, "Fix the sum")
			held, _ := w.claim(t, made.ID)
			checked := make(chan string, 1)
			defer w.changes.Subscribe(func(change items.Change) {
				if change.Checked != "" {
					checked <- change.Checked
				}
			})()
			pulled, err := receipted(t, held, made.Branch, agentCommit, test.verdict)
			if err != nil {
				t.Fatal(err)
			}
			if commit := <-checked; commit != pulled.Commit {
				t.Errorf("the checks of %s are looked at, and not of %s", commit, pulled.Commit)
			}
			w.settle(t, task.Key{Forge: made.Key.Forge, Repository: made.Key.Repository, Kind: task.Pull, Number: pulled.Number})
			statuses, err := w.forge.Checks(t.Context(), made.Key.Repository, pulled.Commit)
			if test.state == "" && err == nil && len(statuses) == 0 {
				return // nothing is said of it
			}
			if err != nil || len(statuses) == 0 {
				t.Fatalf("the statuses are %v, %v", statuses, err)
			}
			got := statuses[0]
			if len(statuses) != 1 || got.Name != "toryo/verification" || got.State != test.state || !strings.Contains(got.Description, test.says) || got.URL != "https://toryo.example/tasks/"+string(made.ID) {
				t.Errorf("the statuses of %s are %+v", pulled.Commit, statuses)
			}
			if strings.Contains(got.Description, "@everyone") {
				t.Errorf("it mentions people: %q", got.Description)
			}
		})
	}
}

// A receipt is made once: a run that says something else about the commit later, or in a
// later run under an old lease, changes nothing.
func TestReceiptsAreNotOverwritten(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the sum")
	held, running := w.claim(t, made.ID)
	failed := foundGood()
	failed.Passed = false
	for _, verdict := range []*receipt.Verdict{failed, foundGood()} {
		if _, err := receipted(t, held, made.Branch, agentCommit, verdict); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := w.store.ReceiptsOf(t.Context(), made.ID)
	if err != nil || len(kept) != 1 {
		t.Fatalf("there are %d receipts, %v", len(kept), err)
	}
	one, err := w.store.Receipt(t.Context(), kept[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if statement, err := receipt.Read(one.Envelope); err != nil || statement.Predicate.Result != receipt.Failed {
		t.Errorf("it says %s, %v", statement.Predicate.Result, err)
	}
	if _, err := w.store.Move(t.Context(), store.Change{Task: made.ID, Generation: running.Generation, Trigger: task.Lost, Reason: task.ReasonLeaseExpired}); err != nil {
		t.Fatal(err)
	}
	if _, err := receipted(t, held, made.Branch, otherCommit, foundGood()); task.CodeOf(err) != task.LeaseLost {
		t.Errorf("a run that is over: %v", err)
	}
	if kept, err = w.store.ReceiptsOf(t.Context(), made.ID); err != nil || len(kept) != 1 {
		t.Errorf("there are %d receipts, %v", len(kept), err)
	}
}

// Nothing is signed that is not published, is not the task's own, or is no verdict.
func TestWhatGetsNoReceipt(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the sum")
	held, _ := w.claim(t, made.ID)
	large := foundGood()
	for range 900 {
		large.Findings = append(large.Findings, strings.Repeat("x", 4000))
	}
	odd := foundGood()
	odd.Projects[0].Runs[0].Kind = "lint"
	for name, try := range map[string]func() (wire.Pulled, error){
		"another branch": func() (wire.Pulled, error) { return receipted(t, held, "toryo/99", agentCommit, foundGood()) },
		"too large":      func() (wire.Pulled, error) { return receipted(t, held, made.Branch, agentCommit, large) },
		"no such kind":   func() (wire.Pulled, error) { return receipted(t, held, made.Branch, agentCommit, odd) },
	} {
		if pulled, err := try(); err == nil {
			t.Errorf("%s: %+v", name, pulled)
		}
	}
	w.findings.Store(agentCommit, []inspect.Found{workflow})
	if pulled, err := receipted(t, held, made.Branch, agentCommit, foundGood()); err != nil || !pulled.Withheld {
		t.Errorf("withheld: %+v, %v", pulled, err)
	}
	if _, err := receipted(t, held, made.Branch, otherCommit, nil); err != nil {
		t.Errorf("without a verdict: %v", err)
	}
	if _, err := receipted(t, held, made.Branch, foreignCommit, foundGood()); err != nil {
		t.Errorf("a commit of somebody else: %v", err)
	}
	if kept, err := w.store.ReceiptsOf(t.Context(), made.ID); err != nil || len(kept) != 0 {
		t.Errorf("there are %d receipts, %v", len(kept), err)
	}
	pull, _, err := w.forge.FindPull(t.Context(), repository, made.Branch, "main")
	if err != nil || strings.Contains(pull.Body, "receipt") {
		t.Errorf("the description is %q, %v", pull.Body, err)
	}
}

// Work on a pull request leaves its description as it is: the last comment has the
// address. What nobody asked for is said in the receipt.
func TestReceiptOfWorkOnAPullRequest(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.forge.SetBranch(repository, "feature", "f0")
	pull, _, err := w.forge.OpenPull(t.Context(), repository, forge.PullPost{Head: "feature", Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := w.store.Assign(t.Context(), store.NewTask{Key: pull.Key, Type: task.Development, Title: "t", Branch: "feature", Reason: task.ReasonAssigned}, nil)
	if err != nil {
		t.Fatal(err)
	}
	held, _ := w.claim(t, made.ID)
	w.findings.Store(agentCommit, []inspect.Found{workflow})
	w.findings.Store(otherCommit, []inspect.Found{workflow})
	for _, commit := range []string{agentCommit, otherCommit} { // the first is withheld
		if _, err := receipted(t, held, "feature", commit, foundGood()); err != nil {
			t.Fatal(err)
		}
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: task.OutcomeDone, Comment: "It is done."}); err != nil {
		t.Fatal(err)
	}
	said := w.textsOn(t, pull.Key)
	_, verified := w.verified(t, said)
	if verified.Statement.Commit() != publishedHash(otherCommit) || !verified.Statement.Predicate.Toryo.Draft || verified.Statement.Predicate.Result != receipt.Warned {
		t.Errorf("it states %+v", verified.Statement.Predicate)
	}
	if item, err := w.forge.Item(t.Context(), pull.Key); err != nil || strings.Contains(item.Body, "receipt") {
		t.Errorf("the description is %q, %v", item.Body, err)
	}
}

// A key that was replaced signs no more, and what it has signed stays valid.
func TestReplacedKeys(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	first, second := w.issue(t, "Fix the sum"), w.issue(t, "Fix the product")
	sign := func(made task.Task) (receipt.Verified, string) {
		held, _ := w.claim(t, made.ID)
		if _, err := receipted(t, held, made.Branch, agentCommit, foundGood()); err != nil {
			t.Fatal(err)
		}
		pull, _, err := w.forge.FindPull(t.Context(), repository, made.Branch, "main")
		if err != nil {
			t.Fatal(err)
		}
		_, verified := w.verified(t, pull.Body)
		return verified, pull.Body
	}
	before, body := sign(first)
	added, err := broker.AddReceiptKey(t.Context(), w.store, true)
	if err != nil {
		t.Fatal(err)
	}
	after, _ := sign(second)
	if after.Key != added.ID || before.Key == after.Key {
		t.Errorf("the keys are %s and %s, want %s in the end", before.Key, after.Key, added.ID)
	}
	if _, again := w.verified(t, body); again.Key != before.Key {
		t.Errorf("the old receipt is by %s", again.Key)
	}
	keys, err := receipt.ParsePEM(added.Public)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := w.store.ReceiptsOf(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	old, err := w.store.Receipt(t.Context(), kept[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = receipt.Verify(t.Context(), old.Envelope, keys...)
	if _, is := errors.AsType[*receipt.RefusedError](err); !is {
		t.Errorf("with the new key alone: %v", err)
	}
}
