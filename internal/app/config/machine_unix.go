//go:build !windows

package config

const (
	machineFile = "/etc/toryo/toryo.yaml"
	machineData = "/var/lib/toryo"
)
