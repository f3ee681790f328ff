package cloud

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
)

// framed makes a frame by the specification.
func framed(t testing.TB, headers map[string]string, payload string) []byte {
	t.Helper()
	var named []byte
	for name, value := range headers {
		named = append(append(append(named, byte(len(name))), name...), 7)
		named = append(binary.BigEndian.AppendUint16(named, uint16(len(value))), value...)
	}
	made := binary.BigEndian.AppendUint32(nil, uint32(16+len(named)+len(payload)))
	made = binary.BigEndian.AppendUint32(made, uint32(len(named)))
	made = binary.BigEndian.AppendUint32(made, crc32.ChecksumIEEE(made))
	made = append(append(made, named...), payload...)
	return binary.BigEndian.AppendUint32(made, crc32.ChecksumIEEE(made))
}

func chunkOf(t testing.TB, text string) []byte {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"bytes": []byte(text), "p": "abc"})
	if err != nil {
		t.Fatal(err)
	}
	return framed(t, map[string]string{":message-type": "event", ":event-type": "chunk"}, string(payload))
}

func translated(data []byte) (string, error) {
	text, err := io.ReadAll(&eventBody{from: io.NopCloser(bytes.NewReader(data))})
	return string(text), err
}

func TestFramesBecomeEvents(t *testing.T) {
	t.Parallel()
	all := bytes.Join([][]byte{
		chunkOf(t, `{"type":"message_start"}`),
		framed(t, map[string]string{":message-type": "event", ":event-type": "later-kind"}, "x"),
		chunkOf(t, "{\n\"type\": \"message_stop\"\n}"),
		framed(t, map[string]string{":message-type": "exception", ":exception-type": "throttlingException"}, `{"message":"slow down"}`),
		framed(t, map[string]string{":message-type": "error", ":error-code": "InternalError", ":error-message": "oops"}, ""),
	}, nil)
	got, err := translated(all)
	want := "data: {\"type\":\"message_start\"}\n\ndata: {\"type\":\"message_stop\"}\n\n" +
		"data: {\"error\":{\"message\":\"slow down\",\"type\":\"rate_limit_error\"},\"type\":\"error\"}\n\n" +
		"data: {\"error\":{\"message\":\"oops\",\"type\":\"InternalError\"},\"type\":\"error\"}\n\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestDamagedFrames(t *testing.T) {
	t.Parallel()
	whole := chunkOf(t, `{"type":"ping"}`)
	unreadable := func(data []byte) {
		t.Helper()
		var wrong *llm.UnreadableError
		if text, err := translated(data); !errors.As(err, &wrong) || text != "" {
			t.Errorf("%q, %v, want that it cannot be read", text, err)
		}
	}
	for at := range whole { // whichever bit is wrong, a checksum says so
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1
		unreadable(damaged)
	}
	for cut := 1; cut < len(whole); cut++ {
		if text, err := translated(whole[:cut]); !errors.Is(err, io.ErrUnexpectedEOF) || text != "" {
			t.Errorf("cut after %d: %q, %v", cut, text, err)
		}
	}
	// Lengths are looked at before anything of that length is made.
	for _, lengths := range [][2]uint32{{0xffffffff, 0}, {15, 0}, {20, 5}, {largestFrame + 1, 0}} {
		prelude := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, lengths[0]), lengths[1])
		unreadable(binary.BigEndian.AppendUint32(prelude, crc32.ChecksumIEEE(prelude)))
	}
	unreadable(framed(t, map[string]string{":message-type": "event", ":event-type": "chunk"}, "<html>"))
}

func FuzzFrames(f *testing.F) {
	f.Add(chunkOf(f, `{"type":"ping"}`))
	f.Add([]byte(strings.Repeat("\x00", 40)))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = translated(data)
		_, _ = readHeaders(data)
	})
}
