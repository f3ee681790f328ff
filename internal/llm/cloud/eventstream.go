package cloud

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/toryo-dev/toryo/internal/llm"
)

// The event stream of AWS is a sequence of frames:
//
//	4 bytes  length of the frame
//	4 bytes  length of its headers
//	4 bytes  CRC-32 of these eight bytes
//	         headers: length and name, type, value
//	         payload
//	4 bytes  CRC-32 of all before
const (
	preludeSize  = 12
	checksumSize = 4
	largestFrame = 16 << 20 // by the specification
	stringHeader = 7        // the type of a header with a text; sizes of the others are in headerSizes
)

// headerSizes are the sizes of the values of fixed length, by type.
var headerSizes = map[byte]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}

// frame is one message of an event stream.
type frame struct {
	headers map[string]string // those that are texts
	payload []byte
}

var (
	errFrame    = errors.New("a frame of the event stream has impossible lengths")
	errChecksum = errors.New("a frame of the event stream does not have its checksum")
)

// readFrame reads a frame; io.EOF means that there are no more.
func readFrame(from io.Reader) (frame, error) {
	var prelude [preludeSize]byte
	if _, err := io.ReadFull(from, prelude[:]); err != nil {
		return frame{}, err
	}
	whole, headers := binary.BigEndian.Uint32(prelude[:4]), binary.BigEndian.Uint32(prelude[4:8])
	if binary.BigEndian.Uint32(prelude[8:]) != crc32.ChecksumIEEE(prelude[:8]) {
		return frame{}, &llm.UnreadableError{Text: string(prelude[:]), Err: errChecksum}
	}
	if whole < preludeSize+checksumSize || whole > largestFrame || headers > whole-preludeSize-checksumSize {
		return frame{}, &llm.UnreadableError{Err: errFrame}
	}
	rest := make([]byte, whole-preludeSize)
	if _, err := io.ReadFull(from, rest); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	body, sum := rest[:len(rest)-checksumSize], rest[len(rest)-checksumSize:]
	if crc32.Update(crc32.ChecksumIEEE(prelude[:]), crc32.IEEETable, body) != binary.BigEndian.Uint32(sum) {
		return frame{}, &llm.UnreadableError{Err: errChecksum}
	}
	read, err := readHeaders(body[:headers])
	return frame{read, body[headers:]}, err
}

func readHeaders(data []byte) (map[string]string, error) {
	headers := map[string]string{}
	wrong := &llm.UnreadableError{Err: errFrame}
	for len(data) > 0 {
		length := int(data[0])
		if len(data) < 1+length+1 {
			return nil, wrong
		}
		name, kind := string(data[1:1+length]), data[1+length]
		data = data[2+length:]
		size, fixed := headerSizes[kind]
		if !fixed { // bytes or a text, with a length before it
			if len(data) < 2 {
				return nil, wrong
			}
			size = int(binary.BigEndian.Uint16(data))
			data = data[2:]
		}
		if len(data) < size {
			return nil, wrong
		}
		if kind == stringHeader {
			headers[name] = string(data[:size])
		}
		data = data[size:]
	}
	return headers, nil
}

// eventBody is the event stream of an answer of Bedrock as the server-sent events that Anthropic
// itself sends.
type eventBody struct {
	from  io.ReadCloser
	ready bytes.Buffer
	err   error
}

// Read implements [io.Reader].
func (b *eventBody) Read(p []byte) (int, error) {
	for b.ready.Len() == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.err = b.next()
	}
	return b.ready.Read(p)
}

// Close implements [io.Closer].
func (b *eventBody) Close() error { return b.from.Close() }

func (b *eventBody) next() error {
	read, err := readFrame(b.from)
	if err != nil {
		return err
	}
	switch read.headers[":message-type"] {
	case "event":
		if read.headers[":event-type"] != "chunk" {
			return nil
		}
		var chunk struct {
			Bytes []byte `json:"bytes"`
		}
		if err := json.Unmarshal(read.payload, &chunk); err != nil {
			return &llm.UnreadableError{Text: string(read.payload), Err: err}
		}
		return b.event(chunk.Bytes)
	case "exception":
		var said struct{ Message string }
		_ = json.Unmarshal(read.payload, &said) // the type says most of it
		return b.failure(read.headers[":exception-type"], said.Message)
	case "error":
		return b.failure(read.headers[":error-code"], read.headers[":error-message"])
	}
	return nil
}

// event writes one event. Line breaks in it are between the values of JSON, and mean nothing.
func (b *eventBody) event(data []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil {
		return &llm.UnreadableError{Text: string(data), Err: err}
	}
	fmt.Fprintf(&b.ready, "data: %s\n\n", line.Bytes())
	return nil
}

// failure writes an error as Anthropic does.
func (b *eventBody) failure(kind, message string) error {
	body, err := json.Marshal(anthropicError(kind, message))
	if err != nil {
		return err
	}
	return b.event(body)
}
