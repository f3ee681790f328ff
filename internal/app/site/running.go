package site

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/processes"
	"github.com/toryo-dev/toryo/internal/task"
)

// addressFile says where the server of a data directory listens, and has a token for it, for
// commands on the same machine: the address may be none that the configuration names. Whoever can
// read it can read the database too.
const addressFile = "server.json"

// maxAddressFile is more than such a file has.
const maxAddressFile = 4 << 10

// answerWithin is how long the server on this machine may take before it begins to answer.
const answerWithin = 10 * time.Second

// Running is a server that runs on a data directory of this machine.
type Running struct {
	URL     string `json:"url"`
	Token   string `json:"token"`   // ends with the server
	Process string `json:"process"` // the id of the server in the folder of processes
	// Network is in which network URL is that of the server: a container has one of its own, and a
	// folder can be shared with other machines.
	Network string `json:"network"`
}

// ErrNoServer says that no server runs on a data directory.
var ErrNoServer = errors.New("no server runs on the data directory")

// publishAddress writes the file. Withdraw removes it, and may always be called.
func publishAddress(running Instance) (withdraw func(), err error) {
	file := filepath.Join(running.Config.DataDir, addressFile)
	text, err := json.Marshal(Running{URL: running.local, Token: running.token, Process: running.process, Network: processes.Network()})
	if err != nil {
		return func() {}, err
	}
	draft, err := os.CreateTemp(running.Config.DataDir, ".server-*") // readable for its user only
	if err != nil {
		return func() {}, err
	}
	_, err = draft.Write(text)
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), file)
	}
	if err != nil {
		return func() {}, errors.Join(err, os.Remove(draft.Name()))
	}
	return func() { _ = os.Remove(file) }, nil // one that stays says nothing, when the process has ended
}

// RunningServer is the server that runs on a data directory of this machine; the error is
// [ErrNoServer] if none does. It is found if the server lives, for certain: the kernel keeps the lock
// of a process on its file for as long as that. It is asked only from the network that it runs in:
// elsewhere the address is that of somebody else, who would get the token. The folder may be of
// another user, who can put anything there: what is found is asked with the token that stands beside
// it, and with no other one.
func RunningServer(dataDir string) (Running, error) {
	running, err := readAddress(filepath.Join(dataDir, addressFile))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return Running{}, task.Wrap(task.DataDir, err, "this user may not read which server runs on the data directory").
			WithHint("run the command with sudo; or name the server with --server and set %s to a token for it", config.TokenVariable)
	case err != nil || !processes.Lives(filepath.Join(dataDir, processFolder), running.Process):
		return Running{}, ErrNoServer
	case running.Network == "" || running.Network != processes.Network():
		return Running{}, task.Errorf(task.Unavailable, "the server of the data directory %s runs in another container or on another machine", dataDir).
			WithHint("run the command there; or name the server with --server and set %s to a token for it", config.TokenVariable)
	}
	return running, nil
}

// readAddress reads the file of a server. What is wrong with one that can be read does not matter:
// a server wrote none like it.
func readAddress(path string) (running Running, err error) {
	file, err := processes.OpenFile(path)
	if err != nil {
		return Running{}, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxAddressFile))
	if err != nil {
		return Running{}, err
	}
	if json.Unmarshal(text, &running) != nil || running.URL == "" || running.Token == "" {
		return Running{}, ErrNoServer
	}
	return running, nil
}

// Client connects to the server. It asks no proxy, which could not reach this machine and would
// see the token.
func (Running) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: answerWithin}).DialContext, ResponseHeaderTimeout: answerWithin, MaxIdleConnsPerHost: idleConnections,
	}}
}

// connectable is an address by which a listener is reached from its machine: that of all its
// interfaces is none.
func connectable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if listens, err := netip.ParseAddr(host); host != "" && (err != nil || !listens.IsUnspecified()) {
		return address
	}
	return net.JoinHostPort("127.0.0.1", port) // what listens on all interfaces does so for IPv4 too
}
