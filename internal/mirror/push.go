package mirror

import (
	"context"
	"maps"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// pushing is one push of an agent.
type pushing struct {
	mirrors *Mirrors
	place
	holder Holder
	again  func(context.Context) error // says whether the run goes on
	turn   *turn                       // held from when the push is kept until git has moved the refs
}

// decide is asked when git has all objects and is about to move the refs. What it
// accepts is kept already: whatever happens to this server then, the agent was not
// told of anything that is lost.
func (p *pushing) decide(ctx context.Context, push asked) (err error) {
	m := p.mirrors
	if err := p.again(ctx); err != nil || m.options.Keep == nil {
		return err
	}
	if p.turn, err = m.wait(ctx, p.id); err != nil {
		return err
	}
	before, has, err := m.upToDate(ctx, p.place, p.turn)
	if err != nil {
		return err
	}
	after, err := p.moved(has, push.moves)
	if err != nil {
		return err
	}
	if err := p.checkObjects(push.objects); err != nil {
		return err
	}
	err = m.keep(ctx, p.place, keeping{generation: p.holder.Generation, objects: push.objects, before: before, after: after})
	if err != nil {
		m.options.Log.WarnContext(ctx, "failed to store a push for other servers", "task", p.id, "error", err)
	}
	return err
}

// moved is what the task has after the moves. Git would refuse one from another
// commit than there is, but only after it was kept.
func (p *pushing) moved(has state, moves []refMove) (state, error) {
	after := state{has.head, maps.Clone(has.refs)}
	for _, move := range moves {
		ref := p.space() + move.ref
		if after.refs[ref] != commitOrNone(move.from) {
			return after, task.Errorf(task.Conflict, "%s is not at %s any more", move.ref, move.from)
		}
		if after.refs[ref] = commitOrNone(move.to); after.refs[ref] == "" {
			delete(after.refs, ref)
		}
	}
	return after, nil
}

// commitOrNone is a hash, or nothing if it has zeros only.
func commitOrNone(hash string) string {
	if strings.Trim(hash, "0") == "" {
		return ""
	}
	return hash
}

// checkObjects makes sure that the objects of the push are in the mirror's folder.
func (p *pushing) checkObjects(folder string) error {
	if folder == "" {
		return nil
	}
	within, err := filepath.Rel(filepath.Join(p.dir, "objects"), folder)
	if err != nil || !filepath.IsLocal(within) {
		return task.Errorf(task.Internal, "git has the objects of a push in %s", folder)
	}
	return nil
}

// end lets others change the refs of the task.
func (p *pushing) end() {
	if p.turn != nil {
		p.mirrors.done(p.id, p.turn)
	}
}
