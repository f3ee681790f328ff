package site

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/toryo-dev/toryo/internal/app/processes"
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
}

// publishAddress writes the file. Withdraw removes it, and may always be called.
func publishAddress(running Instance) (withdraw func(), err error) {
	file := filepath.Join(running.Config.DataDir, addressFile)
	text, err := json.Marshal(Running{URL: running.local, Token: running.token, Process: running.process})
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

// RunningServer is the server that runs on a data directory of this machine. It is found if the
// server lives, for certain: the kernel keeps the lock of a process on its file for as long as that.
// The folder may be of another user, who can put anything there: what is found is asked with the
// token that stands beside it, and with no other one.
func RunningServer(dataDir string) (running Running, found bool) {
	file, err := processes.OpenFile(filepath.Join(dataDir, addressFile))
	if err != nil {
		return Running{}, false
	}
	defer func() { _ = file.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxAddressFile))
	if err != nil || json.Unmarshal(text, &running) != nil || running.URL == "" || running.Token == "" {
		return Running{}, false
	}
	if !processes.Lives(filepath.Join(dataDir, processFolder), running.Process) {
		return Running{}, false
	}
	return running, true
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
	listens, err := netip.ParseAddrPort(address)
	if err != nil || !listens.Addr().IsUnspecified() {
		return address
	}
	// What listens on all interfaces does so for IPv4 too.
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), listens.Port()).String()
}
