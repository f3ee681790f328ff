package harbor

import (
	"fmt"
	"path"
	"strings"

	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/sandbox"
)

// ownPrograms has a shell find programs and their libraries where the system has them. Those that the
// image names may be in the working directory, and so be files of the work.
const ownPrograms = "unset LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT GCONV_PATH\nPATH=/usr/bin:/bin:/usr/sbin:/sbin\n"

// ending is how a script begins whose container is to end with the program that has started it, also
// if that is killed: standard input ends then. A process in the background waits for that, and ends
// all but the first process of the container, which nothing in it can end. What runs afterwards has
// no input, as without this.
const ending = "exec 3<&0 </dev/null\n" +
	"(\n" + ownPrograms + "while read -r nothing; do :; done <&3\nwhile :; do kill -9 -1; sleep 1; done\n) >/dev/null 2>&1 &\n" +
	"exec 3<&-\n"

// solving is the script that becomes the solution.
func solving(workdir string) string {
	const program = solutionPath + "/" + taskset.SolutionScript
	return ending + "cd " + sandbox.Quote(workdir) + " && chmod +x " + program + " && exec " + program + "\n"
}

// scoring is the script that puts the work in its place and then becomes the tests, which are the
// first process of the container: no other can kill it, and all others end with it. The tests come
// after the work, and whatever lies where the reward is read from goes before they begin. Until then
// no program of the work may run: only the tests have the image's own variables.
func scoring(workdir string, changes []source.Change) string {
	var script strings.Builder
	fmt.Fprintf(&script, "%sset -e\ncd %s\n(\n%s", ending, sandbox.Quote(workdir), ownPrograms)
	for _, change := range changes {
		fmt.Fprintf(&script, "rm -rf -- %s\n", sandbox.Quote(change.Name))
	}
	for i, change := range changes {
		if change.IsGone() {
			continue
		}
		if folder := path.Dir(change.Name); folder != "." {
			fmt.Fprintf(&script, "mkdir -p -- %s\n", sandbox.Quote(folder))
		}
		fmt.Fprintf(&script, "mv -- %s/%d %s\n", stagePath, i, sandbox.Quote(change.Name))
	}
	fmt.Fprintf(&script, "rm -rf %s %s %s %s\nmkdir -p %s %s/agent %s/artifacts\nmv %s %s\nchmod +x %s/%s\n)\nexec %s/%s\n",
		stagePath, startPath, testsPath, rewardPath, rewardPath, logsPath, logsPath, packedPath, testsPath, testsPath, taskset.TestScript, testsPath, taskset.TestScript)
	return script.String()
}
