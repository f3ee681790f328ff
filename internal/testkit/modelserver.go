package testkit

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The model server and the Node.js that it needs lie below this folder in the cache
// directory; scripts/needs/aimock puts them there.
const (
	modelServerFolder  = "toryo-test/aimock-1.43.0-node-22.23.3"
	modelServerProgram = "node_modules/@copilotkit/aimock/dist/cli.js"
	modelServerNode    = "node"
)

var modelServerReady = regexp.MustCompile(`listening on (http://127\.0\.0\.1:\d+)`)

// ModelServer starts a server of the models' wire formats that was not written by
// us, with fixtures in its own format, and returns its address. The server goes
// when the test ends.
func ModelServer(t testing.TB, fixtures string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		LeaveOut(t, "a cache directory")
	}
	program := filepath.Join(cache, modelServerFolder, modelServerProgram)
	node := filepath.Join(cache, modelServerFolder, modelServerNode)
	_, err = os.Stat(program)
	if _, missing := os.Stat(node); err != nil || missing != nil {
		LeaveOut(t, "the model server aimock (scripts/needs/aimock)")
	}
	file := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(file, []byte(fixtures), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), node, program, "--port", "0", "--strict", "--validate-on-load", "--fixtures", file)
	output, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	server.Stderr = server.Stdout
	if err := server.Start(); err != nil {
		t.Fatalf("start the model server: %v", err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended by itself
		_ = server.Wait()         // killed, so an error is what is expected
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if found := modelServerReady.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, output) }() // ends with the server
			return found[1]
		}
		t.Log(lines.Text())
	}
	t.Fatal("the model server ended before it listened")
	return ""
}
