package task

import "strings"

// MaxBoardLogin is how long a login on the board may be.
const MaxBoardLogin = 39

// BoardLogin is the login on the board that is made of a name, such as that of an account or
// of a token: what a login there cannot have becomes a dash. It is empty if nothing is left.
func BoardLogin(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("._-", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	login := strings.TrimLeft(strings.Join(words, "-"), "._-")
	return strings.TrimRight(login[:min(len(login), MaxBoardLogin)], "._-")
}
