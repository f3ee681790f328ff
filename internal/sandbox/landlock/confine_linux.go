package landlock

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"

	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/seccomp"
)

// Confine restricts the calling process, for [guest.Main].
func Confine(options guest.Options) error {
	version, err := Version()
	if err != nil {
		return err
	}
	writable := landlock.RWDirs(options.Writable...)
	if version >= 2 {
		// Files may be moved between folders. The first version cannot allow that, and
		// the library would then restrict nothing at all.
		writable = writable.WithRefer()
	}
	rules := []landlock.Rule{
		landlock.RODirs(options.Readable...).IgnoreIfMissing(),
		landlock.ROFiles(readableFiles...).IgnoreIfMissing(),
		writable,
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty").IgnoreIfMissing(),
	}
	if err := landlock.V7.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("restrict files: %w", err)
	}
	return seccomp.FilterCalls(seccomp.NoSockets)
}

// Readable are the folders that toolchains are in.
var readable = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sys/devices/system/cpu",
	"/etc/alternatives", "/etc/ssl", "/etc/ca-certificates", "/etc/pki", "/etc/ld.so.conf.d", "/etc/maven", "/etc/fonts",
	"/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk"}

var readableFiles = []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/etc/ld.so.conf",
	"/etc/localtime", "/etc/mime.types", "/etc/os-release", "/etc/debian_version", "/etc/protocols", "/etc/services"}
