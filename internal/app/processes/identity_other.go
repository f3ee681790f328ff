//go:build !linux

package processes

import "os"

// identify cannot tell boots apart here, so that nothing is known of other processes.
func identify(os.FileInfo) string { return "" }

// Network says which network this process is in, by the name of the machine: there is one for each.
// It is empty if that is not known.
func Network() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return ""
	}
	return "machine " + name
}
