package mirror

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Keeper keeps what tasks have in git where every server finds it. See
// [store.Refs].
type Keeper interface {
	KeepRefs(ctx context.Context, refs store.KeptRefs, after int64) (position int64, err error)
	NewestRefs(ctx context.Context, id task.ID) (store.KeptRefs, error)
	RefsSince(ctx context.Context, id task.ID, position int64) ([]store.KeptRefs, error)
}

// keepTries is how often refs are kept again when another server was quicker.
const keepTries = 5

// state is what a task has in this mirror.
type state struct {
	head string            // the ref that HEAD stands for; empty for none
	refs map[string]string // the commit of each ref
}

func (s state) is(kept store.KeptRefs) bool {
	return s.head == kept.Head && maps.Equal(s.refs, kept.Refs)
}

// place is where one task is in one mirror.
type place struct {
	task.Repository
	id  task.ID
	dir string
}

// placeOf is where a task is. The mirror is made if there is none.
func (m *Mirrors) placeOf(ctx context.Context, r task.Repository, id task.ID) (place, error) {
	if !taskName.MatchString(string(id)) {
		return place{}, task.Errorf(task.Invalid, "the task id %q cannot be a git namespace", id)
	}
	dir, err := m.ensure(ctx, r)
	return place{r, id, dir}, err
}

// space is what the names of the task's refs begin with.
func (p place) space() string { return "refs/namespaces/" + string(p.id) + "/" }

// turn is for one who changes the refs of a task at a time.
type turn struct {
	lifecycle.Mutex
	users int // who hold it or wait for it
	// taken is up to where what was kept of the task was taken in: the objects up to there
	// are in the mirror.
	taken int64
}

// wait waits for the turn to change the refs of a task.
func (m *Mirrors) wait(ctx context.Context, id task.ID) (*turn, error) {
	m.mu.Lock()
	t, found := m.turns[id]
	if !found {
		t = &turn{Mutex: lifecycle.NewMutex()}
		m.turns[id] = t
	}
	t.users++
	m.mu.Unlock()
	if err := t.Lock(ctx); err != nil {
		m.leave(id, t)
		return nil, err
	}
	return t, nil
}

// done gives the turn to the next.
func (m *Mirrors) done(id task.ID, t *turn) {
	t.Unlock()
	m.leave(id, t)
}

// leave forgets a turn that nobody wants and that has nothing to spare: there is a task for
// each that was ever begun.
func (m *Mirrors) leave(id task.ID, t *turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.users--; t.users == 0 && t.taken == 0 {
		delete(m.turns, id)
	}
}

// bringIn sees to it that this mirror has what the task has, on whatever server it
// was pushed.
func (m *Mirrors) bringIn(ctx context.Context, p place) error {
	if m.options.Keep == nil {
		return nil
	}
	t, err := m.wait(ctx, p.id)
	if err != nil {
		return err
	}
	defer m.done(p.id, t)
	_, _, err = m.upToDate(ctx, p, t)
	return err
}

// upToDate brings in what was kept, and returns it and what is in the mirror then.
// Its caller has the turn. Without anything kept the mirror stays as it is.
func (m *Mirrors) upToDate(ctx context.Context, p place, t *turn) (newest store.KeptRefs, has state, err error) {
	newest, err = m.options.Keep.NewestRefs(ctx, p.id)
	if task.CodeOf(err) == task.NotFound {
		has, err = m.state(ctx, p)
		return store.KeptRefs{}, has, err
	}
	if err != nil {
		return newest, has, err
	}
	if has, err = m.state(ctx, p); err != nil {
		return newest, has, err
	}
	if len(has.refs) == 0 {
		t.taken = 0 // the mirror may have been removed since
	}
	if !has.is(newest) {
		if err := m.takeIn(ctx, p, t.taken); err != nil {
			return newest, has, err
		}
		if err := m.setRefs(ctx, p, has, newest); err != nil {
			return newest, has, err
		}
		has = state{newest.Head, newest.Refs}
	}
	t.taken = newest.Position
	return newest, has, nil
}

