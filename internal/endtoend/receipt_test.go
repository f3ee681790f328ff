package endtoend

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/testkit"
)

// run runs a command that ends by itself, and returns all that it prints and its exit
// code.
func (h *house) run(t *testing.T, env []string, args ...string) (output string, exit int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "toryo", args...)
	command.Dir, command.Env = h.dir, append(append(os.Environ(), h.env...), env...)
	text, err := command.CombinedOutput()
	ended, is := errors.AsType[*exec.ExitError](err)
	if err != nil && !is {
		t.Fatal(err)
	}
	if is {
		exit = ended.ExitCode()
	}
	return string(text), exit
}

var receiptID = regexp.MustCompile("toryo receipt verify ([0-9a-f-]{36})")

// A task that is done has a receipt, which whoever has the key can check: it is about the
// commit that the forge has, on the base that the forge has, with the commands that ran.
func TestReceiptsOfFinishedWork(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 1})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	s := h.runStory(t, board, pick(load(t, "../phase/testdata/scenarios/*.txtar"), "failed_before")[0])
	pull := s.read(t).pulls[0]
	named := receiptID.FindStringSubmatch(pull.Body)
	if named == nil {
		t.Fatalf("the pull request does not say how to check the receipt:\n%s", pull.Body)
	}
	onForge := func(ref string) string {
		hash, err := git(t.Context(), board.address(s.item.Repository), "rev-parse", ref)
		must(t, err)
		return hash
	}
	commit, base := onForge("refs/heads/"+pull.Head), onForge("refs/heads/main")

	// On the machine of the server, by its id.
	said, exit := h.run(t, nil, "receipt", "verify", named[1], "--data", h.data(0), "--commit", commit)
	for _, want := range []string{
		"verified: signed with the key ", "commit        " + commit + "\n", "base          " + base + " (main)\n", "repository    board:" + s.item.Repository + "\n",
		"environment   ready", "bubblewrap", "tests         sh test.sh: exit code 1 in ", "failing, before the change too: test_moon (moon.sh)\n",
		"fixed by the change: test_add (add.sh)\n", "no regressions", "signed at     2",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if exit != 0 || t.Failed() {
		t.Errorf("the exit code is %d:\n%s", exit, said)
	}

	// Elsewhere, over HTTP with a token, and as a file with the key.
	token := []string{"TORYO_TOKEN=" + h.client.Token}
	link := h.urls[0] + "/receipts/" + named[1]
	if said, exit := h.run(t, token, "receipt", "verify", link, "--server", h.urls[0]); exit != 0 || !strings.Contains(said, commit) {
		t.Errorf("the link: %d, %s", exit, said)
	}
	envelope, err := h.client.Receipt(t.Context(), named[1])
	must(t, err)
	key := filepath.Join(t.TempDir(), "key.pem")
	must(t, os.WriteFile(key, []byte(download(t, h.urls[0]+"/receipts/key.pem")), 0o600))
	if printed, exit := h.run(t, nil, "receipt", "key", "--data", h.data(0)); exit != 0 || printed != download(t, h.urls[0]+"/receipts/key.pem") {
		t.Errorf("the command prints another key: %s", printed)
	}
	if said, exit := h.run(t, nil, "receipt", "verify", written(t, envelope), "--key", key); exit != 0 || !strings.Contains(said, commit) {
		t.Errorf("the file: %d, %s", exit, said)
	}
	if said, exit := h.run(t, nil, "receipt", "show", written(t, envelope)); exit != 0 || !strings.Contains(said, "NOT verified") || !strings.Contains(said, commit) {
		t.Errorf("shown: %d, %s", exit, said)
	}
	if said, exit := h.run(t, nil, "receipt", "list", string(s.read(t).task.ID), "--data", h.data(0)); exit != 0 || !strings.Contains(said, named[1]+"  "+commit) {
		t.Errorf("listed: %d, %s", exit, said)
	}
	h.refuses(t, envelope, key, link, base)
}

