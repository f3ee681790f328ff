package site

import "runtime/debug"

// version is set when a release is built. Other builds take it from what the Go
// tool knows of the module.
var version string

// Version is the version of this build.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
