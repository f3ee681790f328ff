package mirror

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Identity is who the commits that are published are by.
type Identity struct {
	Name, Email string
	// Sign makes the signature of a commit; nil means that none is made.
	Sign func(ctx context.Context, text []byte) (string, error)
}

// author is the identity as git writes it.
func (i Identity) author() string { return i.Name + " <" + i.Email + ">" }

// publicRefs are arguments of rev-list that name what the forge has, or had when the
// task was given it. An agent can move none of these refs.
func publicRefs(id task.ID) []string {
	return []string{"--branches", "--tags", "--glob=" + seededRef(id, "*")}
}

// seededRef keeps a commit of the forge that a task was given. The base may be rewritten
// on the forge while the task goes on.
func seededRef(id task.ID, commit string) string { return "refs/seeded/" + string(id) + "/" + commit }

// madeRef keeps which commit was made of one that an agent has pushed, so that
// publishing again makes no other.
func madeRef(id task.ID, commit string) string { return "refs/made/" + string(id) + "/" + commit }

// made is the commit that is published in place of the one that an agent has pushed: the
// same files, on top of the same, by the bot. Who an agent says that the author is does
// not count, and neither do lines of its message that speak for others. It fails with
// TooLarge if more commits are new than are looked at.
func (m *Mirrors) made(ctx context.Context, at place, p Publication) (string, error) {
	if known, err := m.commit(ctx, at.dir, madeRef(p.Task, p.Commit)); err != nil || known != "" {
		return known, err
	}
	pushed, err := m.pushed(ctx, at, p)
	if err != nil {
		return "", err
	}
	if len(pushed) == 0 {
		return p.Commit, nil // the forge has it
	}
	before, err := m.pushedAs(ctx, at)
	if err != nil {
		return "", err
	}
	made := map[string]string{}
	for known, of := range before {
		made[of] = known
	}
	var updates strings.Builder
	for _, one := range pushed {
		if made[one.hash] != "" { // the forge may have it in this form
			continue
		}
		if made[one.hash], err = m.rewrite(ctx, at, one, made, p.CoAuthors); err != nil {
			return "", err
		}
		fmt.Fprintf(&updates, "update %s %s\n", madeRef(p.Task, one.hash), made[one.hash])
	}
	err = m.change(ctx, at, p.Generation, func() (string, error) { return "", m.update(ctx, at.dir, updates.String()) })
	return made[p.Commit], err
}

// pushedAs tells of the commits that were made for a task which ones of the agent they
// were made of.
func (m *Mirrors) pushedAs(ctx context.Context, at place) (map[string]string, error) {
	output, err := m.git.run(ctx, command{dir: at.dir, args: []string{"for-each-ref", "--format=%(objectname) %(refname)", madeRef(at.id, "")}})
	if err != nil {
		return nil, internal(err, "cannot list the commits that were made")
	}
	all := map[string]string{}
	for line := range strings.Lines(output) {
		made, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all[made] = strings.TrimPrefix(ref, madeRef(at.id, ""))
	}
	return all, nil
}

// pushedCommit is a commit of an agent, as git reads it.
type pushedCommit struct {
	hash, tree string
	parents    []string
}

// pushed lists the commits that the forge does not have, parents first. What their tree
// and parents are is git's to say: a commit can have further lines that look the same.
func (m *Mirrors) pushed(ctx context.Context, at place, p Publication) ([]pushedCommit, error) {
	foreign, err := m.foreign(ctx, at)
	if err != nil {
		return nil, err
	}
	args := []string{"rev-list", "--topo-order", "--reverse", "--no-commit-header", "--format=%H %T %P", "--max-count=" + strconv.Itoa(inspect.MaxCommits+1)}
	args = append(append(append(args, p.Commit, "--not"), publicRefs(p.Task)...), foreign...)
	output, err := m.git.run(ctx, command{dir: at.dir, args: args})
	if err != nil {
		return nil, internal(err, "cannot list the commits that are new")
	}
	var all []pushedCommit
	for line := range strings.Lines(output) {
		parts := strings.Fields(line)
		if len(parts) < 2 {
			return nil, task.Errorf(task.Internal, "git describes a commit in %d words", len(parts))
		}
		all = append(all, pushedCommit{parts[0], parts[1], parts[2:]})
	}
	if len(all) > inspect.MaxCommits {
		return nil, task.Errorf(task.TooLarge, "more than %d commits are new", inspect.MaxCommits)
	}
	return all, nil
}