// state reads what the task has.
func (m *Mirrors) state(ctx context.Context, p place) (state, error) {
	output, err := m.git.run(ctx, command{dir: p.dir, args: []string{
		"for-each-ref", "--format=" + program.RefFormat, p.space(), publishedRef(p.id, ""), seededRef(p.id, ""), madeRef(p.id, ""),
	}})
	if err != nil {
		return state{}, internal(err, "cannot read the mirror")
	}
	has := state{refs: map[string]string{}}
	for line := range strings.Lines(output) {
		switch ref, err := program.ParseRef(line); {
		case err != nil:
			return state{}, err
		case ref.Target == "":
			has.refs[ref.Name] = ref.Hash
		case ref.Name == p.space()+"HEAD":
			has.head = ref.Target
		}
	}
	return has, nil
}

// takeIn takes in the objects that were kept after the position.
func (m *Mirrors) takeIn(ctx context.Context, p place, after int64) error {
	all, err := m.options.Keep.RefsSince(ctx, p.id, after)
	if err != nil {
		return err
	}
	for _, kept := range all {
		if err := m.haveBase(ctx, p, kept.Base); err != nil {
			return err
		}
		if len(kept.Pack) == 0 {
			continue
		}
		if err := m.addPack(ctx, p, kept.Pack); err != nil {
			return err
		}
	}
	return nil
}

// haveBase fetches a commit of the forge, if it is not here whole, even when no branch
// leads to it any more.
func (m *Mirrors) haveBase(ctx context.Context, p place, commit string) error {
	if commit == "" || m.has(ctx, p.dir, commit) {
		return nil
	}
	if err := m.Fetch(ctx, p.Repository, 0); err != nil || m.has(ctx, p.dir, commit) {
		return err
	}
	return m.fetchRefs(ctx, p.Repository, p.dir, commit)
}

// has reports whether the commit is here with all that it leads to. What no ref leads to may be here in
// part: objects are removed by packs, see removeCruft. When it takes too long to tell, the commit is
// fetched.
func (m *Mirrors) has(ctx context.Context, dir, commit string) bool {
	ctx, cancel := context.WithTimeout(ctx, longestCheck)
	defer cancel()
	return m.whole(ctx, dir, commit+"^{commit}") == nil
}

// whole fails unless all that the commits lead to is here.
func (m *Mirrors) whole(ctx context.Context, dir string, commits ...string) error {
	_, err := m.git.run(ctx, command{
		dir: dir, input: strings.NewReader(strings.Join(commits, "\n") + "\n"),
		args: []string{
			"-c", "core.commitGraph=false", // which knows commits that are not there
			"rev-list", "--objects", "--stdin", "--not", "--all", "--quiet",
		},
	})
	return err
}

// addPack adds objects to the mirror. A fetch that fails meanwhile must not take
// the unfinished pack for one of its own.
func (m *Mirrors) addPack(ctx context.Context, p place, pack []byte) error {
	e := m.entry(p.Repository)
	e.packing.RLock()
	defer e.packing.RUnlock()
	_, err := m.git.run(ctx, command{dir: p.dir, args: []string{"index-pack", "--stdin", "--fix-thin"}, input: bytes.NewReader(pack)})
	return internal(err, "cannot take in what task "+string(p.id)+" has pushed")
}

