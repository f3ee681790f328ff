package guest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// The guest protocol
//
// Host and guest share one connection: the standard streams of the guest, or a socket where
// the engine has none. yamux makes many streams of it. Each request of the host opens a
// stream of its own, on which both ends send frames: a byte for the kind, four for the
// length, and the data, which is JSON unless it is output or the content of a file.
//
// A command that prints a line and fails (abridged; commands and paths are in base64, since
// they need not be UTF-8):
//
//	host → guest  frameRequest  {"command": "make", "session": "main", "limit": 65536}
//	guest → host  frameStdout   cc -c gate.c
//	guest → host  frameStderr   gate.c:3: error
//	guest → host  frameEnd      {"exit_code": 2, "bytes": 29}
//
// The host may send frameKill at any time, upon which the guest kills all that runs in the
// sandbox and sends frameEnd. Once a quarter of the limit was printed, the guest keeps only
// the end of the output and sends it as frameTail before frameEnd, with the number of bytes
// that are missing. Programs in the sandbox that use the proxy go the other way: the guest
// opens a stream and the host connects it with the proxy.
//
// Neither side believes the other. Code in the sandbox may have taken over the guest, so the
// host bounds each frame and each answer and takes every path as untrusted.

// Options tell the guest how to behave in the sandbox that it is in.
type Options struct {
	Home      string `json:"home"`
	Workspace string `json:"workspace"`
	State     string `json:"state"` // folder for the shell's state
	// Temporary is the folder for temporary files, when it is not /tmp.
	Temporary string `json:"temporary,omitempty"`
	// OwnProcesses says that the guest is the first process of a process
	// namespace of its own, so that it may kill everything that it can see.
	OwnProcesses bool `json:"own_processes"`
	// Memory and Processes are limits that the guest watches itself; 0 leaves
	// them to the engine.
	Memory    int64 `json:"memory"`
	Processes int   `json:"processes"`
	// CountUser says that the processes of the user are those of the sandbox
	// alone, so that the kernel's limit per user can serve.
	CountUser bool `json:"count_user"`
	// Proxy is the address inside at which programs reach the proxy; empty for
	// none.
	Proxy string `json:"proxy"`
	// Env are variables for all commands. They come with the host's greeting: among
	// the arguments of a process everybody on the machine can read them.
	Env map[string]string `json:"-"`
	// Inherit says that commands get the guest's own variables too, which are those
	// of the image where nobody else knows them.
	Inherit bool `json:"inherit,omitempty"`
	// Confine is the name of a [Confinement] that the guest puts on itself before
	// it does anything else, with what it leaves open.
	Confine  string   `json:"confine"`
	Readable []string `json:"readable"`
	Writable []string `json:"writable"`
	// Socket is where the guest takes connections that carry its link with the
	// host, one after the other; without it the standard streams are the session.
	// Patience is how long it waits for one before it takes the host for gone.
	Socket   string        `json:"socket,omitempty"`
	Patience time.Duration `json:"patience,omitempty"`
	// Disk is what workspace, home and temporary files may take together, where
	// the host cannot look; 0 leaves that to the host.
	Disk int64 `json:"disk,omitempty"`
	// Leave are names of folders in the workspace that are not sent to the host
	// unless they came from there.
	Leave []string `json:"leave,omitempty"`
	// Snapshots is the folder to which a snapshot is written, and Source the one from
	// which one is restored.
	Snapshots string `json:"shelf,omitempty"`
	Source    string `json:"source,omitempty"`
}

// rawString is text that need not be UTF-8, such as a path. A string in JSON has to
// be, so it goes as bytes.
type rawString string

// MarshalJSON implements [json.Marshaler].
func (r rawString) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(r)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (r *rawString) UnmarshalJSON(data []byte) error {
	var raw []byte
	err := json.Unmarshal(data, &raw)
	*r = rawString(raw)
	return err
}

// request is what the host asks on a stream that it opened.
type request struct {
	Hello bool `json:"hello,omitempty"`
	// Env are variables for all commands, in place of those of the options.
	Env     map[string]string `json:"env,omitempty"`
	Command rawString         `json:"command,omitempty"`
	Folder  rawString         `json:"folder,omitempty"`  // of the workspace
	Session string            `json:"session,omitempty"` // whose state the shell begins with
	Limit   int               `json:"limit,omitempty"`   // of output
	// FileSize is the largest file that the command may write, in bytes.
	FileSize int64 `json:"file_size,omitempty"`
	// Fresh says that the shell takes no state over and leaves none.
	Fresh bool `json:"fresh,omitempty"`

	Do     requestKind `json:"do,omitempty"`
	Most   int64       `json:"most,omitempty"`   // what the workspace may take at the host
	Digest string      `json:"digest,omitempty"` // of the snapshot to restore
	Route  string      `json:"route,omitempty"`  // address of the proxy; empty for the host
	Reach  []string    `json:"reach,omitempty"`  // addresses to try
}

