package assignment_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"log/slog"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/task"
)

// withFiles is a forge that has a file at each address below /attachments/.
type withFiles struct {
	*dummy.Forge
	data []byte
}

func (f withFiles) Attachment(_ context.Context, _, address string, _ int64) (forge.Attachment, error) {
	return forge.Attachment{Own: strings.HasPrefix(address, "/attachments/"), Data: f.data}, nil
}

// The images of people who may steer are given to a run, those of strangers are not.
func TestImagesAreOfPeopleWhoMaySteer(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewRGBA(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	on := withFiles{dummy.New(task.GitHub, "bot"), data.Bytes()}
	on.AddRepository("a/b", forge.Remote{})
	on.SetAccess("a/b", "writer", forge.WriteAccess)
	key := on.AddItem("a/b", task.Issue, "writer", "A title")
	on.Change(key, func(i *forge.Item) { i.Body = "![](/attachments/asked)" })
	on.AddComment(key, "writer", "and ![](/attachments/said)")
	on.AddComment(key, "stranger", "![](/attachments/stranger)")
	readers := map[task.Forge]forge.Reader{task.GitHub: on}
	snapshots := items.NewSnapshots(readers, items.Ages{}, nil)
	log := slog.New(slog.DiscardHandler)
	steering := &items.Steering{Log: log, Access: func(ctx context.Context, item task.Key, login string) (forge.Access, error) {
		return on.Access(ctx, item.Repository, login)
	}}
	found, err := assignment.Images{Snapshots: snapshots, Forges: readers, Steering: steering, Log: log}.Of(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	for _, one := range found {
		links = append(links, one.Link)
	}
	if got := strings.Join(links, " "); got != "/attachments/asked /attachments/said" {
		t.Errorf("got %q", got)
	}
}
