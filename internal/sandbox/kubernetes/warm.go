package kubernetes

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// warmKind is what a pod is made with and keeps. Every run that asks for the same can have the
// pod: what else a run has comes in when it takes the pod.
type warmKind struct {
	image  string
	limits sandbox.Limits
	source string // folder of the snapshot to start from
}

func kindOf(spec sandbox.Spec, from record) warmKind {
	return warmKind{spec.Image, spec.Limits, from.Folder}
}

const (
	// warmAge is for how long a pod is kept ready, and for how long after its last start pods
	// of a kind are.
	warmAge = 30 * time.Minute
	// mostKinds is of how many kinds pods are kept ready: those that were used last.
	mostKinds = 4
	// mostMaking is how many pods are made at a time to be kept ready.
	mostMaking = 2
	// firstPause is for how long none of a kind are made when one has failed; it grows up to
	// lastPause. yieldPause is for how long none are made at all when they had to give way.
	firstPause = time.Minute
	lastPause  = 30 * time.Minute
	yieldPause = time.Minute
	lookEvery  = time.Minute
)

// warmPods are the pods that are kept ready by this process. Nobody else takes them.
type warmPods struct {
	most    int
	changed chan struct{} // there may be something to do

	mutex    sync.Mutex
	owner    string // who they belong to until they are taken; empty while none are kept
	shelves  map[warmKind]*warmShelf
	making   int
	surplus  int       // of those in the making: they were to give way
	awaiting int       // starts that somebody waits for
	paused   time.Time // until when none are made
	gave     time.Time // when they gave way last
	old      []*box    // that are to be stopped
}

// warmShelf has the pods of one kind.
type warmShelf struct {
	ready  []*box // the oldest first
	making int
	used   time.Time // the last start
	paused time.Time // until when none are made
	pause  time.Duration
}

func newWarmPods(most int) *warmPods {
	return &warmPods{most: most, changed: make(chan struct{}, 1), shelves: map[warmKind]*warmShelf{}}
}

// look has the keeper look at what there is to do.
func (w *warmPods) look() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// await notes that somebody waits for a start, until served: no pods are made meanwhile that
// nobody waits for.
func (w *warmPods) await() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.awaiting++
}

func (w *warmPods) served() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.awaiting--
	w.look()
}

// noteUse notes the start of a sandbox, after which more of its kind are expected.
func (w *warmPods) noteUse(kind warmKind, now time.Time) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.owner == "" {
		return
	}
	if shelf, known := w.shelves[kind]; known {
		shelf.used = now
		return
	}
	for len(w.shelves) >= mostKinds {
		w.drop(slices.MinFunc(slices.Collect(maps.Keys(w.shelves)), func(a, b warmKind) int {
			return w.shelves[a].used.Compare(w.shelves[b].used)
		}))
	}
	w.shelves[kind] = &warmShelf{used: now, pause: firstPause}
}

// drop forgets a kind. It is called with the mutex held.
func (w *warmPods) drop(kind warmKind) {
	w.old = append(w.old, w.shelves[kind].ready...)
	delete(w.shelves, kind)
}

// take gives away a pod of the kind, or nil if none is ready.
func (w *warmPods) take(kind warmKind, now time.Time) *box {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	shelf, known := w.shelves[kind]
	if !known {
		return nil
	}
	shelf.used = now
	at := slices.IndexFunc(shelf.ready, func(b *box) bool { return b.lost.Load() == nil && b.link.Down() == 0 })
	if at < 0 {
		return nil
	}
	taken := shelf.ready[at]
	shelf.ready = slices.Delete(shelf.ready, at, at+1)
	return taken
}

// plan says what there is to do now: pods to stop, and kinds to make one of each.
func (w *warmPods) plan(now time.Time) (stop []*box, begin []warmKind) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for kind, shelf := range w.shelves {
		if now.Sub(shelf.used) > warmAge {
			w.drop(kind)
			continue
		}
		shelf.ready = slices.DeleteFunc(shelf.ready, func(b *box) bool {
			bad := b.lost.Load() != nil || now.Sub(b.info.Started) > warmAge
			if bad {
				w.old = append(w.old, b)
			}
			return bad
		})
		for w.awaiting == 0 && !now.Before(w.paused) && !now.Before(shelf.paused) && w.making < mostMaking && len(shelf.ready)+shelf.making < w.most {
			shelf.making++
			w.making++
			begin = append(begin, kind)
		}
	}
	stop, w.old = w.old, nil
	return stop, begin
}

// made takes a pod that was made, or the error for which none was. It returns whether the pod
// is kept, and for how long none of its kind are made.
func (w *warmPods) made(kind warmKind, made *box, err error, now time.Time) (kept bool, pause time.Duration) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	defer w.look()
	w.making--
	surplus := w.surplus > 0
	if surplus {
		w.surplus--
		if err == nil || made != nil && made.maybe {
			w.gave = now // it is removed now
		}
	}
	shelf, known := w.shelves[kind]
	if !known {
		return false, 0
	}
	shelf.making = max(0, shelf.making-1) // the kind may have been forgotten and used again meanwhile
	if err != nil {
		pause = shelf.pause
		shelf.paused, shelf.pause = now.Add(pause), min(2*pause, lastPause)
		if task.CodeOf(err) == task.TooMany { // of any kind
			w.paused = now.Add(yieldPause)
		}
		return false, pause
	}
	shelf.pause = firstPause
	if surplus || len(shelf.ready) >= w.most {
		return false, 0
	}
	shelf.ready = append(shelf.ready, made)
	return true, 0
}