// requestKind is the kind of a request that is not a command.
type requestKind string

const (
	takeFiles   requestKind = "take"    // an archive for the workspace follows
	sendFiles   requestKind = "send"    // answered with an archive of what has changed, which the host answers
	keepFiles   requestKind = "keep"    // the names that the workspace had before follow
	restoreHome requestKind = "restore" // what was kept goes back
	changeRoute requestKind = "route"
	tryToReach  requestKind = "reach"
	leave       requestKind = "leave" // end everything, and then itself
	// killEverything is asked for when a limit is exceeded while no command runs.
	killEverything requestKind = "kill"
)

// answer says how such a request ended, or what became of an archive.
type answer struct {
	Error string `json:"error,omitempty"`
	// Exhausted says that the error is one of [sandbox.IsExhausted].
	Exhausted bool     `json:"exhausted,omitempty"`
	Digest    string   `json:"digest,omitempty"`
	Bytes     int64    `json:"bytes,omitempty"`
	Reached   []string `json:"reached,omitempty"`
	// Skipped are paths of an archive that could not be made. Only the host says so.
	Skipped []rawString `json:"skipped,omitempty"`
}

func readAnswer(data []byte, into *answer) error {
	var said answer
	if err := json.Unmarshal(data, &said); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if said.Error != "" {
		return received(errors.New(said.Error), said.Exhausted)
	}
	if into != nil {
		*into = said
	}
	return nil
}

// protocolVersion changes with everything in this file that the other end would take for
// something else. A guest comes with an image, which may be older or newer than the host.
const protocolVersion = 3

// hello answers a hello.
type hello struct {
	Version int    `json:"version"`
	Shell   string `json:"shell"`
	Error   string `json:"error"`
	// Exhausted says that the error is one of [sandbox.IsExhausted].
	Exhausted bool `json:"exhausted,omitempty"`
}

// end is the last frame of a run.
type end struct {
	ExitCode int    `json:"exit_code"`
	Exceeded string `json:"exceeded"`
	Bytes    int64  `json:"bytes"`
	Dropped  int64  `json:"dropped"`
	Error    string `json:"error"` // the command could not be started
	// Exhausted says that the error is one of [sandbox.IsExhausted].
	Exhausted bool `json:"exhausted,omitempty"`
}

// failedEnd is the end of a command that could not be started.
func failedEnd(err error) end { return end{Error: err.Error(), Exhausted: sandbox.IsExhausted(err)} }

// failedAnswer is the answer to a request that failed.
func failedAnswer(err error) answer {
	return answer{Error: err.Error(), Exhausted: sandbox.IsExhausted(err)}
}

// received is an error of the guest, with the reason that it sent. Older guests of the same
// version of the protocol send none: what they say is read for it.
func received(err error, exhausted bool) error {
	if exhausted {
		return sandbox.Exhausted(err)
	}
	return sandbox.WithTextReason(err, err.Error())
}

// A frame is a kind, a length and that many bytes.
type frameKind byte

const (
	frameStdout frameKind = 1
	frameStderr frameKind = 2
	frameTail   frameKind = 3 // the end of the output, after something was dropped
	frameEnd    frameKind = 4
	frameHello  frameKind = 5
	// frameRequest and frameKill come from the host.
	frameRequest frameKind = 6
	frameKill    frameKind = 7
	// Those of archives, and the answer to a request.
	frameEntry   frameKind = 8
	frameContent frameKind = 9
	frameDone    frameKind = 10
	frameAnswer  frameKind = 11
)

// largestFrame bounds what either side believes. Requests carry a whole command.
const largestFrame = 8 << 20

func writeFrame(to io.Writer, kind frameKind, data []byte) error {
	if len(data) > largestFrame {
		return fmt.Errorf("a frame of %d bytes is too long", len(data))
	}
	buffer := make([]byte, 5, 5+len(data))
	buffer[0] = byte(kind)
	binary.BigEndian.PutUint32(buffer[1:], uint32(len(data))) //nolint:gosec // checked above
	_, err := to.Write(append(buffer, data...))
	return err
}

func writeMessage(to io.Writer, kind frameKind, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return writeFrame(to, kind, data)
}

func readFrame(from io.Reader) (frameKind, []byte, error) {
	var header [5]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(header[1:])
	if length > largestFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is too long", length)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(from, data); err != nil {
		return 0, nil, err
	}
	return frameKind(header[0]), data, nil
}
