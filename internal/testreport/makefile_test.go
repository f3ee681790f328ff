package testreport_test

import (
	"os/exec"
	"testing"
	"testing/fstest"

	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testreport"
)

func TestMake(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		testkit.LeaveOut(t, "make")
	}
	good := map[string]testreport.Status{"example.com/calc TestGood": passed}
	module := goProject(map[string]string{})["go.mod"]
	onMachine(t, "go", []scenario{
		{name: "needs and exports", command: "make test", complete: true, passed: true, want: good,
			files: goProject(map[string]string{"Makefile": "GO = go\nexport GREETING := it's $(GO)\n.PHONY: test\ntest: gen\n\t@echo testing\n\t$(GO) test ./...\ngen:\n\techo 'package calc; const made = \"made\"' >made.go\n",
				"a_test.go": "package calc\nimport (\"testing\"; \"os\")\nfunc TestGood(t *testing.T) { if os.Getenv(\"GREETING\") != \"it's go\" || made != \"made\" { t.Error(os.Getenv(\"GREETING\")) } }\n"})},
		{name: "other folder", command: "cd sub && make test", complete: true, want: map[string]testreport.Status{"example.com/calc TestBad": failed},
			files: map[string]string{"sub/go.mod": module, "sub/Makefile": "test:\n\tcd in && go test\n", "sub/in/a_test.go": goBad, "sub/in/go.mod": module}},
		{name: "what it needs fails", command: "make test", note: "cannot be read",
			files: goProject(map[string]string{"Makefile": "test: gen\n\tgo test ./...\ngen:\n\tfalse\n", "a_test.go": goGood})},
	})
}

// A Makefile that does more than is understood is not followed at all.
func TestMakefilesThatAreNotFollowed(t *testing.T) {
	t.Parallel()
	const rule = "test:\n\tpytest\n"
	if _, ok := testreport.Find("make test", fstest.MapFS{"Makefile": {Data: []byte(rule)}}); !ok {
		t.Fatal("the rule itself is not followed")
	}
	for _, more := range []string{
		"include more.mk\n", "-include more.mk\n", "ifdef CI\nX = 1\nendif\n", "define X\nendef\n", "export\n", "unexport X\n", ".ONESHELL:\n", ".EXPORT_ALL_VARIABLES:\n", ".IGNORE:\n", "SHELL = python\n", ".SHELLFLAGS = -c\n", "MAKEFLAGS = -i\n", ".RECIPEPREFIX = >\n",
		"PATH := /other\n", "override X = 1\n", "X += 1\n", "X != ls\n", "X = 1\nX = 2\n", "$(info x)\n", "$(X): y\n", "test: more\n", "test: X = 1\n", "test:: x\n", "a: ; true\n", "vpath %.c src\n", "export X = $(shell ls)\n", "export X\n", "X ?= $(X)\nexport Y = $(X)\n",
	} {
		for _, text := range []string{more + rule, rule + more} {
			if runner, ok := testreport.Find("make test", fstest.MapFS{"Makefile": {Data: []byte(text)}}); ok {
				t.Errorf("%q is followed: %s", text, runner.Command("/r"))
			}
		}
	}
}
