package kubernetes

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// indexName is the config map with the records of the snapshots. No sandbox can
// change it.
const indexName = "toryo-snapshots"

// record is what is known of a snapshot.
type record struct {
	Folder string    `json:"folder"` // on the claim
	Digest string    `json:"digest"`
	Bytes  int64     `json:"bytes"`
	Image  string    `json:"image"`
	Made   time.Time `json:"made"`
	Used   time.Time `json:"used"`
}

// index reads all records.
func (e *Engine) index(ctx context.Context) (map[string]record, error) {
	if e.config.Claim == "" {
		return nil, nil
	}
	var found struct {
		Data map[string]string `json:"data"`
	}
	err := e.api.call(ctx, http.MethodGet, e.api.path("configmaps", indexName), nil, nil, &found)
	if err != nil {
		return nil, failed(err, "the config map "+indexName+" cannot be read")
	}
	records := map[string]record{}
	for key, text := range found.Data {
		var one record
		if json.Unmarshal([]byte(text), &one) == nil && sandbox.ValidateKey(key) == nil && nameForm.MatchString(one.Folder) {
			records[key] = one
		}
	}
	return records, nil
}

func (e *Engine) record(ctx context.Context, key string) (record, error) {
	records, err := e.index(ctx)
	if err != nil {
		return record{}, err
	}
	found, there := records[key]
	if !there {
		return record{}, task.Errorf(task.NotFound, "there is no snapshot %s", key)
	}
	return found, nil
}

// note writes a record, or removes it if there is none.
func (e *Engine) note(ctx context.Context, key string, what *record) error {
	var value any
	if what != nil {
		text, err := json.Marshal(what)
		if err != nil {
			return err
		}
		value = string(text)
	}
	return e.api.retry(ctx, createTimeout, func() error {
		return e.api.call(ctx, http.MethodPatch, e.api.path("configmaps", indexName), nil, object{"data": object{key: value}}, nil)
	})
}

// noteUse writes down that a snapshot was used, by which the old ones are found. One that was
// replaced or removed meanwhile has no file any more, so that its record stays away.
func (e *Engine) noteUse(ctx context.Context, key string, used record) {
	records, err := e.index(ctx)
	if err == nil && records[key].Folder != used.Folder {
		return
	}
	if err == nil {
		used.Used = e.config.Now().UTC()
		err = e.note(ctx, key, &used)
	}
	if err != nil {
		e.config.Log.WarnContext(ctx, "kubernetes: failed to record the use of a snapshot", "snapshot", key, "error", err)
	}
}

// Sweep finds nothing: the cluster ends pods, and what they wrote goes with their records.
func (e *Engine) Sweep(context.Context) error { return nil }

// Snapshots lists the snapshots, least recently used first.
func (e *Engine) Snapshots(ctx context.Context) ([]sandbox.Snapshot, error) {
	records, err := e.index(ctx)
	if err != nil {
		return nil, err
	}
	var all []sandbox.Snapshot
	for key, one := range records {
		all = append(all, e.snapshot(key, one))
	}
	slices.SortStableFunc(all, func(a, b sandbox.Snapshot) int { return a.Used.Compare(b.Used) })
	return all, nil
}

func (e *Engine) snapshot(key string, one record) sandbox.Snapshot {
	return sandbox.Snapshot{Key: key, Bytes: one.Bytes, Made: one.Made, Used: one.Used, Kept: "volume claim " + e.config.Claim}
}