// setRefs makes the refs of the task what they are to be, once everything that
// they lead to is here.
func (m *Mirrors) setRefs(ctx context.Context, p place, has state, want store.KeptRefs) error {
	if err := m.whole(ctx, p.dir, slices.Sorted(maps.Values(want.Refs))...); err != nil {
		return internal(err, "something of what task "+string(p.id)+" has pushed is missing")
	}
	// First what goes: "a" may make room for "a/b".
	var gone, there strings.Builder
	for _, ref := range slices.Sorted(maps.Keys(has.refs)) {
		if want.Refs[ref] == "" {
			gone.WriteString("delete " + ref + "\n")
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(want.Refs)) {
		if has.refs[ref] != want.Refs[ref] {
			there.WriteString("update " + ref + " " + want.Refs[ref] + "\n")
		}
	}
	if err := errors.Join(m.update(ctx, p.dir, gone.String()), m.update(ctx, p.dir, there.String())); err != nil {
		return err
	}
	return m.setHead(ctx, p, want.Head)
}

// setHead makes a ref the HEAD of the task.
func (m *Mirrors) setHead(ctx context.Context, p place, ref string) error {
	if ref == "" {
		return nil
	}
	_, err := m.git.run(ctx, command{dir: p.dir, args: []string{"symbolic-ref", p.space() + "HEAD", ref}})
	return internal(err, "cannot make "+ref+" the HEAD of task "+string(p.id))
}

// change changes the refs of a task and keeps them. What do returns is a commit
// that the forge has; empty means the one that it was before. When another server
// has changed them too, it is done again.
func (m *Mirrors) change(ctx context.Context, p place, generation int64, do func() (base string, err error)) error {
	t, err := m.wait(ctx, p.id)
	if err != nil {
		return err
	}
	defer m.done(p.id, t)
	if m.options.Keep == nil {
		_, err := do()
		return err
	}
	for range keepTries {
		var before store.KeptRefs
		if before, _, err = m.upToDate(ctx, p, t); err != nil {
			return err
		}
		var base string
		if base, err = do(); err != nil {
			return err
		}
		var after state
		if after, err = m.state(ctx, p); err != nil {
			return err
		}
		if err = m.keep(ctx, p, keeping{generation, base, "", before, after}); task.CodeOf(err) != task.Conflict {
			return err
		}
	}
	return err
}

// keeping is what is to be kept of a task.
type keeping struct {
	generation int64
	base       string // a commit that the forge has; empty for the one before
	objects    string // where objects are that are not in the mirror yet; empty for nowhere
	before     store.KeptRefs
	after      state
}

// keep keeps the refs of a task, unless they are as they were.
func (m *Mirrors) keep(ctx context.Context, p place, k keeping) (err error) {
	if k.before.Position > 0 && k.after.is(k.before) {
		return nil
	}
	if k.base == "" {
		k.base = k.before.Base
	}
	if k.base == "" { // what is there was pushed before anything was kept
		if branch := strings.TrimPrefix(k.after.head, p.space()); branch != "" {
			if k.base, err = m.commit(ctx, p.dir, branch); err != nil {
				return err
			}
		}
	}
	pack, err := m.pack(ctx, p, k)
	if err != nil {
		return err
	}
	_, err = m.options.Keep.KeepRefs(ctx, store.KeptRefs{
		Task: p.id, Generation: k.generation, Head: k.after.head, Base: k.base, Refs: k.after.refs, Pack: pack,
	}, k.before.Position)
	return err
}

// pack packs the objects that are new; nil if none are.
func (m *Mirrors) pack(ctx context.Context, p place, k keeping) ([]byte, error) {
	known := slices.Collect(maps.Values(k.before.Refs))
	if k.base != "" {
		known = append(known, k.base)
	}
	input := strings.Join(slices.Collect(maps.Values(k.after.refs)), "\n") + "\n--not\n" + strings.Join(known, "\n") + "\n"
	packed := &bounded{room: m.options.MaxKept}
	_, err := m.git.Run(ctx, program.Command{
		Dir: p.dir, Objects: k.objects, Input: strings.NewReader(input), Output: packed,
		Args: []string{"pack-objects", "--revs", "--thin", "--stdout", "--quiet", "--delta-base-offset", "--threads=1"},
	})
	if packed.full {
		return nil, task.Errorf(task.TooLarge, "what is new in the push is more than %d MB", m.options.MaxKept>>20)
	}
	if err != nil {
		return nil, internal(err, "cannot pack what task "+string(p.id)+" has pushed")
	}
	const counted = 12 // a pack begins with a sign, a version, and how many objects it has
	if data := packed.data; len(data) >= counted && binary.BigEndian.Uint32(data[8:counted]) > 0 {
		return data, nil
	}
	return nil, nil
}

// bounded takes what it has room for, and fails then.
type bounded struct {
	data []byte
	room int64
	full bool
}

func (b *bounded) Write(more []byte) (int, error) {
	if int64(len(b.data)+len(more)) > b.room {
		b.full = true
		return 0, task.Errorf(task.TooLarge, "there is no more room")
	}
	b.data = append(b.data, more...)
	return len(more), nil
}
