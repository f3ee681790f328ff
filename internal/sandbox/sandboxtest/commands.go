package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

func testCommands(t *testing.T, h Harness) {
	box := start(t, h)
	var streamed bytes.Buffer
	result := runCommand(t, box, sandbox.Command{Text: "echo out; echo err >&2; (exit 7)", Output: func(stream sandbox.Stream, data []byte) {
		streamed.WriteByte('0' + byte(stream))
		streamed.Write(data)
	}})
	if string(result.Stdout) != "out\n" || result.ExitCode != 7 || result.Exceeded != "" || result.Cut {
		t.Errorf("got %+v", result)
	}
	if !bytes.Contains(result.Log, []byte("out\n")) || !bytes.Contains(result.Log, []byte("err\n")) {
		t.Errorf("the log is %q", result.Log)
	}
	if !strings.Contains(streamed.String(), "1out\n") || !strings.Contains(streamed.String(), "2err\n") {
		t.Errorf("streamed were %q", streamed.String())
	}
	if result := run(t, box, "kill -TERM $$"); result.ExitCode != 143 {
		t.Errorf("ended by a signal it has exit code %d, want 143", result.ExitCode)
	}
	if result := run(t, box, "if then fi ((("); result.ExitCode == 0 {
		t.Error("a syntax error ended with 0")
	}
	wantOutput(t, box, "touch made && ls made", "made\n")
	wantOutput(t, box, "", "")
	wantOutput(t, box, "cat <<'x'\nit's \"here\" $HOME\nx", "it's \"here\" $HOME\n")
}

func testShellState(t *testing.T, h Harness) {
	box := start(t, h)
	run(t, box, "mkdir -p 'a b/c' && cd 'a b/c' && export ONE='it is \"1\"\nand more' && two=2 && umask 027")
	wantOutput(t, box, `basename "$PWD"; printf '%s|%s|' "$ONE" "$(umask)"`, "c\nit is \"1\"\nand more|0027|")
	run(t, box, "greet() { echo \"hello $1\"; }; shopt -s expand_aliases; alias hi='echo hi'; list=(x 'y z'); set -o pipefail")
	wantOutput(t, box, "greet you; hi; echo \"${list[1]}\" $two; false | true; echo $?", "hello you\nhi\ny z 2\n1\n")
	run(t, box, "set +o pipefail; unset ONE; cd ../..")
	wantOutput(t, box, `echo "[$ONE]"; ls -d a*; echo $#`, "[]\na b\n0\n")
	run(t, box, "mkdir -p venv/bin && echo 'export VENV=on; PATH=$PWD/venv/bin:$PATH' > venv/bin/activate && printf '#!/bin/sh\\necho tool\\n' > venv/bin/mytool && chmod +x venv/bin/mytool")
	run(t, box, ". venv/bin/activate")
	wantOutput(t, box, "echo $VENV; mytool", "on\ntool\n")
}

// testFreshShell runs a command that knows nothing of those before it, whatever they did
// to their shell, and leaves nothing to those after it.
func testFreshShell(t *testing.T, h Harness) {
	box := start(t, h)
	fresh := func(text, want string) {
		t.Helper()
		result, err := box.Run(t.Context(), sandbox.Command{Text: text, Timeout: time.Minute, Fresh: true})
		if err != nil || result.ExitCode != 0 || string(result.Stdout) != want {
			t.Errorf("%s: exit %d, %q, want %q: %v", text, result.ExitCode, result.Log, want, err)
		}
	}
	run(t, box, `mkdir -p sub && echo "echo real" >check.sh && cd sub
		sh() { echo forged; }
		cd() { :; }
		exec() { echo forged; }
		export -f sh 2>/dev/null
		export BASH_ENV=/dev/null LEFT=left
		alias echo="echo forged"
		shopt -s expand_aliases 2>/dev/null
		trap "echo forged" DEBUG EXIT
		set -n 2>/dev/null; :`)
	fresh("sh check.sh", "real\n")
	fresh(`echo "$LEFT$BASH_ENV"`, "\n")
	fresh("ls", "check.sh\nsub\n")
	fresh("mkdir -p other && cd other && export MORE=more && more() { :; }", "")
	fresh(`echo "$MORE"; ls; ls -A other`, "\ncheck.sh\nother\nsub\n")
}

