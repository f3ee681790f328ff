package mirror

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"unicode/utf8"

	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// preReceive is run by git when it has all objects of a push and before it moves
// any ref. It writes where these objects are and which refs are to be moved to
// descriptor 3, and reads the decision from descriptor 4: "yes", or the line that
// the agent is shown. It uses what is built into the shell only: the search path
// may have nothing but git.
var preReceive = `#!/bin/sh
answer=
send() { printf '%s\n' "$1" >&3; }
send "objects $GIT_QUARANTINE_PATH" && while IFS= read -r move; do send "$move" || exit 1; done && send end && IFS= read -r answer <&4
[ "$answer" = yes ] && exit 0
printf '%s\n' "${answer:-` + refusedPush(task.Errorf(task.Unavailable, "no answer")) + `}" >&2
exit 1
`

// refusal is what an agent is shown of an error: the code by which it decides
// whether to try again, and a text for people. It does not have the text of the
// error, which may have something in it that is not the agent's business.
func refusal(err error) (code task.Code, text string) {
	switch task.CodeOf(err) {
	case task.LeaseLost, task.StaleGeneration, task.Forbidden, task.Unauthorized, task.NotFound, task.Invalid:
		return task.LeaseLost, "the run is over, or it moves refs that are not its own"
	case task.TooLarge:
		return task.TooLarge, "it is larger than what is kept for other servers"
	default:
		return task.Unavailable, "the server has trouble of its own"
	}
}

// refusedPush is the line that an agent is shown when its push is refused.
func refusedPush(err error) string {
	code, text := refusal(err)
	return program.ErrorLine(code, "the push is refused: "+text)
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
			answer = refusedPush(err)
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
		fields := strings.Split(line, " ")                                                                     // names may have other spaces
		if len(fields) != 3 || !mayMove(fields[2]) || len(push.moves) == maxMoves || !utf8.ValidString(line) { // the database keeps names as text
			err = task.Errorf(task.Forbidden, "a push wants to move %q", line)
			continue
		}
		push.moves = append(push.moves, refMove{fields[0], fields[1], fields[2]})
	}
	return push, false, err
}

// mayMove reports whether an agent may move the ref. In its namespace it may do
// as it likes, but with refs that git itself gives a meaning to it may not, nor with those
// that people were promised.
func mayMove(ref string) bool {
	if strings.HasPrefix(ref+"/", task.KeptRefs) { // a ref with the name of the folder would leave no room for it
		return false
	}
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
