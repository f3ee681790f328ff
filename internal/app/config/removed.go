package config

import "strings"

// removed are keys that there were once, with what to do about them. A file that still
// has one is read as if it were not there, with a warning.
var removed = map[string]*complaint{
	"task_stop.check_interval":    complain("remove it", "removed, it has no effect: a stop interrupts a run at once and waits for no look"),
	"pause_resume.check_interval": complain("remove it", "removed, it has no effect: a pause interrupts a run at once and waits for no look"),
}

// removedVariable returns the removed key that a variable stands for, if there is one.
func removedVariable(name string) (path string, found bool) {
	for path := range removed {
		if name == VariablePrefix+strings.ToUpper(strings.ReplaceAll(path, ".", "_")) {
			return path, true
		}
	}
	return "", false
}
