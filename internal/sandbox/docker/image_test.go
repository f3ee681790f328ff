package docker

import (
	"errors"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// An image that a registry does not have or does not give is a matter of who chose it. All else
// that keeps an image from being pulled is one of the machine.
func TestPullFailed(t *testing.T) {
	t.Parallel()
	for code, said := range map[task.Code][]string{
		task.NotFound: {
			"manifest for alpine:none not found: manifest unknown: manifest unknown",
			"manifest for alpine:none not found",
			`failed to resolve reference "registry.test/library/alpine:none": registry.test/library/alpine:none: not found`,
			"pull access denied for nobody/none, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
			`Head "https://registry.test/v2/nobody/none/manifests/latest": denied`,
			`Head "https://registry.test/v2/nobody/none/manifests/latest": unauthorized: authentication required`,
			"initializing source docker://registry.test/none:latest: reading manifest latest in registry.test/none: requested access to the resource is denied",
			"invalid reference format",
		},
		task.NotReady: {
			"open /var/lib/docker/tmp/GetImageBlob1: permission denied",
			"failed to register layer: symlink /a /b: operation not permitted: access denied by policy",
			"error getting credentials: exec: \"docker-credential-none\": executable file not found in $PATH",
			"Get \"https://registry.test/v2/\": dial tcp: lookup registry.test: host not found",
			"mkdir /var/lib/docker/overlay2/x: the folder does not exist",
			"toomanyrequests: too many failed login attempts",
			"Get \"https://registry.test/v2/\": proxyconnect tcp: 407 unauthorized by the proxy",
		},
	} {
		for _, text := range said {
			if got := task.CodeOf(pullFailed("image", errors.New(text))); got != code {
				t.Errorf("%q is %s, want %s", text, got, code)
			}
		}
	}
}
