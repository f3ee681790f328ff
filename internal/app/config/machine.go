package config

import (
	"os"
	"path/filepath"
)

// MachinePlace is where the server of a machine has its configuration, and its data unless the
// configuration says otherwise. Both are empty where there is no such place. Systemd is a folder that
// is there where systemd manages services.
type MachinePlace struct{ File, Data, Systemd string }

// Machine is that place of this machine. Only tests change it.
var Machine = MachinePlace{File: machineFile, Data: machineData, Systemd: "/run/systemd/system"}

// HasServices reports whether services of a package run the server of a configuration file.
func HasServices(file string) bool {
	if !IsMachineFile(file) {
		return false
	}
	_, err := os.Stat(Machine.Systemd)
	return err == nil
}

// IsMachineFile reports whether a file is the configuration of the machine, however it is named.
func IsMachineFile(file string) bool {
	if file == "" || Machine.File == "" {
		return false
	}
	if full, err := filepath.Abs(file); err == nil && full == Machine.File {
		return true // also if it is not there yet
	}
	named, err := os.Stat(file)
	if err != nil {
		return false
	}
	machine, err := os.Stat(Machine.File)
	return err == nil && os.SameFile(named, machine)
}

// placeData says where the data is. That must not depend on the folder that a command is called
// in, if anybody has said it. The configuration of the machine is of a service, whose data is where
// services have it.
func (l *loader) placeData() {
	at := l.report.origins["data_dir"]
	if at.IsDefault() && IsMachineFile(l.file) {
		l.config.DataDir = Machine.Data
		l.report.origins["data_dir"] = Origin{name: Machine.File}
		return
	}
	l.config.DataDir = l.from(at, l.config.DataDir)
}
