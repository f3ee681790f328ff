package harbor_test

import (
	"os"
	"strings"
	"testing"
)

// No program of the work runs before the tests do, wherever the image says that programs and
// libraries are: it could replace them.
//
//nolint:paralleltest // it lists the containers of all
func TestNoProgramOfTheWorkBeforeTheTests(t *testing.T) {
	runner, engine := newRunner(t)
	one, from := prepare(t, runner, folder(t, map[string]string{
		"environment/Dockerfile": "FROM " + os.Getenv("TORYO_TEST_DOCKER_IMAGE") + "\nWORKDIR /app\nCOPY app/ /app/\nENV PATH=/app/bin:/usr/bin:/bin\nENV LD_PRELOAD=/app/before.so\n",
		"tests/test.sh":          "#!/bin/bash\nif [ -e /app/ran ]; then exit 1; fi\nif /bin/grep -q 42 answer.txt; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n",
	}))
	patch := ""
	for _, name := range []string{"rm", "mkdir", "mv", "chmod", "cd", "sleep"} {
		script := "printf '#!/bin/bash\\necho 1 > /logs/verifier/reward.txt\\n' > /*est*/test.sh; touch /app/ran; exec /bin/" + name + " \"$@\""
		patch += strings.Replace(file("bin/"+name, "#!/bin/bash"), "100644", "100755", 1)
		patch = strings.Replace(patch, "@@ -0,0 +1 @@\n+#!/bin/bash\n", "@@ -0,0 +1,2 @@\n+#!/bin/bash\n+"+script+"\n", 1)
	}
	commit, err := from.Apply(t.Context(), from.Base, patch)
	if err != nil {
		t.Fatal(err)
	}
	result, err := runner.Score(t.Context(), one, from, commit)
	if err != nil || result.Reward != 0 || result.Problem != "" {
		t.Errorf("%+v, %v", result, err)
	}
	// The linker says each time that it cannot load what is not there: for the shell, for that of the
	// tests and for grep, and for nothing else.
	if loads := strings.Count(result.Output, "/app/before.so"); loads > 3 {
		t.Errorf("%d programs had the libraries of the image: %s", loads, result.Output)
	}
	noContainers(t, engine)
}

// What the image has at the place of the tests is not there when they run.
//
//nolint:paralleltest // it lists the containers of all
func TestOnlyTestsOfTheSet(t *testing.T) {
	runner, engine := newRunner(t)
	one, from := prepare(t, runner, folder(t, map[string]string{
		"environment/Dockerfile": "FROM " + os.Getenv("TORYO_TEST_DOCKER_IMAGE") + "\nWORKDIR /app\nCOPY app/ /app/\nRUN mkdir /app/tests && ln -s /app/tests /tests\n",
		"tests/test.sh":          "#!/bin/bash\necho \"$(ls /tests)\"\necho 1 > /logs/verifier/reward.txt\n",
	}))
	commit, err := from.Apply(t.Context(), from.Base, file("tests/conftest.py", "x")+file("tests/test.sh", "echo mine"))
	if err != nil {
		t.Fatal(err)
	}
	if result, err := runner.Score(t.Context(), one, from, commit); err != nil || result.Reward != 1 || result.Output != "test.sh\n" {
		t.Errorf("%+v, %v", result, err)
	}
	noContainers(t, engine)
}
