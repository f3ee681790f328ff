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

// withoutOwn leaves the shell's own variables out of a state, and what has no name that a shell could give it
// again; it changes the state in place. The output of "declare -p", with all variables, is at its beginning,
// behind options. For bash to leave them out takes as long as all else that it does.
func withoutOwn(state []byte) []byte {
	kept := state[:0]
	for {
		variable := bytes.HasPrefix(state, []byte(declares))
		if !variable && !bytes.HasPrefix(state, []byte("set ")) {
			return append(kept, state...)
		}
		end := statementEnd(state)
		if name := declared(state[:end]); !variable || isName(name) && !isOfTheShell(name) {
			kept = append(kept, state[:end]...)
		}
		state = state[end:]
	}
}

const declares = "declare -"

// declared is the variable that a statement declares, such as NAME in declare -x NAME="value".
func declared(statement []byte) string {
	before, _, _ := bytes.Cut(bytes.TrimSuffix(statement, []byte("\n")), []byte("="))
	return string(before[bytes.LastIndexByte(before, ' ')+1:])
}

func isName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(one rune) bool {
		return one != '_' && (one < '0' || one > '9') && (one < 'A' || one > 'Z') && (one < 'a' || one > 'z')
	})
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
