package endtoend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// TestOnGiteaImages has images on a real Gitea, in a private repository: one in the issue, one in a
// comment that comes during execution, and one in the comment of somebody who may not steer. The
// model of execution sees the first two, also in the run that goes on after the agent was killed;
// that of planning, which sees none, is told in words. The journal has hashes only.
func TestOnGiteaImages(t *testing.T) {
	t.Parallel()
	server := testkit.Gitea(t)
	giteaPeople(t, server)
	h, site := giteaHouse(t, server, "alice", "", plan{agents: 1, env: []string{longLeases}, settings: "llm_overrides: {execution: {images: \"on\"}}\n"})
	scenario := load(t, "../phase/testdata/scenarios/shell.txtar")[0]
	s := &story{
		Scenario: scenario, house: h, site: site,
		fired: map[int]bool{}, ids: map[string]string{}, threads: map[string]string{}, authors: map[string]string{},
	}
	must(t, s.prepare(t.Context()))
	asked, said, stranger := picture(t, 40, 30), picture(t, 50, 20), picture(t, 60, 10)
	body := "It should print 4: ![what I see](" + site.upload(t, s.item, asked) + ")"
	_, _, err := site.client("alice").EditIssue("alice", scenario.Name, s.item.Number, sdk.EditIssueOption{Body: &body})
	must(t, err)
	_, err = site.addComment(t.Context(), s.item, "mallory", "Look: ![]("+site.upload(t, s.item, stranger)+")")
	must(t, err)
	s.present, s.said = 1, 1
	before := 0
	scenario.Events = append(scenario.Events,
		phasetest.Event{When: phasetest.When{Kind: task.MessageSent, Phase: task.Execution}, Comments: []phasetest.Comment{
			{Author: "bob", Body: "Like here: <img src=\"" + site.upload(t, s.item, said) + "\">"},
		}},
		phasetest.Event{When: phasetest.When{Kind: task.ToolCalled, Tool: "edit", Run: 1}, Crash: true, Do: func(context.Context) error {
			before = len(s.model.Records())
			return nil
		}})
	s.model = script.NewServer(scenario.Script)
	must(t, site.assign(t.Context(), s.item, true))
	s.seeThrough(t)
	records := s.model.Records()
	if before == 0 || before >= len(records) {
		t.Fatalf("there were %d of %d requests before the crash", before, len(records))
	}
	for at, record := range records {
		sees := record.Request.Phase == task.Execution
		if got := showsImage(record, asked); got != sees {
			t.Errorf("request %d of %d, in %s: the image of the issue is shown: %v", at, len(records), record.Request.Phase, got)
		}
		if showsImage(record, stranger) {
			t.Errorf("request %d shows the stranger's image", at)
		}
		if record.Request.Phase == task.Planning && !strings.Contains(record.Request.Messages[0].Text(), "An image of 40×30 pixels (image/png) was here.") {
			t.Errorf("request %d, in planning, does not tell of an image", at)
		}
	}
	if last := lastIn(records, task.Execution); !showsImage(last, said) {
		t.Errorf("the last request of execution does not show the image of the comment:\n%.3000s", last.Body)
	}
	s.wantHashes(t, asked, said)
}

// wantHashes checks that the journal has the hashes of images and not their bytes.
func (s *story) wantHashes(t *testing.T, pictures ...[]byte) {
	t.Helper()
	events, err := s.house.store.EventsAfter(t.Context(), s.taskID(t.Context()), 0, 0)
	must(t, err)
	var journal strings.Builder
	for _, event := range events {
		journal.Write(event.Data)
	}
	for _, data := range pictures {
		sum := sha256.Sum256(data)
		if !strings.Contains(journal.String(), hex.EncodeToString(sum[:])) {
			t.Errorf("the hash of an image is not in the journal")
		}
		if strings.Contains(journal.String(), base64.StdEncoding.EncodeToString(data)) {
			t.Errorf("the bytes of an image are in the journal")
		}
	}
}

func lastIn(records []script.Record, phase task.Phase) (last script.Record) {
	for _, record := range records {
		if record.Request.Phase == phase {
			last = record
		}
	}
	return last
}

func showsImage(record script.Record, data []byte) bool {
	for _, message := range record.Request.Messages {
		for _, shown := range message.Images() {
			if bytes.Equal(shown.Data, data) {
				return true
			}
		}
	}
	return false
}

// picture is a PNG image of its own.
func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	drawn := image.NewRGBA(image.Rect(0, 0, width, height))
	drawn.Set(width/2, height/2, color.RGBA{200, 10, 10, 255})
	var data bytes.Buffer
	must(t, png.Encode(&data, drawn))
	return data.Bytes()
}

// upload puts a file to an issue, as the page does, and returns the address for a text.
func (g *giteaSite) upload(t *testing.T, item task.Key, data []byte) string {
	t.Helper()
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	part, err := writer.CreateFormFile("attachment", "image.png")
	must(t, err)
	_, err = part.Write(data)
	must(t, err)
	must(t, writer.Close())
	address := fmt.Sprintf("%s/api/v1/repos/%s/issues/%d/assets", g.server.URL, item.Repository, item.Number)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, &form)
	must(t, err)
	request.Header.Set("Authorization", "token "+g.token)
	request.Header.Set("Content-Type", writer.FormDataContentType())
	answer, err := new(http.Client).Do(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	var made struct {
		UUID string `json:"uuid"`
	}
	must(t, json.NewDecoder(answer.Body).Decode(&made))
	if made.UUID == "" {
		t.Fatalf("the upload is answered with %s", answer.Status)
	}
	return "/attachments/" + made.UUID
}
