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

// modelServerProgram lies below the cache directory; scripts/needs/aimock puts it
// there.
const modelServerProgram = "toryo-test/aimock-1.43.0/node_modules/@copilotkit/aimock/dist/cli.js"

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
	program := filepath.Join(cache, modelServerProgram)
	node, err := exec.LookPath("node")
	if _, missing := os.Stat(program); err != nil || missing != nil {
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
