package assignment_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/task"
)

// withFiles is a forge that has a file at each address below /attachments/.
type withFiles struct {
	*dummy.Forge
	data  []byte
	asked *[]string
}

func (f withFiles) Attachment(_ context.Context, _, address string, _ int64) (forge.Attachment, error) {
	*f.asked = append(*f.asked, address)
	return forge.Attachment{Own: strings.HasPrefix(address, "/attachments/"), Data: f.data}, nil
}

// told is what runs were told of comments.
type told []task.CommentEntry

func (k told) KnownComments(context.Context, task.ID) ([]task.CommentEntry, int64, error) {
	return k, int64(len(k)), nil
}

// The images of people who may steer are given to a run. Those of strangers are not, and neither
// are ours, whatever our rights are: nobody is asked for them. One of whom nothing can be said now
// holds up nobody else.
func TestImagesAreOfPeopleWhoMaySteer(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewRGBA(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	on := withFiles{dummy.New(task.GitHub, "bot"), data.Bytes(), new([]string)}
	on.AddRepository("a/b", forge.Remote{})
	on.SetAccess("a/b", "writer", forge.WriteAccess)
	on.SetAccess("a/b", "bot", forge.WriteAccess)
	key := on.AddItem("a/b", task.Issue, "writer", "A title")
	on.Change(key, func(i *forge.Item) { i.Body = "![](/attachments/asked)" })
	on.AddComment(key, "writer", "and ![](/attachments/said)")
	on.AddComment(key, "stranger", "![](/attachments/stranger)")
	on.AddComment(key, "bot", "![](https://x.example/?what-it-read) ![](/attachments/bot)")
	on.AddComment(key, "nobody-knows", "![](/attachments/nobody-knows)")
	participant := on.AddComment(key, "participant", "![](/attachments/participant)")
	readers := map[task.Forge]forge.Reader{task.GitHub: on}
	snapshots := items.NewSnapshots(readers, items.Ages{}, nil)
	log := slog.New(slog.DiscardHandler)
	steering := &items.Steering{Log: log, Access: func(ctx context.Context, item task.Key, login string) (forge.Access, error) {
		if login == "nobody-knows" {
			return forge.NoAccess, task.Errorf(task.Unavailable, "later")
		}
		return on.Access(ctx, item.Repository, login)
	}}
	reading := assignment.Images{
		Snapshots: snapshots, Forges: readers, Steering: steering, Log: log,
		Own:      func(_ task.Forge, login string) bool { return login == "bot" },
		Comments: told{{Comment: participant}},
	}
	found, err := reading.Of(t.Context(), task.Task{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	for _, one := range found {
		links = append(links, one.Link)
	}
	if got := strings.Join(links, " "); got != "/attachments/asked /attachments/participant /attachments/said" || got != strings.Join(*on.asked, " ") {
		t.Errorf("got %q, asked for %q", got, *on.asked)
	}

	// Of a pull request of ours those of the issue that it is for are read.
	pull := on.AddItem("a/b", task.Pull, "bot", "A change")
	on.Change(pull, func(i *forge.Item) { i.Body = fmt.Sprintf("Closes #%d ![](/attachments/bot)", key.Number) })
	found, err = reading.Of(t.Context(), task.Task{Key: pull})
	if err != nil || len(found) != 1 || found[0].Link != "/attachments/asked" {
		t.Errorf("of the pull request: %+v, %v", found, err)
	}

	// What reviewers wrote is read too, whether runs are told of it while they go on or not.
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	on.SetClock(func() time.Time { now = now.Add(time.Minute); return now })
	on.AddThread(pull, "writer", "a.go", 1, "![](/attachments/thread)")
	on.AddThread(pull, "stranger", "a.go", 2, "![](/attachments/stranger)")
	on.AddReview(pull, forge.Review{Author: "writer", Verdict: forge.RequestChanges, Body: "![](/attachments/review)"})
	for _, told := range []bool{false, true} {
		reading.Snapshots, reading.Reviews = items.NewSnapshots(readers, items.Ages{}, nil), map[task.Forge]items.ReviewSource{task.GitHub: on}
		if told {
			reading.Snapshots.ReadReviews(reading.Reviews)
			reading.Reviews = nil
		}
		found, err = reading.Of(t.Context(), task.Task{Key: pull})
		links = nil
		for _, one := range found {
			links = append(links, one.Link)
		}
		if got := strings.Join(links, " "); err != nil || got != "/attachments/asked /attachments/review /attachments/thread" {
			t.Errorf("with reviews in the snapshots (%v): %q, %v", told, got, err)
		}
	}
}

// Of a pull request the images of the last texts are read first, whichever kind they are. What this
// program wrote under another account is not read, whatever runs were told of it.
func TestImagesOfTheLastTextsComeFirst(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewRGBA(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	on := withFiles{dummy.New(task.GitHub, "bot"), data.Bytes(), new([]string)}
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	on.SetClock(func() time.Time { now = now.Add(time.Minute); return now })
	on.AddRepository("a/b", forge.Remote{})
	marker := "\n\n" + forge.MarkerOf("x").String()
	issue := on.AddItem("a/b", task.Issue, "person", "A title")
	on.Change(issue, func(i *forge.Item) { i.Body = "![](/attachments/issue)" + marker })
	pull := on.AddItem("a/b", task.Pull, "person", "A change")
	on.Change(pull, func(i *forge.Item) { i.Body = fmt.Sprintf("Closes #%d ![](/attachments/pull)", issue.Number) })
	on.AddComment(pull, "person", "![](/attachments/1)")
	on.AddReview(pull, forge.Review{Author: "person", Verdict: forge.RequestChanges, Body: "![](/attachments/2)"})
	on.AddThread(pull, "person", "a.go", 1, "![](/attachments/3)")
	on.AddComment(pull, "person", "![](/attachments/4)")
	marked := on.AddComment(pull, "old-bot", "![](/attachments/old-bot)"+marker)
	onLine := on.AddThread(pull, "old-bot", "a.go", 1, "![](/attachments/old-bot-on-a-line)").Comments[0]
	on.AddThread(pull, "person", "a.go", 2, "![](/attachments/5)")
	on.AddReview(pull, forge.Review{Author: "person", Verdict: forge.RequestChanges, Body: "![](/attachments/6)"})
	readers := map[task.Forge]forge.Reader{task.GitHub: on}
	snapshots := items.NewSnapshots(readers, items.Ages{}, nil)
	snapshots.ReadReviews(map[task.Forge]items.ReviewSource{task.GitHub: on})
	log := slog.New(slog.DiscardHandler)
	reading := assignment.Images{
		Snapshots: snapshots, Forges: readers, Log: log, Own: func(_ task.Forge, login string) bool { return login == "bot" },
		Steering: &items.Steering{Log: log, Access: func(context.Context, task.Key, string) (forge.Access, error) { return forge.WriteAccess, nil }},
		Comments: told{{Comment: marked}, {Comment: onLine}},
	}
	if _, err := reading.Of(t.Context(), task.Task{Key: pull}); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(strings.Join(*on.asked, " "), "/attachments/", ""); got != "pull 6 5 4 3 2 1" {
		t.Errorf("asked for %q", got)
	}
}
