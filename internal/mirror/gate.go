package mirror

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// preReceive is run by git when it has all objects of a push and before it moves
// any ref. It tells us which refs are to be moved, over descriptor 3, and waits
// on descriptor 4 for what we say.
const preReceive = `#!/bin/sh
cat >&3 && echo end >&3 && IFS= read -r answer <&4 && [ "$answer" = yes ] && exit 0
echo "the push is refused: the run is over, or it moves refs that are not its own" >&2
exit 1
`

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
func (g *gate) watch(ctx context.Context, again func(context.Context) error) {
	g.closeTheirs()
	g.watching.Go(func() {
		lines := bufio.NewScanner(g.asks)
		moves := 0
		good := true
		for lines.Scan() {
			if lines.Text() == "end" {
				answer := "no\n"
				if good && moves <= maxMoves && again(ctx) == nil {
					answer = "yes\n"
				}
				_, _ = g.answers.WriteString(answer) // a hook that hears nothing refuses
				return
			}
			moves++
			good = good && mayMove(lines.Text())
		}
	})
}

// mayMove reports whether an agent may move the ref. In its namespace it may do
// as it likes, but with refs that git itself gives a meaning to it may not.
func mayMove(line string) bool {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return false
	}
	for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/toryo/"} {
		if strings.HasPrefix(fields[2], prefix) {
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
