package guest

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// What a command has printed is not lost when the guest comes to it late.
func TestOutputThatIsReadLate(t *testing.T) {
	t.Parallel()
	host, stream := net.Pipe()
	out := newOutput(stream, 1<<20)
	var pipes outputPipes
	if err := pipes.open(out); err != nil {
		t.Fatal(err)
	}
	first, second := strings.Repeat("a", 1000), strings.Repeat("b", 1000)
	if _, err := pipes.writers[0].WriteString(first); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := host.Read(one); err != nil { // the guest has begun to send it
		t.Fatal(err)
	}
	// The host does not read on, and the guest waits for that until its deadline is over.
	if _, err := pipes.writers[0].WriteString(second); err != nil {
		t.Fatal(err)
	}
	for _, reader := range pipes.readers {
		if err := reader.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() { // ends with the pipes
		defer close(done)
		pipes.reading.Wait()
		out.finish(end{})
	}()
	var got strings.Builder
	for {
		kind, data, err := readFrame(io.MultiReader(bytes.NewReader(one), host))
		one = nil
		if err != nil {
			t.Fatal(err)
		}
		if kind == frameEnd {
			var last end
			if err := json.Unmarshal(data, &last); err != nil || last.Bytes != 2000 {
				t.Errorf("%+v, %v", last, err)
			}
			break
		}
		got.Write(data)
	}
	<-done
	pipes.started()
	if got.String() != first+second {
		t.Errorf("%d bytes of %d came", got.Len(), len(first+second))
	}
}

// A line of one output does not stand behind half a line of the other, wherever in the log it is.
func TestLinesOfTwoOutputs(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"at the beginning": "", "after much else": strings.Repeat("much else\n", 100)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, stream := net.Pipe()
			const limit = 1000
			out := newOutput(stream, limit)
			go func() { // ends when it is read
				out.add(frameStdout, []byte(before))
				out.add(frameStderr, []byte("add.sh: 1: "))
				out.add(frameStdout, []byte("FAIL: test_add\nFAIL: "))
				out.add(frameStdout, []byte("test_zero\n"))
				out.add(frameStderr, []byte("no number"))
				out.add(frameStdout, []byte("FAIL: test_one\n"))
				out.finish(end{})
			}()
			result, err := collect(host, sandbox.Command{OutputLimit: limit})
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(result.Log), "\n")
			for _, want := range []string{"FAIL: test_add", "FAIL: test_zero", "FAIL: test_one", "add.sh: 1: ", "no number"} {
				if !slices.Contains(lines, want) {
					t.Errorf("%q is no line of %q", want, result.Log)
				}
			}
			if before == "" && string(result.Stdout) != "FAIL: test_add\nFAIL: test_zero\nFAIL: test_one\n" {
				t.Errorf("the standard output is %q", result.Stdout)
			}
		})
	}
}