// maxCommit is how many bytes a commit may have.
const maxCommit = 1 << 20

// message reads what a commit of an agent says. A commit that has headers which git
// does not write, or has them in another order, is Unsafe: other programs may read it
// in another way than git.
func (m *Mirrors) message(ctx context.Context, at place, commit string) (string, error) {
	size, err := m.git.run(ctx, command{dir: at.dir, args: []string{"cat-file", "-s", commit}})
	if err != nil {
		return "", internal(err, "cannot read a commit")
	}
	if bytes, err := strconv.ParseInt(strings.TrimSpace(size), 10, 64); err != nil || bytes > maxCommit {
		return "", task.Errorf(task.TooLarge, "the message of commit %.10s is too long", commit)
	}
	text, err := m.git.run(ctx, command{dir: at.dir, args: []string{"cat-file", "commit", commit}})
	if err != nil {
		return "", internal(err, "cannot read a commit")
	}
	head, message, _ := strings.Cut(text, "\n\n")
	if !usualHeaders.MatchString(strings.TrimSuffix(head, "\n") + "\n") {
		return "", task.Errorf(task.Unsafe, "commit %.10s has headers that git does not write", commit)
	}
	return message, nil
}

// usualHeaders are those of commits that git writes. Lines that go on begin with a space.
var usualHeaders = lazyregexp.New(`\Atree [0-9a-f]+\n(?:parent [0-9a-f]+\n)*author [^\n]*\ncommitter [^\n]*\n` +
	`(?:mergetag [^\n]*\n(?: [^\n]*\n)*)*(?:encoding [^\n]*\n)?(?:gpgsig(?:-sha256)? [^\n]*\n(?: [^\n]*\n)*)*(?:encoding [^\n]*\n)?\z`)

// speaksForOthers are lines of a message that say what others did.
var speaksForOthers = lazyregexp.New(`(?im)^[a-z][a-z0-9-]*-by[ \t]*:.*\n?`)

// rewrite makes the commit that takes the place of one of an agent.
func (m *Mirrors) rewrite(ctx context.Context, at place, pushed pushedCommit, made map[string]string, coAuthors []string) (string, error) {
	message, err := m.message(ctx, at, pushed.hash)
	if err != nil {
		return "", err
	}
	var parents strings.Builder
	for _, parent := range pushed.parents {
		if instead, is := made[parent]; is {
			parent = instead
		}
		parents.WriteString("parent " + parent + "\n")
	}
	who := m.options.Identity
	now := time.Now().Unix()
	begin := fmt.Sprintf("tree %s\n%sauthor %s %d +0000\ncommitter %s %d +0000\n", pushed.tree, parents.String(), who.author(), now, who.author(), now)
	message = commitMessage(message, coAuthors)
	if who.Sign != nil {
		signature, err := who.Sign(ctx, []byte(begin+"\n"+message))
		if err != nil {
			return "", err
		}
		name := "gpgsig "
		if len(pushed.hash) == 64 {
			name = "gpgsig-sha256 "
		}
		begin += name + strings.ReplaceAll(strings.TrimSpace(signature), "\n", "\n ") + "\n"
	}
	var output bytes.Buffer
	_, err = m.git.Run(ctx, program.Command{
		Dir: at.dir, Args: []string{"hash-object", "-t", "commit", "-w", "--stdin"}, Input: strings.NewReader(begin + "\n" + message), Output: &output,
	})
	return strings.TrimSpace(output.String()), internal(err, "cannot make a commit")
}

// commitMessage is the message of a commit, with lines that name its co-authors.
func commitMessage(message string, coAuthors []string) string {
	message = strings.ToValidUTF8(strings.ReplaceAll(message, "\x00", ""), "\uFFFD")
	message = strings.TrimSpace(speaksForOthers.ReplaceAllString(message, ""))
	if message == "" {
		message = "Work"
	}
	var trailers strings.Builder
	for _, person := range coAuthors {
		trailers.WriteString("\nCo-authored-by: " + person)
	}
	if trailers.Len() > 0 {
		message += "\n" + trailers.String()
	}
	return message + "\n"
}
