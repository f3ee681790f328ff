package command

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
)

// asService lets the configuration of a newcomer be that of the machine, where systemd is.
func (n *newcomer) asService() {
	n.Helper()
	before := config.Machine
	n.Cleanup(func() { config.Machine = before })
	config.Machine = config.MachinePlace{File: filepath.Join(n.folder, "toryo.yaml"), Data: filepath.Join(n.folder, "data"), Systemd: n.folder}
}

// What leads this command through a proxy, and by a private authority, the service does not have.
//
//nolint:paralleltest // it changes the place of the machine
func TestInitNamesVariablesThatTheServiceLacks(t *testing.T) {
	n := newNewcomer(t)
	n.env = []string{"NO_PROXY=127.0.0.1", "SSL_CERT_FILE=/some/authority.pem"}
	n.asService()
	if err := n.run(nil, n.flags()...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("! The service does not have NO_PROXY, SSL_CERT_FILE of this shell.", "sudo systemctl edit toryo-up", "EnvironmentFile=")
}

// A server that runs is started again by the command that does so where it runs.
//
//nolint:paralleltest // it changes the place of the machine
func TestInitSaysHowToStartAgain(t *testing.T) {
	n := newNewcomer(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	running := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}}
	running.Start()
	t.Cleanup(running.Close)
	flags := n.flags("--webhook", "no")
	if err := n.run(nil, flags...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("Restart it to use the new configuration: stop it, then toryo up --config " + filepath.Join(n.folder, "toryo.yaml"))
	n.asService()
	if err := n.run(nil, flags...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("Restart it to use the new configuration: stop it, then toryo up", "; or, if it is a service: sudo systemctl try-restart toryo-up toryo")
}

// The service that the page Connect names is the one that this process is.
//
//nolint:paralleltest // it changes the place of the machine
func TestServiceThatStartsAServerAgain(t *testing.T) {
	n := newNewcomer(t)
	file := filepath.Join(n.folder, "toryo.yaml")
	if got := startedWith(site.Started{File: file}, "up", true).Service; got != "" {
		t.Errorf("without a package the service is %q", got)
	}
	n.asService()
	if got := startedWith(site.Started{File: file}, "up", false); got.Service != "" || !strings.HasPrefix(got.Command, "toryo up --config ") {
		t.Errorf("a server that a person has started is started again by %q, %q", got.Service, got.Command)
	}
	for command, want := range map[string]string{"up": "toryo-up", "serve": "toryo"} {
		if got := startedWith(site.Started{File: file}, command, true).Service; got != want {
			t.Errorf("%s is the service %q, want %q", command, got, want)
		}
	}
	for pid, want := range map[string]bool{strconv.Itoa(os.Getpid()): true, "1": false, "": false} {
		if got := isService(site.Program{Environ: []string{"SYSTEMD_EXEC_PID=" + pid}}); got != want {
			t.Errorf("with the process %q it is a service: %t", pid, got)
		}
	}
}
