package gitlab

import (
	"context"
	"net/http"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

var _ forge.Triage = (*Forge)(nil)

var (
	// assignedNote is what GitLab notes when assignees are added: "assigned to @a",
	// "assigned to @a and unassigned @b", "assigned to @a, @b, and @c". Only at the
	// beginning: other notes quote titles and lists that people wrote.
	assignedNote = lazyregexp.New(`^(?:re)?assigned to ((?:@[\w.-]+(?:,? and |, )?)+)`)
	noteLogin    = lazyregexp.New(`@([\w.-]+)`)
)

// AssignedBy returns who assigned the login last, by the notes that GitLab writes itself.
// Where there is none, it was done when the item was opened, by who opened it.
func (f *Forge) AssignedBy(ctx context.Context, key task.Key, login string) (string, error) {
	notes, err := f.notes(ctx, key)
	if err != nil {
		return "", err
	}
	by := ""
	for _, note := range notes { // oldest first
		if note.System && assigns(note.Body, login) {
			by = commentOf(note).Author
		}
	}
	if by != "" {
		return by, nil
	}
	item, err := f.Item(ctx, key)
	return item.Author, err
}

// assigns reports whether a note of GitLab's own says that the login was assigned.
func assigns(body, login string) bool {
	for _, found := range assignedNote.FindAllStringSubmatch(body, -1) {
		for _, name := range noteLogin.FindAllStringSubmatch(found[1], -1) {
			if task.SameLogin(name[1], login) {
				return true
			}
		}
	}
	return false
}

// MayTriage reports whether a login is a member of the project or of a group above it as
// a planner or more: guests and strangers can label and assign only what they open.
func (f *Forge) MayTriage(ctx context.Context, repository, login string) (bool, error) {
	if err := checkRepository(repository); err != nil {
		return false, err
	}
	who, found, err := f.find(ctx, login)
	if err != nil || !found || !who.active {
		return false, err
	}
	member, _, err := f.client.ProjectMembers.GetInheritedProjectMember(repository, who.id, in(ctx))
	if status(err) == http.StatusNotFound {
		_, err := f.project(ctx, repository)
		return false, err
	}
	if err == nil && (member == nil || member.ID != who.id) {
		err = errNonsense
	}
	if err != nil {
		return false, callError(err, "read what %s may do in %s", login, repository)
	}
	return member.AccessLevel >= gl.PlannerPermissions, nil
}
