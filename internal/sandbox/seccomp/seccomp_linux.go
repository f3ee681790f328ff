package seccomp

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sockets says which sockets a filter lets processes make.
type Sockets bool

// The two kinds of filters.
const (
	// OrdinarySockets are local ones and those of the internet protocols, for a
	// sandbox with a network of its own. Others reach past it: a virtual machine's
	// host (AF_VSOCK), the devices (AF_PACKET), or parts of the kernel that few have
	// looked at.
	OrdinarySockets Sockets = true
	// NoSockets leaves nothing but connected pairs, for a sandbox that shares the
	// host's network and its folders, and with them the local sockets of its
	// services. A pair of datagram sockets could be pointed elsewhere, so pairs are
	// streams.
	NoSockets Sockets = false
)

// Offsets in struct seccomp_data and the kernel's names for the machines.
const (
	offsetCall    = 0
	offsetMachine = 4
	offsetFirst   = 16 // the low half of the first argument; both machines have that half first
	offsetSecond  = 24
	auditAMD64    = 0xc000003e
	auditARM64    = 0xc00000b7
	// x32Bit marks calls of another convention on amd64, with numbers of its own.
	x32Bit = 0x40000000
	// typeMask takes the flags off the type of a socket.
	typeMask = 0xf
)

// refusedCalls reach what belongs to the user and not to the sandbox: io_uring
// makes sockets without the calls that are filtered, and keys are the user's.
var refusedCalls = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL}

// sharedCalls make what outlives processes and is found by whoever runs as the
// same user, where the sandbox has no namespace for it.
var sharedCalls = []uint32{unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN}

const (
	bpfLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfAnd     = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	bpfEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bpfAnswer  = unix.BPF_RET | unix.BPF_K

	// Programs that try these calls know that older kernels do not have them.
	unknownCall   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	unknownFamily = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	denied        = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
)

// filter is the program that the kernel runs at every system call. Calls of
// another machine's convention, whose numbers mean other things, end the process.
func filter(sockets Sockets) ([]unix.SockFilter, error) {
	machine := map[string]uint32{"amd64": auditAMD64, "arm64": auditARM64}[runtime.GOARCH]
	if machine == 0 {
		return nil, fmt.Errorf("no system call filter is known for %s", runtime.GOARCH)
	}
	program := []unix.SockFilter{
		{Code: bpfLoad, K: offsetMachine},
		{Code: bpfEqual, K: machine, Jt: 1},
		{Code: bpfAnswer, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: bpfLoad, K: offsetCall},
		{Code: bpfAtLeast, K: x32Bit, Jf: 1},
		{Code: bpfAnswer, K: unknownCall},
	}
	calls := refusedCalls
	if sockets == NoSockets {
		calls = append(append([]uint32{unix.SYS_CONNECT, unix.SYS_BIND}, sharedCalls...), calls...)
	}
	for _, call := range calls {
		program = append(program, unix.SockFilter{Code: bpfEqual, K: call, Jf: 1}, unix.SockFilter{Code: bpfAnswer, K: unknownCall})
	}
	if sockets == NoSockets {
		program = append(program,
			unix.SockFilter{Code: bpfEqual, K: unix.SYS_SOCKET, Jf: 1}, unix.SockFilter{Code: bpfAnswer, K: denied},
			unix.SockFilter{Code: bpfEqual, K: unix.SYS_SOCKETPAIR, Jt: 1}, unix.SockFilter{Code: bpfAnswer, K: unix.SECCOMP_RET_ALLOW},
			unix.SockFilter{Code: bpfLoad, K: offsetFirst},
			unix.SockFilter{Code: bpfEqual, K: unix.AF_UNIX, Jt: 1}, unix.SockFilter{Code: bpfAnswer, K: denied},
			unix.SockFilter{Code: bpfLoad, K: offsetSecond}, unix.SockFilter{Code: bpfAnd, K: typeMask},
			unix.SockFilter{Code: bpfEqual, K: unix.SOCK_STREAM, Jt: 2}, unix.SockFilter{Code: bpfEqual, K: unix.SOCK_SEQPACKET, Jt: 1},
			unix.SockFilter{Code: bpfAnswer, K: denied}, unix.SockFilter{Code: bpfAnswer, K: unix.SECCOMP_RET_ALLOW})
		return program, nil
	}
	program = append(program,
		unix.SockFilter{Code: bpfEqual, K: unix.SYS_SOCKET, Jt: 2}, unix.SockFilter{Code: bpfEqual, K: unix.SYS_SOCKETPAIR, Jt: 1},
		unix.SockFilter{Code: bpfAnswer, K: unix.SECCOMP_RET_ALLOW}, unix.SockFilter{Code: bpfLoad, K: offsetFirst})
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		program = append(program, unix.SockFilter{Code: bpfEqual, K: family, Jf: 1}, unix.SockFilter{Code: bpfAnswer, K: unix.SECCOMP_RET_ALLOW})
	}
	return append(program, unix.SockFilter{Code: bpfAnswer, K: unknownFamily}), nil
}

// FilterCalls puts a filter on the calling process and all that it starts.
func FilterCalls(sockets Sockets) error {
	program, err := filter(sockets)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up gaining privileges: %w", err)
	}
	installed := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}                                                                            //nolint:gosec // some fifty
	thread, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&installed))) //nolint:gosec // the call takes an address
	if failed != 0 {
		return fmt.Errorf("filter system calls: %w", failed)
	}
	if thread != 0 {
		return fmt.Errorf("filter system calls: thread %d has another filter", thread)
	}
	return nil
}
