package site

import (
	"runtime"
	"runtime/debug"

	"github.com/toryo-dev/toryo/internal/store/relational"
)

// What is set when a release is built. Other builds take the version from what the Go tool
// knows of the module.
var (
	version string
	commit  string
	date    string // of the commit, so that a second build comes out the same
)

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

// Build says what this program was made from, and for what.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"` // of the commit
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Schema  int64  `json:"schema"` // the version of the database that it brings
}

// ThisBuild describes this program.
func ThisBuild() (Build, error) {
	schema, err := relational.LatestVersion()
	return Build{Version: Version(), Commit: commit, Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Schema: schema}, err
}
