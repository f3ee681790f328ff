package guest

import (
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"
)

// reachTimeout is how long an address may take to answer when it is tried.
const reachTimeout = time.Second

// listenForLink takes the connections that carry the link with the host. The guest
// is the first process then, to which only the signals come that it asks for.
func listenForLink(socket string, patience time.Duration) (*Link, error) {
	_ = os.Remove(socket)                       // of a guest that was here before
	listener, err := net.Listen("unix", socket) //nolint:noctx // it lasts as long as the process
	if err != nil {
		return nil, err
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGTERM)
	link := NewLink()
	go func() { // for as long as the guest lives
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { // another connection follows one that breaks
				carrier.Store(processOf(connection))
				_ = link.Connect(connection)
			}()
		}
	}()
	go func() { // for as long as the guest lives
		ticker := time.NewTicker(patience / 10)
		defer ticker.Stop()
		for link.Down() < patience {
			select {
			case <-ticker.C:
				continue
			case <-asked:
			}
			break
		}
		_ = link.Close() // upon which the guest ends
	}()
	return link, nil
}

// carrier is the process that carried the link last. It is not the sandbox's.
var carrier atomic.Int64 //nolint:gochecknoglobals // a guest is a whole process

// processOf is the number of the process at the other end of a local connection.
func processOf(connection net.Conn) int64 {
	local, is := connection.(*net.UnixConn)
	if !is {
		return 0
	}
	raw, err := local.SyscallConn()
	if err != nil {
		return 0
	}
	var process int64
	_ = raw.Control(func(file uintptr) { // without it the relay counts as one more process
		if peer, err := unix.GetsockoptUcred(int(file), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			process = int64(peer.Pid)
		}
	})
	return process
}

// routes is where connections to the proxy go: to the host, or to an address.
type routes struct {
	mutex   sync.Mutex
	address string
	direct  map[net.Conn]bool
}

// change sends connections elsewhere from now on, and cuts those that went to the
// address before.
func (r *routes) change(address string) {
	r.mutex.Lock()
	cut := r.direct
	r.address, r.direct = address, map[net.Conn]bool{}
	r.mutex.Unlock()
	for connection := range cut {
		_ = connection.Close()
	}
}

func (r *routes) open(session *yamux.Session) (net.Conn, func(), error) {
	r.mutex.Lock()
	address := r.address
	r.mutex.Unlock()
	if address == "" {
		outside, err := session.Open()
		return outside, func() {}, err
	}
	outside, err := net.DialTimeout("tcp", address, 10*time.Second) //nolint:noctx // the time is limited
	if err != nil {
		return nil, nil, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.address != address {
		_ = outside.Close()
		return nil, nil, net.ErrClosed
	}
	r.direct[outside] = true
	return outside, func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		delete(r.direct, outside)
	}, nil
}

// reach tries addresses and returns those that take a connection.
func reach(addresses []string) []string {
	answered := make([]bool, len(addresses))
	var trying sync.WaitGroup
	for i, address := range addresses {
		trying.Go(func() {
			connection, err := net.DialTimeout("tcp", address, reachTimeout) //nolint:noctx // the time is limited
			if err == nil {
				answered[i] = true
				_ = connection.Close()
			}
		})
	}
	trying.Wait()
	var reached []string
	for i, address := range addresses {
		if answered[i] {
			reached = append(reached, address)
		}
	}
	return reached
}
