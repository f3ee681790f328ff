package guest

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"
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
