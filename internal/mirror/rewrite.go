package mirror

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	program "github.com/toryo-dev/toryo/internal/git"
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
// not count, and neither do lines of its message that speak for others.
func (m *Mirrors) made(ctx context.Context, at place, p Publication) (string, error) {
	if known, err := m.commit(ctx, at.dir, madeRef(p.Task, p.Commit)); err != nil || known != "" {
		return known, err
	}
	foreign, err := m.foreign(ctx, at)
	if err != nil {
		return "", err
	}
	args := append(append([]string{"rev-list", "--topo-order", "--reverse", p.Commit, "--not"}, publicRefs(p.Task)...), foreign...)
	output, err := m.git.run(ctx, command{dir: at.dir, args: args})
	if err != nil {
		return "", internal(err, "cannot list the commits that are new")
	}
	made := map[string]string{}
	for line := range strings.Lines(output) {
		commit := strings.TrimSpace(line)
		if made[commit], err = m.rewrite(ctx, at, commit, made, p.CoAuthors); err != nil {
			return "", err
		}
	}
	final, is := made[p.Commit]
	if !is {
		return p.Commit, nil // the forge has it
	}
	err = m.change(ctx, at, p.Generation, func() (string, error) {
		return "", m.update(ctx, at.dir, "update "+madeRef(p.Task, p.Commit)+" "+final+"\n")
	})
	return final, err
}

// speaksForOthers are lines of a message that say what others did.
var speaksForOthers = regexp.MustCompile(`(?im)^[a-z][a-z-]*-by:.*\n?`)

// rewrite makes the commit that takes the place of one of an agent.
func (m *Mirrors) rewrite(ctx context.Context, at place, commit string, made map[string]string, coAuthors []string) (string, error) {
	text, err := m.git.run(ctx, command{dir: at.dir, args: []string{"cat-file", "commit", commit}})
	if err != nil {
		return "", internal(err, "cannot read a commit")
	}
	head, message, _ := strings.Cut(text, "\n\n")
	var tree, parents string
	for line := range strings.Lines(head) {
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); name {
		case "tree":
			tree = value
		case "parent":
			if instead, is := made[value]; is {
				value = instead
			}
			parents += "parent " + value + "\n"
		}
	}
	who := m.options.Identity
	now := time.Now().Unix()
	begin := fmt.Sprintf("tree %s\n%sauthor %s %d +0000\ncommitter %s %d +0000\n", tree, parents, who.author(), now, who.author(), now)
	message = said(message, coAuthors)
	if who.Sign != nil {
		signature, err := who.Sign(ctx, []byte(begin+"\n"+message))
		if err != nil {
			return "", err
		}
		name := "gpgsig "
		if len(commit) == 64 {
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

// said is the message of a commit with who asked for it.
func said(message string, coAuthors []string) string {
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
