package config

// There is no configuration of the machine: every user may make folders at the top of a drive.
const (
	machineFile = ""
	machineData = ""
)
