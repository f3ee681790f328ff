package guest

import (
	"bytes"
	"slices"
	"strings"
)

// ofTheShell are variables that a shell sets itself, and prefixesOfTheShell those of others and of our
// scripts. What one shell has in them is wrong in the next, or cannot be set there.
var (
	ofTheShell = []string{
		"EUID", "UID", "PPID", "SHELLOPTS", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "FUNCNAME", "GROUPS", "DIRSTACK",
		"PIPESTATUS", "HISTCMD", "OPTIND", "OPTERR", "OPTARG", "SHLVL", "PWD", "_",
	}
	prefixesOfTheShell = []string{"__toryo_", "BASH", "EPOCH", "COMP_"}
)

// withoutOwn leaves the shell's own variables out of a state. The output of "declare -p", with all variables,
// is at its beginning, behind options. For the shell to leave them out takes as long as all else that it does.
func withoutOwn(state []byte) []byte {
	kept := make([]byte, 0, len(state))
	for bytes.HasPrefix(state, []byte("declare -")) || bytes.HasPrefix(state, []byte("set ")) {
		end := statementEnd(state)
		if !isOfTheShell(declared(state[:end])) {
			kept = append(kept, state[:end]...)
		}
		state = state[end:]
	}
	return append(kept, state...)
}

// declared is the variable that a statement declares, such as NAME in declare -x NAME="value".
func declared(statement []byte) string {
	before, _, _ := strings.Cut(strings.TrimSuffix(string(statement), "\n"), "=")
	return before[strings.LastIndexByte(before, ' ')+1:]
}

// statementEnd is where the next statement begins: behind the first line break that is not in quotes. Shells
// quote values as "…", '…' and $'…'.
func statementEnd(text []byte) int {
	quote, escapes := byte(0), true // whether a backslash makes the next character an ordinary one
	for at := 0; at < len(text); at++ {
		switch one := text[at]; {
		case one == '\\' && escapes:
			at++
		case quote != 0:
			if one == quote {
				quote, escapes = 0, true
			}
		case one == '"':
			quote = one
		case one == '\'':
			quote, escapes = one, at > 0 && text[at-1] == '$'
		case one == '\n':
			return at + 1
		}
	}
	return len(text)
}

func isOfTheShell(name string) bool {
	return slices.Contains(ofTheShell, name) ||
		slices.ContainsFunc(prefixesOfTheShell, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
