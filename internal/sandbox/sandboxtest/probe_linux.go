package sandboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// families are the sockets that a probe tries to make.
var families = map[string][2]int{
	"unix": {unix.AF_UNIX, unix.SOCK_STREAM}, "unix datagram": {unix.AF_UNIX, unix.SOCK_DGRAM}, "internet": {unix.AF_INET, unix.SOCK_STREAM},
	"vsock": {unix.AF_VSOCK, unix.SOCK_STREAM}, "netlink": {unix.AF_NETLINK, unix.SOCK_RAW}, "packet": {unix.AF_PACKET, unix.SOCK_RAW},
	"alg": {unix.AF_ALG, unix.SOCK_SEQPACKET}, "bluetooth": {unix.AF_BLUETOOTH, unix.SOCK_RAW},
}

const works = "works"

// kept are connections that nothing is sent on.
var kept []net.Conn

// probe tries one thing and says how it went.
func probe(name, argument string) string {
	said := func(err error) string {
		if err != nil {
			return err.Error()
		}
		return works
	}
	if kind, is := families[name]; is {
		_, err := unix.Socket(kind[0], kind[1], 0)
		return said(err)
	}
	switch name {
	case "pair":
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return said(err)
	case "connect":
		connection, err := net.DialTimeout("unix", argument, time.Second) //nolint:noctx // the time is limited
		if err == nil {
			_, err = connection.Write([]byte("from inside"))
		}
		return said(err)
	case "pointed pair": // a pair of datagram sockets takes any address
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err == nil {
			err = unix.Sendto(pair[0], []byte("from inside"), 0, &unix.SockaddrUnix{Name: argument})
		}
		return said(err)
	case "reconnected pair":
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			err = unix.Connect(pair[0], &unix.SockaddrUnix{Name: argument})
		}
		return said(err)
	case "io_uring":
		var parameters [120]byte
		_, _, failed := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, addressOf(&parameters), 0)
		if failed != 0 {
			return failed.Error()
		}
		return works
	case "keys":
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
		return said(err)
	case "shared memory":
		_, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
		return said(err)
	case "connections": // made, and kept until the probe ends
		count, err := strconv.Atoi(argument)
		for range count {
			if errors.Is(err, unix.EMFILE) {
				return works // as many as a process may have
			}
			if err != nil {
				return err.Error()
			}
			var connection net.Conn
			if connection, err = net.DialTimeout("tcp", strings.TrimPrefix(os.Getenv("HTTP_PROXY"), "http://"), 10*time.Second); err == nil { //nolint:noctx // the time is limited
				kept = append(kept, connection)
			}
		}
		return said(err)
	case "files", "memfd", "anonymous":
		return hold(name, argument)
	case "at once":
		return holdAtOnce(argument)
	case "x32":
		_, _, failed := unix.Syscall(0x40000000|41, unix.AF_INET, unix.SOCK_STREAM, 0) // socket, by the other convention
		if failed != 0 {
			return failed.Error()
		}
		return works
	}
	return "unknown"
}

const (
	step = 8 << 20
	// pace keeps a probe from taking more between two looks than a test allows.
	pace = 20 * time.Millisecond
)

// hold takes memory that is no process's own, in steps, and tells in a file how
// much it has. The argument is the file and how much to take, in megabytes.
func hold(kind, argument string) string {
	file, text, _ := strings.Cut(argument, ",")
	most, err := strconv.Atoi(text)
	if err != nil {
		return err.Error()
	}
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	data := bytes.Repeat([]byte("x"), step)
	for held := step; held <= most<<20; held += step {
		switch kind {
		case "files":
			err = os.WriteFile(fmt.Sprintf("/dev/shm/%d", held), data, 0o600)
		case "memfd":
			var opened int
			if opened, err = unix.MemfdCreate("held", 0); err == nil {
				_, err = unix.Write(opened, data)
			}
		case "anonymous":
			var mapped []byte
			if mapped, err = unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS); err == nil {
				copy(mapped, data)
			}
		}
		if err == nil {
			err = os.WriteFile(file, []byte(strconv.Itoa(held>>20)), 0o600)
		}
		if err != nil {
			return err.Error()
		}
		<-ticker.C
	}
	return works
}

// holdAtOnce takes memory that processes share, as fast as it can. The argument is how
// much, in megabytes.
func holdAtOnce(argument string) string {
	most, err := strconv.Atoi(argument)
	if err != nil {
		return err.Error()
	}
	mapped, err := unix.Mmap(-1, 0, most<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err.Error()
	}
	for at := 0; at < len(mapped); at += unix.Getpagesize() {
		mapped[at] = 'x'
	}
	return works
}

// testSockets has code inside try to reach services of the host over local sockets,
// and make sockets of families that no namespace confines.
func testSockets(t *testing.T, h Harness) {
	dir, err := os.MkdirTemp("", "services") //nolint:usetesting // another user has to reach it, and the path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	stream, datagram := filepath.Join(dir, "stream"), filepath.Join(dir, "datagram")
	abstract := "@toryo-suite-" + filepath.Base(dir)
	reached := make(chan string, 10)
	for _, at := range []string{stream, abstract} {
		listener, err := net.Listen("unix", at) //nolint:noctx // it is at once
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() { // ends with the listener
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				reached <- at
				_ = connection.Close()
			}
		}()
	}
	packets, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: datagram})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packets.Close() })
	for _, file := range []string{dir, stream, datagram} {
		if err := os.Chmod(file, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	box := startWith(t, h.engine(t, NoGate), sandbox.Spec{Owner: owner, Image: h.Image, Workspace: t.TempDir()})
	for _, at := range []string{stream, abstract} {
		if said := probeWith(t, box, "connect="+at)["connect"]; said == works {
			t.Errorf("a service of the host at %s was reached", at)
		}
	}
	said := probeWith(t, box, "pointed pair="+datagram, "reconnected pair="+stream, "pair", "vsock", "packet", "alg", "bluetooth", "io_uring", "keys", "x32")
	for what, how := range said {
		if (how == works) != (what == "pair") {
			t.Errorf("%s: %s", what, how)
		}
	}
	if !h.Weak {
		if said := probeWith(t, box, "unix", "internet"); said["unix"] != works || said["internet"] != works {
			t.Errorf("sockets of its own network: %v", said)
		}
	} else if said := probeWith(t, box, "unix", "unix datagram", "internet", "netlink", "shared memory"); len(said) == 5 {
		for what, how := range said {
			if how == works {
				t.Errorf("%s can be made where the host's network is shared", what)
			}
		}
	}
	select {
	case at := <-reached:
		t.Errorf("a connection came to %s", at)
	default:
	}
	if err := packets.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := packets.ReadFrom(make([]byte, 100)); err == nil {
		t.Errorf("a packet of %d bytes came out", n)
	}
}

func addressOf(parameters *[120]byte) uintptr { return uintptr(unsafe.Pointer(parameters)) }
