//go:build unix

package site

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/processes"
	"github.com/toryo-dev/toryo/internal/task"
)

// A server is found while it lives, by what it wrote itself.
func TestRunningServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process, err := processes.Start(filepath.Join(dir, processFolder))
	if err != nil {
		t.Fatal(err)
	}
	withdraw, err := publishAddress(Instance{Config: config.Config{DataDir: dir}, local: "http://127.0.0.1:1", process: process.ID(), token: "toryo_x"})
	if err != nil {
		t.Fatal(err)
	}
	if running, err := RunningServer(dir); err != nil || running.URL != "http://127.0.0.1:1" || running.Token != "toryo_x" {
		t.Errorf("found %+v, %v", running, err)
	}
	file := filepath.Join(dir, addressFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"nothing": "", "no JSON": "x", "too large": string(text[:len(text)-1]) + strings.Repeat(" ", maxAddressFile) + "}",
		"no token": strings.Replace(string(text), "toryo_x", "", 1), "no address": strings.Replace(string(text), "http://127.0.0.1:1", "", 1),
		"a path for a process":        strings.Replace(string(text), process.ID(), "../server.json", 1),
		"a process that is not there": strings.Replace(string(text), process.ID(), uuid.NewString(), 1),
	} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if running, err := RunningServer(dir); !errors.Is(err, ErrNoServer) {
			t.Errorf("%s: found %+v, %v", name, running, err)
		}
	}
	elsewhere(t, dir, file, string(text))
	if err := os.Rename(file, file+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".moved", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file+".moved", file); err != nil {
		t.Fatal(err)
	}
	if running, err := RunningServer(dir); !errors.Is(err, ErrNoServer) {
		t.Errorf("a link: found %+v, %v", running, err)
	}
	if err := os.Rename(file+".moved", file); err != nil {
		t.Fatal(err)
	}
	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
	if running, err := RunningServer(dir); !errors.Is(err, ErrNoServer) {
		t.Errorf("it has ended, and is found: %+v, %v", running, err)
	}
	withdraw()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file stays: %v", err)
	}
}

// elsewhere: a folder that is shared with another container or machine says an address of theirs. A
// token that was sent there would go to whoever has that address here.
func elsewhere(t *testing.T, dir, file, text string) {
	t.Helper()
	here := processes.Network()
	if here == "" || !strings.Contains(text, here) {
		t.Fatalf("the network is %q, and the file has %s", here, text)
	}
	for _, other := range []string{"", here + "1"} {
		if err := os.WriteFile(file, []byte(strings.Replace(text, here, other, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		running, err := RunningServer(dir)
		if running.Token != "" || task.CodeOf(err) != task.Unavailable || !strings.Contains(err.Error(), "in another container or on another machine; run the command there; or name the server with --server") {
			t.Errorf("in the network %q: found %+v, %v", other, running, err)
		}
	}
}

// What listens everywhere is asked on this machine.
func TestConnectable(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		":8750": "127.0.0.1:8750", "[::]:8750": "127.0.0.1:8750", "localhost:1": "localhost:1", "0.0.0.0:8750": "127.0.0.1:8750", "127.0.0.1:1": "127.0.0.1:1", "[::1]:1": "[::1]:1", "192.0.2.1:1": "192.0.2.1:1",
	} {
		if got := connectable(address); got != want {
			t.Errorf("%s is asked at %s, want %s", address, got, want)
		}
	}
}