// Snapshot has the guest write a file to the pod's folder on the claim.
func (b *box) Snapshot(ctx context.Context, key string, before workdir.Listing) (sandbox.Snapshot, error) {
	e := b.engine
	if err := sandbox.ValidateKey(key); err != nil {
		return sandbox.Snapshot{}, err
	}
	if e.config.Claim == "" {
		return sandbox.Snapshot{}, task.Errorf(task.Unsupported, "no volume claim is configured for snapshots").
			WithHint("name one with sandbox.kubernetes.snapshot_claim")
	}
	if b.spec.Snapshot != "" {
		return sandbox.Snapshot{}, task.Errorf(task.Unsupported, "a sandbox that began with a snapshot cannot keep another")
	}
	b.running.Lock()
	defer b.running.Unlock()
	if err := b.client.Push(ctx); err != nil {
		return sandbox.Snapshot{}, b.explain(err)
	}
	kept, err := b.client.Keep(ctx, before)
	if err != nil {
		return sandbox.Snapshot{}, b.explain(err)
	}
	now := e.config.Now().UTC()
	made := record{Folder: b.info.ID, Digest: kept.Digest, Bytes: kept.Bytes, Image: b.spec.Image, Made: now, Used: now}
	if err := e.replace(ctx, key, made); err != nil {
		return sandbox.Snapshot{}, err
	}
	return e.snapshot(key, made), nil
}

// replace notes a snapshot in place of the key's older one, and removes that one's file, unless a pod may
// be about to read it. If this fails, the snapshot is kept all the same: no record has the older folder, so
// that a later sweep removes it.
func (e *Engine) replace(ctx context.Context, key string, made record) error {
	records, err := e.index(ctx)
	if err != nil {
		e.config.Log.WarnContext(ctx, "kubernetes: failed to look for an older snapshot", "snapshot", key, "error", err)
	}
	if err := e.note(ctx, key, &made); err != nil {
		return failed(err, "the snapshot cannot be noted")
	}
	older, there := records[key]
	sameFolder := older.Folder == made.Folder // of a pod that keeps a snapshot again
	if !there || sameFolder || made.Made.Sub(older.Used) < e.config.StartTimeout {
		return nil
	}
	records[key] = made
	if err := e.discard(ctx, older, records); err != nil {
		e.config.Log.WarnContext(ctx, "kubernetes: failed to remove the file of a snapshot that was made again", "snapshot", key, "folder", older.Folder, "error", err)
	}
	return nil
}

// RemoveSnapshot removes the record, upon which nobody uses the snapshot any more,
// and then the file.
func (e *Engine) RemoveSnapshot(ctx context.Context, key string) error {
	if err := sandbox.ValidateKey(key); err != nil {
		return err
	}
	records, err := e.index(ctx)
	if err != nil {
		return err
	}
	gone, there := records[key]
	if !there {
		return nil
	}
	if err := e.note(ctx, key, nil); err != nil {
		return failed(err, "the snapshot's record cannot be removed")
	}
	delete(records, key)
	return e.discard(ctx, gone, records)
}

// discard removes the file of a snapshot that has no record any more.
func (e *Engine) discard(ctx context.Context, gone record, left map[string]record) error {
	e.warm.forget(gone.Folder)
	return e.sweep(ctx, gone, left)
}

// sweepScript removes the folder named first, and what else is not named and is
// old: folders of pods that have kept nothing.
const sweepScript = `cd "$1" || exit 1; shift; rm -rf -- "$1"; shift
for folder in *; do
  case " $* " in *" $folder "*) continue ;; esac
  [ -z "$(find "$folder" -maxdepth 0 -mtime +1)" ] || rm -rf -- "$folder"
done`

// sweep runs a helper with the whole claim, in an image that the snapshot was made
// with: another may not be there.
func (e *Engine) sweep(ctx context.Context, gone record, left map[string]record) error {
	arguments := []string{"sh", "-c", sweepScript, "sweep", snapshotPath, gone.Folder}
	for _, one := range left {
		arguments = append(arguments, one.Folder)
	}
	return e.help(ctx, gone.Image, arguments, true, func(now pod) (bool, error) {
		if now.Status.Phase == "Failed" {
			return true, task.Errorf(task.Unavailable, "the snapshot's file cannot be removed: %s", strings.TrimSpace(now.ended()))
		}
		return now.Status.Phase == "Succeeded", nil
	})
}
