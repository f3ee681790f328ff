package testkit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// registryHosts are where packages come from when nobody says otherwise. A
// machine may have mirrors instead, and the tools know them, so no file names a
// host. The names are put together here, or this file would be the first to fail.
var registryHosts = []string{
	"proxy." + "golang.org", "sum." + "golang.org",
	"deb." + "debian.org", "security." + "debian.org",
	"registry." + "npmjs.org",
	"pypi." + "org", "files." + "pythonhosted.org",
}

// productHosts is the one file that has to name them: it is data of the product, the
// list of what the network policy "registries" lets a sandbox reach. It decides
// nothing about where this machine gets packages from. The environments name none:
// their commands leave the choice to each tool.
const productHosts = "internal/sandbox/egress/registries.txt"

// TestProductHostsAreThere guards the exception against outliving its reason.
func TestProductHostsAreThere(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(moduleRoot(t), filepath.FromSlash(productHosts)))
	if err != nil {
		t.Fatal(err)
	}
	if found := hostsIn(content); len(found) != len(registryHosts) {
		t.Errorf("%s names only %q", productHosts, found)
	}
}

// TestNoFileNamesARegistryHost looks at every file that is, or is about to be, in
// the repository.
func TestNoFileNamesARegistryHost(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		LeaveOut(t, "a git checkout")
	}
	for _, file := range repositoryFiles(t, root) {
		if filepath.Base(file) == "go.sum" || file == productHosts {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) { // deleted, and not yet committed
			continue
		}
		if err != nil {
			t.Errorf("read %s: %v", file, err)
			continue
		}
		for _, host := range hostsIn(content) {
			t.Errorf("%s names %s: leave the choice of registry to the machine's own settings", file, host)
		}
	}
}

// TestHostsInFindsAHost guards the test above against finding nothing at all.
func TestHostsInFindsAHost(t *testing.T) {
	t.Parallel()
	for _, host := range registryHosts {
		text := []byte("get it from https://" + host + "/something")
		if found := hostsIn(text); len(found) != 1 || found[0] != host {
			t.Errorf("found %q in %q", found, text)
		}
	}
	if found := hostsIn([]byte("apt-get install docker.io; go mod download")); len(found) != 0 {
		t.Errorf("found %q in a text without hosts", found)
	}
}

func hostsIn(content []byte) []string {
	var found []string
	for _, host := range registryHosts {
		if bytes.Contains(content, []byte(host)) {
			found = append(found, host)
		}
	}
	return found
}

func repositoryFiles(t *testing.T, root string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z",
		"--cached", "--others", "--exclude-standard")
	list.Dir = root
	output, err := list.Output()
	if err != nil {
		t.Fatalf("list the repository's files: %v", err)
	}
	files := strings.FieldsFunc(string(output), func(r rune) bool { return r == 0 })
	if len(files) == 0 {
		t.Fatal("git lists no file")
	}
	return files
}
