package testkit

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestNamesOfTestsOnCompiledServers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"TestOnGitea": false, "TestOnGitea/Faults": false, "TestOnGiteaSignIn": false, "BenchmarkUnassignOnGitea": false,
		"TestGitea": true, "TestSignIn": true, "TestSuite/TestOnGitea": true, "TestOnKubernetesSuite": true,
	} {
		if misnamed(name, onGitea) != want {
			t.Errorf("%s uses Gitea: it is misnamed: %v, want %v", name, !want, want)
		}
	}
	for name, want := range map[string]string{"TestOnGitea/x": "test-rest", "TestOnKubernetesSuite": "test-rest", "TestOnReleaseImage": "test-dist", "TestSuite": "test"} {
		if makeTarget(name) != want {
			t.Errorf("%s is run by make %s, want %s", name, makeTarget(name), want)
		}
	}
}

// The script skips and selects tests by the names that this package demands.
func TestScriptSelectsByTheSameNames(t *testing.T) {
	t.Parallel()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(root, "scripts", "test"))
	if err != nil {
		t.Fatal(err)
	}
	for variable, names := range map[string]map[string]bool{
		"on_compiled": {
			onGitea: true, onGitea + "SignIn": true, onKubernetes: true, onKubernetes + "Suite": true, onRelease + "Image": false,
			"TestGitea": false, "TestKubernetes": false, "Benchmark" + strings.TrimPrefix(onGitea, "Test"): false,
		},
		"on_release": {onRelease: true, onRelease + "Image": true, onGitea: false, onKubernetes: false, "TestReleaseIsReproducible": false},
	} {
		found := regexp.MustCompile(`(?m)^` + variable + `='(.*)'`).FindSubmatch(script)
		if found == nil {
			t.Fatalf("scripts/test has no line %s='...'", variable)
		}
		pattern := regexp.MustCompile(string(found[1]))
		for name, want := range names {
			if pattern.MatchString(name) != want {
				t.Errorf("%s selects %s: %v, want %v", pattern, name, !want, want)
			}
		}
	}
}