// A command that names its folder starts there, whatever the others did, and leaves the
// session where it was. Sessions do not share anything.
func testFolders(t *testing.T, h Harness) {
	box := start(t, h)
	in := func(folder, session, text string) string {
		t.Helper()
		return string(runCommand(t, box, sandbox.Command{Text: text, Folder: folder, Session: session, Timeout: time.Minute}).Stdout)
	}
	run(t, box, "mkdir -p \"it's a/b\" other && cd other && cd() { echo nonsense; }")
	for range 2 {
		if got := in("it's a/b", "", "pwd | sed 's,.*/it,it,'; builtin cd ..; export SEEN=1"); got != "it's a/b\n" {
			t.Errorf("it started in %q", got)
		}
		wantOutput(t, box, `echo "${PWD##*/} $SEEN"`, "other 1\n")
	}
	if got := in(".", "", "ls -d o*"); got != "other\n" {
		t.Errorf("at the top there is %q", got)
	}
	if got := in("other", "two", `echo "[$SEEN]${PWD##*/}"; export SEEN=2`); got != "[]other\n" {
		t.Errorf("another session begins with %q", got)
	}
	if got := in("", "two", `ls -d o*; echo $SEEN`); got != "other\n2\n" {
		t.Errorf("another session goes on with %q", got)
	}
	wantOutput(t, box, `echo "${PWD##*/} $SEEN"`, "other 1\n")
	result := runCommand(t, box, sandbox.Command{Text: "echo ran", Folder: "nowhere"})
	if result.ExitCode == 0 || len(result.Stdout) > 0 || !bytes.Contains(result.Log, []byte("nowhere")) {
		t.Errorf("in a folder that is not there: %+v", result)
	}
	wantOutput(t, box, `echo "${PWD##*/}"`, "other\n")
	for _, bad := range []sandbox.Command{{Text: "pwd", Folder: ".."}, {Text: "pwd", Folder: "/etc"}, {Text: "pwd", Folder: "a\x00"}, {Text: "pwd", Session: "../x"}} {
		if _, err := box.Run(t.Context(), bad); task.CodeOf(err) != task.Invalid {
			t.Errorf("%+v: %v, want %s", bad, err, task.Invalid)
		}
	}
}

func testDeadShell(t *testing.T, h Harness) {
	box := start(t, h)
	run(t, box, "mkdir d; cd d; export KEPT=yes")
	if result := run(t, box, "export LATER=also; exit 3"); result.ExitCode != 3 {
		t.Errorf("exit 3 gave %d", result.ExitCode)
	}
	wantOutput(t, box, "echo $KEPT $LATER ${PWD##*/}", "yes also d\n")
	wantOutput(t, box, "exec echo replaced", "replaced\n")
	if result := run(t, box, "kill -KILL $$"); result.ExitCode != 137 {
		t.Errorf("killed it gave %d", result.ExitCode)
	}
	if result := run(t, box, "set -e; export AGAIN=1; false; echo not reached"); result.ExitCode != 1 || len(result.Stdout) > 0 {
		t.Errorf("set -e gave %d and %q", result.ExitCode, result.Stdout)
	}
	run(t, box, "set +e")
	wantOutput(t, box, "false; echo $KEPT $AGAIN ${PWD##*/}", "yes 1 d\n")
	run(t, box, "cd .. && mkdir gone && cd gone && rmdir ../gone")
	wantOutput(t, box, "echo still here", "still here\n")
}

func testStandardInput(t *testing.T, h Harness) {
	box := start(t, h)
	wantOutput(t, box, "cat; read answer || echo none; head -c 1 | wc -c | tr -d ' '", "none\n0\n")
}

