package docker

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestStandardErrorWithoutResources: what the guest printed before it ended tells a lack of
// resources.
func TestStandardErrorWithoutResources(t *testing.T) {
	t.Parallel()
	for printed, exhausted := range map[string]bool{
		"fork/exec /bin/sh: No space left on device\n": true, "exec format error\n": false, "": false,
	} {
		var made box
		if _, err := made.stderr.Write([]byte(printed)); err != nil {
			t.Fatal(err)
		}
		err := made.explain(task.Errorf(task.Unavailable, "the sandbox did not begin"))
		if task.CodeOf(err) != task.Unavailable || sandbox.IsExhausted(err) != exhausted {
			t.Errorf("%q: %v, a lack of resources: %t", printed, err, sandbox.IsExhausted(err))
		}
	}
}
