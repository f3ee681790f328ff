package landlock

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/sandbox/guest"
)

// Confine restricts the calling process, for [guest.Main].
func Confine(options guest.Options) error {
	rules := []landlock.Rule{
		landlock.RODirs(options.Readable...).IgnoreIfMissing(),
		landlock.ROFiles(readableFiles...).IgnoreIfMissing(),
		landlock.RWDirs(options.Writable...).WithRefer(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty").IgnoreIfMissing(),
	}
	if err := landlock.V7.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("restrict files: %w", err)
	}
	return filterCalls()
}

// Readable are the folders that toolchains are in.
var readable = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sys/devices/system/cpu",
	"/etc/alternatives", "/etc/ssl", "/etc/ca-certificates", "/etc/pki", "/etc/ld.so.conf.d", "/etc/maven", "/etc/fonts",
	"/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk"}

var readableFiles = []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/etc/ld.so.conf",
	"/etc/localtime", "/etc/mime.types", "/etc/os-release", "/etc/debian_version", "/etc/protocols", "/etc/services"}

// The numbers of the filter's world: offsets in struct seccomp_data and the
// machines' names for audits.
const (
	offsetCall     = 0
	offsetMachine  = 4
	offsetArgument = 16
	auditAMD64     = 0xc000003e
	auditARM64     = 0xc00000b7
	// x32Bit marks calls of another convention on amd64, which is not needed.
	x32Bit = 0x40000000
)

// filterCalls allows sockets of the local kind only, and not the interface that
// could make others past this filter.
func filterCalls() error {
	machine := map[string]uint32{"amd64": auditAMD64, "arm64": auditARM64}[runtime.GOARCH]
	if machine == 0 {
		return fmt.Errorf("no system call filter is known for %s", runtime.GOARCH)
	}
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atMost = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
		refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	)
	program := []unix.SockFilter{
		{Code: load, K: offsetMachine},
		{Code: equal, K: machine, Jt: 1, Jf: 0},
		{Code: answer, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: offsetCall},
		{Code: atMost, K: x32Bit, Jt: 5, Jf: 0},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 4, Jf: 0},
		{Code: equal, K: unix.SYS_SOCKET, Jt: 0, Jf: 2},
		{Code: load, K: offsetArgument},
		{Code: equal, K: unix.AF_UNIX, Jt: 0, Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
		{Code: answer, K: refuse},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up gaining privileges: %w", err)
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}                                                                       //nolint:gosec // eleven
	_, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter))) //nolint:gosec // the call takes an address
	if failed != 0 {
		return fmt.Errorf("filter system calls: %w", failed)
	}
	return nil
}
