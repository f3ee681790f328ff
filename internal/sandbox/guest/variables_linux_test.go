package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Variables are kept with their attributes and whatever is in them. Those that a shell sets itself are its
// own in each command.
func TestVariablesAreKept(t *testing.T) { //nolint:paralleltest // see TestCommandsStartInTheirFolder
	program, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	state, command := filepath.Join(top, "state"), filepath.Join(top, "command")
	run := func(text string) string {
		t.Helper()
		if err := os.WriteFile(command, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, status := runBelowReaper(t, top, program, "-c", bashScript, "toryo", state, command, "0", "0", "")
		if status != 0 {
			t.Errorf("%.60q printed %q and ended with %#x", text, got, uint32(status))
		}
		takeOver(t, state)
		return got
	}
	const set = `set -f
lines=$'one\ndeclare -x EVIL="1"\nPWD=/nowhere' quotes="it's \"quoted\" \\ \$HOME \$(false) ` + "\\`x\\`" + `"
tab=$'a\tb\'c"d' empty= last=$'ends in a backslash \\' begin=$'\n' unicode='棟梁 $'
declare -a list=(one "two three" [7]=$'four\nfive' "" ")")
declare -A map=([key]=1 ["a \"key\""]=$'x\ny' ["]"]="[" ['$x']='"')
declare -A none; declare -a nothing=()
declare -i number=42; declare -r fixed="stays"; declare -n alias_of=number; export given=yes; export promised
declare -l lower=ABC; BASHFUL=no; _under=1; PWDX=2; _=3; declare -x COMPOSE=1
function greet() { cat <<X
declare -x INSIDE="it's
X
}
`
	const show = "\n" + `declare -p lines quotes tab empty last begin unicode list map none nothing number fixed given promised lower _under PWDX; declare -p COMPOSE
declare -p alias_of 2>/dev/null; greet; echo "${EVIL-unset} $-"; [ -n "$RANDOM" ] && [ "$PPID" != 0 ] && [ "$SECONDS" -lt 60 ] && echo own`
	first := run(set + show)
	if !strings.Contains(first, "declare -A map=") || !strings.Contains(first, "unset ") {
		t.Fatalf("it printed %s", first)
	}
	for range 2 {
		if got := run("true" + show); got != first {
			t.Errorf("the next shell has\n%s\nwant\n%s", got, first)
		}
	}
	text, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{" RANDOM", " PPID", " UID", " BASH_VERSINFO", " SECONDS", " SHLVL", " __toryo", " BASHOPTS", " PWD=", " LINENO"} {
		if strings.Contains(string(text), own) {
			t.Errorf("the state has the shell's own%s:\n%s", own, text)
		}
	}
}

// Older versions of bash put arrays in single quotes. What follows the variables stays as it is.
func TestStateWithoutTheShellsOwn(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                        "",
		"declare -i RANDOM=\"1\"": "",
		"declare -x A=\"1\"":      "declare -x A=\"1\"",
		"declare -ar BASH_VERSINFO='([0]=\"4\" [1]=\"x\ny\")'\ndeclare -x A\n":                                                   "declare -x A\n",
		"declare -a l='([0]=\"it'\\''s\n\" [1]=\"b\")'\ndeclare -i SECONDS=\"1\"\nalias a='b'\n":                                 "declare -a l='([0]=\"it'\\''s\n\" [1]=\"b\")'\nalias a='b'\n",
		"set +o noglob\nset -o vi\ndeclare -- _=\"x\"\ndeclare -ir UID\nf () \n{ \n declare -i RANDOM=1\n}\ndeclare -i RANDOM\n": "set +o noglob\nset -o vi\nf () \n{ \n declare -i RANDOM=1\n}\ndeclare -i RANDOM\n",
		"export A='1'\nexport PWD='/'\n":             "export A='1'\nexport PWD='/'\n",
		"declare -x a(b=\"1\"\ndeclare -x B\n":       "declare -x B\n",
		"declare -x A=\"never ends\ndeclare -x B=\"": "declare -x A=\"never ends\ndeclare -x B=\"",
	} {
		if got := string(withoutOwn([]byte(in))); got != want {
			t.Errorf("of %q stays %q, want %q", in, got, want)
		}
	}
}