func testOutput(t *testing.T, h Harness) {
	box := start(t, h)
	result := runCommand(t, box, sandbox.Command{Text: "echo first; head -c 1073741824 /dev/zero; echo last", OutputLimit: 100_000, Timeout: time.Minute})
	if result.ExitCode != 0 || !result.Cut || result.Bytes != 1073741824+11 {
		t.Errorf("1 GiB of output: exit %d, cut %v, %d bytes", result.ExitCode, result.Cut, result.Bytes)
	}
	if len(result.Log) > 110_000 || !bytes.HasPrefix(result.Log, []byte("first\n")) || !bytes.HasSuffix(result.Log, []byte("last\n")) {
		t.Errorf("kept were %d bytes, from %.10q to %q", len(result.Log), result.Log, result.Log[max(0, len(result.Log)-10):])
	}
	result = run(t, box, `printf '\000\001\377\376\n\033[31mred\033[0m\n'`)
	if string(result.Stdout) != "\x00\x01\xff\xfe\n\x1b[31mred\x1b[0m\n" {
		t.Errorf("binary output became %q", result.Stdout)
	}
}

func testTimeLimit(t *testing.T, h Harness) {
	box := start(t, h)
	run(t, box, "export KEPT=1")
	for _, endless := range []string{
		"echo begun; sleep 3600", "while :; do :; done", "trap '' TERM INT HUP; while :; do sleep 1; done",
		"(setsid sh -c 'trap \"\" TERM; sleep 3600' &) ; (nohup sleep 3600 &) ; wait; sleep 3600",
	} {
		result := runCommand(t, box, sandbox.Command{Text: endless, Timeout: 300 * time.Millisecond})
		if result.Exceeded != sandbox.TimeLimit || result.ExitCode == 0 {
			t.Errorf("%q: exceeded %q, exit %d", endless, result.Exceeded, result.ExitCode)
		}
	}
	wantOutput(t, box, "echo $KEPT", "1\n")
	if !h.Weak {
		wantOutput(t, box, "n=0; for p in /proc/[0-9]*; do read -r c < $p/comm && [ \"$c\" = sleep ] && n=$((n+1)); done; echo $n", "0\n")
	}
}

func testCancelled(t *testing.T, h Harness) {
	box := start(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := box.Run(ctx, sandbox.Command{Text: "echo begun; sleep 3600", Output: func(sandbox.Stream, []byte) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled command ended with %v", err)
	}
	if _, err := box.Run(ctx, sandbox.Command{Text: "echo x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a command whose context is over ended with %v", err)
	}
	wantOutput(t, box, "echo on", "on\n")
}

func testBadCommands(t *testing.T, h Harness) {
	box := start(t, h)
	if _, err := box.Run(t.Context(), sandbox.Command{Text: strings.Repeat("x", 10<<20)}); task.CodeOf(err) != task.TooLarge {
		t.Errorf("a command of 10 MB ended with %v", err)
	}
	if _, err := box.Run(t.Context(), sandbox.Command{Text: "echo \x00"}); task.CodeOf(err) != task.Invalid {
		t.Errorf("a command with a zero byte ended with %v", err)
	}
	wantOutput(t, box, "printf '%s' '"+strings.Repeat("y", 500_000)+"' | wc -c | tr -d ' '", "500000\n")
	if result := run(t, box, "\xff\xfe\x80 --flag"); result.ExitCode != 127 {
		t.Errorf("bytes that are no text gave %d", result.ExitCode)
	}
	wantOutput(t, box, "printf %s 'a\xffb'", "a\xffb")
}

func testStoppedWhileRunning(t *testing.T, h Harness) {
	box := start(t, h)
	_, err := box.Run(t.Context(), sandbox.Command{Text: "echo begun; sleep 3600", Output: func(sandbox.Stream, []byte) {
		go func() { _ = box.Stop(context.Background()) }() // ends before the cleanup's own Stop returns
	}})
	if task.CodeOf(err) != task.Unavailable {
		t.Errorf("a command in a sandbox that was stopped ended with %v", err)
	}
	if _, err := box.Run(t.Context(), sandbox.Command{Text: "echo x"}); task.CodeOf(err) != task.Unavailable {
		t.Errorf("a command in a stopped sandbox ended with %v", err)
	}
	if err := box.Stop(t.Context()); err != nil {
		t.Errorf("stop again: %v", err)
	}
}
