package mirror

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/task"
)

// preReceive is run by git when it has all objects of a push and before it moves
// any ref. It tells us where these objects are and which refs are to be moved,
// over descriptor 3, and waits on descriptor 4 for what we say. It uses what is built
// into the shell only: the search path may have nothing but git.
const preReceive = `#!/bin/sh
answer=
say() { printf '%s\n' "$1" >&3; }
say "objects $GIT_QUARANTINE_PATH" && while IFS= read -r move; do say "$move" || exit 1; done && say end && IFS= read -r answer <&4
[ "$answer" = yes ] && exit 0
echo "the push is refused: ${answer:-the server has trouble of its own}" >&2
exit 1
`

// What agents are told of a push that is refused. They tell by it whether they
// may try again.
const (
	refusedOver    = "the run is over, or it moves refs that are not its own"
	refusedTrouble = "the server has trouble of its own"
	refusedLarge   = "it is larger than what is kept for other servers"
)

// refusal is what an agent is told of an error.
func refusal(err error) string {
	switch task.CodeOf(err) {
	case task.LeaseLost, task.StaleGeneration, task.Forbidden, task.Unauthorized, task.NotFound, task.Invalid:
		return refusedOver
	case task.TooLarge:
		return refusedLarge
	default:
		return refusedTrouble
	}
}

// refMove is a ref that a push is to move. Hashes of zeros stand for no commit.
type refMove struct{ from, to, ref string }

// asked is what the hook tells of a push.
type asked struct {
	objects string // where its objects are
	moves   []refMove
}

// maxMoves is how many refs one push may move.
const maxMoves = 200

// gate lets a push through or not, when git asks by its hook.
type gate struct {
	asks, answers *os.File   // our ends of the pipes
	theirs        []*os.File // git's ends
	watching      sync.WaitGroup
}

// openGate makes the pipes and gives their ends to the command, which must not
// have other files.
func openGate(cmd *exec.Cmd) (*gate, error) {
	asks, theirAsks, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	theirAnswers, answers, err := os.Pipe()
	if err != nil {
		_, _ = asks.Close(), theirAsks.Close()
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{theirAsks, theirAnswers}
	return &gate{asks: asks, answers: answers, theirs: cmd.ExtraFiles}, nil
}

// watch answers the hook, which asks once at most. The command has been started.
func (g *gate) watch(ctx context.Context, decide func(context.Context, asked) error) {
	g.closeTheirs()
	g.watching.Go(func() {
		push, whole, err := g.listen()
		if !whole {
			return
		}
		answer := "yes"
		if err == nil {
			err = decide(ctx, push)
		}
		if err != nil {
			answer = refusal(err)
		}
		_, _ = g.answers.WriteString(answer + "\n") // a hook that hears nothing refuses
	})
}

// listen reads what the hook says, and whether it has said all of it.
func (g *gate) listen() (push asked, whole bool, err error) {
	lines := bufio.NewScanner(g.asks)
	for lines.Scan() {
		line := lines.Text()
		if line == "end" {
			return push, true, err
		}
		if objects, is := strings.CutPrefix(line, "objects "); is {
			push.objects = objects
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 || !mayMove(fields[2]) || len(push.moves) == maxMoves {
			err = task.Errorf(task.Forbidden, "a push wants to move %q", line)
			continue
		}
		push.moves = append(push.moves, refMove{fields[0], fields[1], fields[2]})
	}
	return push, false, err
}

// mayMove reports whether an agent may move the ref. In its namespace it may do
// as it likes, but with refs that git itself gives a meaning to it may not.
func mayMove(ref string) bool {
	for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/toryo/"} {
		if strings.HasPrefix(ref, prefix) {
			return true
		}
	}
	return false
}

func (g *gate) closeTheirs() {
	for _, file := range g.theirs {
		_ = file.Close()
	}
	g.theirs = nil
}

// close ends the gate after the command has ended.
func (g *gate) close() {
	g.closeTheirs()
	_, _ = g.answers.Close(), g.asks.Close()
	g.watching.Wait()
}