// yield gives up all that is ready. It says whether there is more room by that, or may be soon:
// what is being made cannot be given up before it is there, and a quota takes a while to notice
// that pods are gone.
func (w *warmPods) yield(now time.Time) (stop []*box, more bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.owner == "" {
		return nil, false
	}
	w.paused = now.Add(yieldPause)
	for _, shelf := range w.shelves {
		stop = append(stop, shelf.ready...)
		shelf.ready = nil
	}
	if len(stop) > 0 {
		w.gave = now
	}
	w.surplus = w.making
	return stop, w.making > 0 || now.Sub(w.gave) < freedWithin
}

// forget gives up the pods that start from a folder that is gone.
func (w *warmPods) forget(source string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for kind := range w.shelves {
		if kind.source == source {
			w.drop(kind)
		}
	}
	w.look()
}

// open begins the keeping of pods for an owner. It fails if there is a keeper already.
func (w *warmPods) open(owner string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.owner != "" {
		return task.Errorf(task.Internal, "pods are kept ready already")
	}
	w.owner = owner
	return nil
}

// close ends it and returns what is left.
func (w *warmPods) close() []*box {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for kind := range w.shelves {
		w.drop(kind)
	}
	left := w.old
	w.owner, w.old = "", nil
	return left
}

// KeepWarm implements [sandbox.Warmer].
func (e *Engine) KeepWarm(ctx context.Context, owner string) error {
	if e.config.Warm <= 0 {
		return nil
	}
	if err := e.warm.open(owner); err != nil {
		return err
	}
	var working sync.WaitGroup
	defer func() {
		left := e.warm.close()
		working.Wait()
		e.stopWarm(context.WithoutCancel(ctx), left)
	}()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		stop, begin := e.warm.plan(e.config.Now())
		if len(stop) > 0 {
			working.Go(func() { e.stopWarm(context.WithoutCancel(ctx), stop) })
		}
		for _, kind := range begin {
			working.Go(func() { e.makeWarm(ctx, owner, kind) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.warm.changed:
		case <-ticker.C:
		}
	}
}

// PodReady is what is logged when there is one more pod that is ready.
const PodReady = "kubernetes: pod ready"

// makeWarm makes a pod that is kept ready.
func (e *Engine) makeWarm(ctx context.Context, owner string, kind warmKind) {
	made, err := e.startWarm(ctx, owner, kind)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	kept, pause := e.warm.made(kind, made, err, e.config.Now())
	if kept {
		return
	}
	if err != nil && ctx.Err() == nil {
		e.config.Log.WarnContext(ctx, "kubernetes: failed to keep a pod ready; sandboxes of this image start without until then", "image", kind.image, "again", pause, "error", err)
	}
	e.stopWarm(context.WithoutCancel(ctx), []*box{made})
}

// startWarm starts a pod of a kind that has nothing of any run. The pod has to be stopped, also
// on error.
func (e *Engine) startWarm(ctx context.Context, owner string, kind warmKind) (*box, error) {
	started := e.newBox(sandbox.Spec{Owner: owner, Image: kind.image, Limits: kind.limits, Network: sandbox.NoNetwork, Progress: func(string) {}})
	started.warm = true
	made, err := e.sandboxPod(started.info.ID, started.spec, kind.source)
	if err != nil {
		return started, err
	}
	made.labels[labelWarm] = "true"
	made.spec["activeDeadlineSeconds"] = seconds(e.warmDeadline()) // until it is taken
	steps := newSteps()
	if err := started.bringUp(ctx, made.manifest(), steps); err != nil {
		return started, err
	}
	if err := started.greet(ctx, beginTimeout); err != nil {
		err = started.explain(err)
		return started, err
	}
	steps.done("greeted")
	e.config.Log.DebugContext(ctx, PodReady, append([]any{"pod", started.info.ID, "image", kind.image}, steps.took...)...)
	return started, nil
}

func (e *Engine) stopWarm(ctx context.Context, boxes []*box) {
	var stopping sync.WaitGroup
	for _, one := range boxes {
		stopping.Go(func() {
			if err := one.Stop(ctx); err != nil { // it ends by itself, and Reap removes it
				e.config.Log.WarnContext(ctx, "kubernetes: failed to remove a pod that was kept ready", "pod", one.info.ID, "error", err)
			}
		})
	}
	stopping.Wait()
}

// takeWarm gives a run a pod that is kept ready, or nil if there is none.
func (e *Engine) takeWarm(ctx context.Context, spec sandbox.Spec, from record) *box {
	for ctx.Err() == nil {
		taken := e.warm.take(kindOf(spec, from), e.config.Now())
		if taken == nil {
			return nil
		}
		steps := newSteps()
		claimed, err := taken.claim(ctx, spec)
		steps.done("claimed")
		if err == nil {
			err = taken.equip(ctx, from, takeTimeout)
		}
		if err == nil {
			steps.done("equipped")
			e.config.Log.DebugContext(ctx, "kubernetes: pod taken", append([]any{"pod", taken.info.ID}, steps.took...)...)
			return taken
		}
		e.config.Log.InfoContext(ctx, "kubernetes: failed to use a pod that was kept ready; using another", "pod", taken.info.ID, "error", err)
		e.stopWarm(context.WithoutCancel(ctx), []*box{taken})
		if claimed { // what the run brings may be the reason, which a new pod tells
			return nil
		}
	}
	return nil
}

const (
	// takeTimeout is for the answer of a guest that runs already.
	takeTimeout = 5 * time.Second
	// mostClaims is how often a pod is claimed whose status changes meanwhile.
	mostClaims = 5
)

// claim makes the pod the run's, in one step that fails if anything of the pod has changed
// since it was seen to be ready and nobody's: two can never take the same.
func (b *box) claim(ctx context.Context, spec sandbox.Spec) (claimed bool, err error) {
	e := b.engine
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	for range mostClaims {
		var now pod
		if now, err = e.api.getPod(ctx, b.info.ID); err != nil {
			return false, err
		}
		if now.Metadata.Labels[labelWarm] == "" {
			b.maybe = false // it is somebody else's, and not ours to remove
			b.setLost(&lostError{sandbox.NoLimit, "somebody else has taken the pod"})
			return false, b.lost.Load()
		}
		if !now.running() {
			return false, task.Errorf(task.Unavailable, "the pod does not run any more: %s", now.pending())
		}
		deadline := min(e.config.Deadline+e.config.Now().Sub(b.info.Started), e.warmDeadline()) // it can only become less
		err = e.api.call(ctx, http.MethodPatch, e.api.path("pods", b.info.ID), nil, object{
			"metadata": object{
				"resourceVersion": now.Metadata.ResourceVersion,
				"labels":          object{labelWarm: nil, labelOwner: ownerLabel(spec.Owner), labelNetwork: e.networkLabel(spec.Network)},
				"annotations":     object{noteOwner: spec.Owner, noteTask: spec.Task, noteRun: strconv.FormatInt(spec.Generation, 10)},
			},
			"spec": object{"activeDeadlineSeconds": seconds(deadline)},
		}, nil)
		if err == nil {
			b.spec = spec
			b.info.Owner, b.info.Task, b.info.Generation, b.info.Started = spec.Owner, spec.Task, spec.Generation, e.config.Now().UTC()
			return true, nil
		}
		if !isStatus(err, http.StatusConflict) {
			return false, err
		}
	}
	return false, err
}

// warmDeadline is the deadline of a pod whose run has not begun.
func (e *Engine) warmDeadline() time.Duration {
	return e.config.Deadline + e.config.StartTimeout + warmAge
}

func seconds(of time.Duration) int64 { return int64(of / time.Second) }

// giveWay removes the pods that are kept ready, for a sandbox that finds no room. It says
// whether there is more by that, or may be soon.
func (e *Engine) giveWay(ctx context.Context) bool {
	stop, more := e.warm.yield(e.config.Now())
	if len(stop) > 0 {
		e.config.Log.InfoContext(ctx, "kubernetes: removing pods that were kept ready, to make room for a sandbox", "count", len(stop))
	}
	e.stopWarm(context.WithoutCancel(ctx), stop)
	return more
}

const (
	// freedWithin is how long a quota may take to notice that pods are gone.
	freedWithin = 10 * time.Second
	askAgain    = 100 * time.Millisecond
)

// createGivingWay is create for a pod that somebody waits for. When the quota of the namespace
// refuses it, the pods that are kept ready are removed for it.
func (e *Engine) createGivingWay(ctx context.Context, name string, made object) (now pod, maybe bool, err error) {
	for begun := time.Now(); ; {
		var may bool
		now, may, err = e.create(ctx, name, made)
		maybe = maybe || may // an earlier try may have made it and got no answer
		if task.CodeOf(err) != task.TooMany || !e.giveWay(ctx) || time.Since(begun) > freedWithin {
			return now, maybe, err
		}
		select {
		case <-ctx.Done():
			return now, maybe, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}

// reapWarm removes the pods that processes of the owner kept ready which have ended. One that
// is taken meanwhile stays.
func (e *Engine) reapWarm(ctx context.Context, owner string) error {
	found, err := e.pods(ctx, owner, labelWarm)
	if err != nil {
		return err
	}
	for _, one := range found {
		if e.isMine(one.Metadata.Name) {
			continue
		}
		if err := e.api.removeIf(ctx, one); err != nil {
			return failed(err, "a pod that was kept ready cannot be removed")
		}
	}
	return nil
}
