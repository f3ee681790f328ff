//go:build !windows

package cli

// MachineFile is the configuration of the server of a machine, and machineData is where such a server
// keeps its data unless the configuration says otherwise.
const (
	MachineFile = "/etc/toryo/toryo.yaml"
	machineData = "/var/lib/toryo"

	elseMachineFile = ", or else " + MachineFile
)