// refuses checks what does not pass for a receipt.
func (h *house) refuses(t *testing.T, envelope []byte, key, link, base string) {
	t.Helper()
	elsewhere := t.TempDir()
	other, exit := h.run(t, nil, "receipt", "key", "--new", "--data", elsewhere)
	if exit != 0 {
		t.Fatal(other)
	}
	token := []string{"TORYO_TOKEN=" + h.client.Token}
	for name, test := range map[string]struct {
		env  []string
		args []string
		exit int
		says string
	}{
		"a flipped byte":       {nil, []string{written(t, flipped(t, envelope)), "--key", key}, 1, "one of them was changed"},
		"another key":          {nil, []string{written(t, envelope), "--key", written(t, []byte(other))}, 1, "give it with --key"},
		"another commit":       {nil, []string{written(t, envelope), "--key", key, "--commit", base}, 1, "not about " + base},
		"another payload":      {nil, []string{written(t, []byte(strings.Replace(string(envelope), "vnd.in-toto", "x", 1))), "--key", key}, 1, "a receipt has the type"},
		"no receipt":           {nil, []string{key, "--key", key}, 1, "not a DSSE envelope"},
		"no key":               {nil, []string{written(t, envelope), "--data", filepath.Join(elsewhere, "none")}, 6, "name a file or an address that has them with --key"},
		"a server of somebody": {token, []string{link}, 2, "give --server " + h.urls[0]},
		"no token":             {nil, []string{link, "--server", h.urls[0]}, 2, "TORYO_TOKEN"},
		"no such receipt":      {token, []string{h.urls[0] + "/receipts/none", "--server", h.urls[0]}, 8, "no receipt"},
	} {
		said, exit := h.run(t, test.env, append([]string{"receipt", "verify"}, test.args...)...)
		if exit != test.exit || !strings.Contains(said, test.says) {
			t.Errorf("%s: exit code %d, want %d, with %q: %s", name, exit, test.exit, test.says, said)
		}
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking for a key has made a data directory: %v", err)
	}
}

// flipped is an envelope with one bit of the signed text changed.
func flipped(t *testing.T, envelope []byte) []byte {
	t.Helper()
	var parts map[string]any
	must(t, json.Unmarshal(envelope, &parts))
	text, _ := parts["payload"].(string)
	payload, err := base64.StdEncoding.DecodeString(text)
	must(t, err)
	payload[bytes.Index(payload, []byte(`"result"`))+12] ^= 1
	parts["payload"] = base64.StdEncoding.EncodeToString(payload)
	changed, err := json.Marshal(parts)
	must(t, err)
	return changed
}

// written is a file with a text.
func written(t *testing.T, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "receipt.json")
	must(t, os.WriteFile(file, text, 0o600))
	return file
}

// download reads an address as anybody can.
func download(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	must(t, err)
	answer, err := new(http.Client).Do(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s", address, answer.Status)
	}
	return string(text)
}

// Two servers on one database sign with one key: what one has published and signed, the
// other serves and its keys verify, also after the key was replaced.
func TestReceiptsOfTwoServers(t *testing.T) {
	t.Parallel()
	h := build(t, plan{servers: 2, agents: 1, database: testkit.Postgres(t)})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	s := h.runStory(t, board, pick(load(t, "../phase/testdata/scenarios/*.txtar"), "shell")[0])
	pull := s.read(t).pulls[0]
	named := receiptID.FindStringSubmatch(pull.Body)
	if named == nil {
		t.Fatalf("the pull request does not say how to check the receipt:\n%s", pull.Body)
	}
	before := download(t, h.urls[0]+"/receipts/key.pem")
	if other := download(t, h.urls[1]+"/receipts/key.pem"); other != before || strings.Count(before, "BEGIN PUBLIC KEY") != 1 {
		t.Errorf("the keys are\n%s\nand\n%s", before, other)
	}
	if said, exit := h.run(t, nil, "receipt", "key", "--new", "--data", h.data(0)); exit != 0 || !strings.HasSuffix(said, before) {
		t.Fatalf("the key is not replaced: %s", said)
	}
	token := []string{"TORYO_TOKEN=" + h.client.Token}
	for _, url := range h.urls { // the agent works for the second
		said, exit := h.run(t, token, "receipt", "verify", url+"/receipts/"+named[1], "--server", url, "--commit", pull.HeadCommit)
		if exit != 0 || !strings.Contains(said, "result        passed\n") {
			t.Errorf("%s: %d, %s", url, exit, said)
		}
		if after := download(t, url+"/receipts/key.pem"); strings.Count(after, "BEGIN PUBLIC KEY") != 2 || !strings.HasSuffix(after, before) {
			t.Errorf("%s has the keys\n%s", url, after)
		}
	}
}
