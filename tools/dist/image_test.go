package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testkit.StopKubernetes()
	os.Exit(code)
}

// image makes that of the working tree and returns its file.
func image(t *testing.T) (r *release, file string) {
	t.Helper()
	debs := testkit.ImagePackages(t)
	r = byHandRelease(t, target{"linux", here.arch})
	r.image, r.debs, r.level = imageWithPackages, debs, gzip.BestSpeed
	for _, step := range []func(context.Context) error{r.compileAll, r.collectDocuments, r.writeImages, r.writeBills} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return r, filepath.Join(r.making, r.named("image_linux_"+here.arch+".tar"))
}

// engine asks a Docker Engine.
type engine struct {
	t    *testing.T
	http http.Client
}

func dockerEngine(t *testing.T) *engine {
	t.Helper()
	const variable = "TORYO_TEST_DOCKER"
	socket, found := strings.CutPrefix(os.Getenv(variable), "unix://")
	if !found {
		testkit.LeaveOut(t, "a Docker Engine ("+variable+")")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &engine{t: t, http: http.Client{Transport: transport}}
}

func (e *engine) ask(ctx context.Context, method, path string, body io.Reader, kind string) []byte {
	e.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, body)
	if err != nil {
		e.t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	answer, err := e.http.Do(request)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		e.t.Fatalf("%s %s: %s %v\n%s", method, path, answer.Status, err, said)
	}
	return said
}

// run runs a command in a container as the image says, on files that it cannot write, and
// returns what it prints.
func (e *engine) run(image string, entrypoint []string, arguments ...string) string {
	e.t.Helper()
	asked, err := json.Marshal(map[string]any{
		"Image": image, "Entrypoint": entrypoint, "Cmd": arguments, "Tty": true,
		"HostConfig": map[string]any{"ReadonlyRootfs": true, "NetworkMode": "none", "CapDrop": []string{"ALL"}, "SecurityOpt": []string{"no-new-privileges"}},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	var made struct{ ID string }
	if err := json.Unmarshal(e.ask(e.t.Context(), http.MethodPost, "/containers/create", bytes.NewReader(asked), "application/json"), &made); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		e.ask(context.WithoutCancel(e.t.Context()), http.MethodDelete, "/containers/"+made.ID+"?force=true&v=true", nil, "")
	})
	e.ask(e.t.Context(), http.MethodPost, "/containers/"+made.ID+"/start", nil, "")
	var ended struct{ StatusCode int }
	if err := json.Unmarshal(e.ask(e.t.Context(), http.MethodPost, "/containers/"+made.ID+"/wait", nil, ""), &ended); err != nil {
		e.t.Fatal(err)
	}
	said := string(e.ask(e.t.Context(), http.MethodGet, "/containers/"+made.ID+"/logs?stdout=true&stderr=true", nil, ""))
	if ended.StatusCode != 0 {
		e.t.Fatalf("%v %v ended with %d: %s", entrypoint, arguments, ended.StatusCode, said)
	}
	return strings.ReplaceAll(said, "\r\n", "\n")
}

// The image starts as an ordinary user, on files that it cannot write, and has what the
// server and agents call.
func TestOnReleaseImage(t *testing.T) {
	t.Parallel()
	docker := dockerEngine(t)
	r, file := image(t)
	archive, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }() // it was only read
	docker.ask(t.Context(), http.MethodPost, "/images/load?quiet=true", archive, "application/x-tar")
	name := imageName + r.version
	t.Cleanup(func() {
		docker.ask(context.WithoutCancel(t.Context()), http.MethodDelete, "/images/"+name+"?force=true", nil, "")
	})

	var said struct{ Version, Commit, Date, OS, Arch string }
	if text := docker.run(name, []string{"/usr/local/bin/toryo"}, "version", "--json"); json.Unmarshal([]byte(text), &said) != nil || said.Version != r.version ||
		said.Commit != r.commit || said.Date != r.made.Format(time.RFC3339) || said.Arch != here.arch {
		t.Errorf("toryo version --json printed %s", text)
	}
	inside := docker.run(name, []string{"/bin/sh", "-c"}, `id -u; git --version; bwrap --version; test -s /etc/ssl/certs/ca-certificates.crt && echo certificates
test ! -w /usr/bin && touch /data/file && echo data; cd /data && git init --quiet x && echo repository; awk 'BEGIN { print "awk" }'; grep '^Package: git$' /var/lib/dpkg/status.d/git`)
	for _, want := range []string{fmt.Sprint(imageUser), "git version", "bubblewrap ", "certificates", "data", "repository", "awk", "Package: git"} {
		if !strings.Contains(inside, want) {
			t.Errorf("there is no %q in\n%s", want, inside)
		}
	}

	var parts bill
	if err := json.Unmarshal(fileOf(t, r, r.named("image_linux_"+here.arch+".cdx.json")), &parts); err != nil {
		t.Fatal(err)
	}
	found := map[string]component{}
	for _, one := range parts.Components {
		found[one.Name] = one
	}
	if git := found["git"]; !strings.HasPrefix(git.PackageURL, "pkg:deb/debian/git@") || !strings.HasSuffix(git.PackageURL, "&distro=debian-13") || len(git.Hashes) != 1 {
		t.Errorf("git is in the bill as %+v", git)
	}
	if cobra := found["github.com/spf13/cobra"]; len(cobra.Licenses) != 1 || cobra.Licenses[0].License.ID != "Apache-2.0" {
		t.Errorf("a module is in the bill as %+v", cobra)
	}
}
