package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// The names under which the program is started again.
const (
	guestName   = "sandbox-guest"
	launchName  = "sandbox-launch"
	relayName   = "sandbox-relay"
	installName = "sandbox-install"
	versionName = "sandbox-version"
)

// Confinement restricts the process that calls it and all that it starts.
type Confinement func(Options) error

// Main does the guest's work and does not return when the program was started as
// a guest. The program calls it before anything else; so does a test binary that
// starts sandboxes, in TestMain.
func Main(confinements map[string]Confinement) {
	if len(os.Args) != 3 {
		return
	}
	var err error
	switch os.Args[1] {
	case guestName:
		err = serveArgument(os.Args[2], confinements)
	case launchName:
		err = launch(os.Args[2])
	case relayName:
		err = relay(os.Args[2])
	case installName:
		err = install(os.Args[2])
	case versionName:
		_, err = fmt.Fprintln(os.Stdout, version)
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "toryo sandbox:", err)
		exit(1)
	}
	exit(0)
}

// exit ends the program, which is a guest and nothing else. [os.Exit] would have the race
// detector wait for a second, and whoever stops a sandbox waits for its guest.
func exit(code int) { syscall.Exit(code) } //nolint:revive // see above

// Arguments are those with which the program has to be started to be a guest.
func Arguments(options Options) ([]string, error) {
	text, err := json.Marshal(options)
	return []string{guestName, string(text)}, err
}

// RelayArguments are those with which the program carries the link of a guest on
// its standard streams. Many may come one after the other.
func RelayArguments(socket string) []string { return []string{relayName, socket} }

// InstallArguments are those with which the program copies [Program] to a path.
func InstallArguments(to string) []string { return []string{installName, to} }

func relay(socket string) error {
	if err := hide(); err != nil { // what is written to its standard output is taken for the guest's
		return err
	}
	connection, err := dialGuest(socket)
	if err != nil {
		return err
	}
	go func() { // ends with the process
		_, _ = io.Copy(connection, os.Stdin)
		os.Exit(0) //nolint:revive // the host is gone
	}()
	_, err = io.Copy(os.Stdout, connection)
	return err
}

const (
	// guestBegins is how long a guest may take to listen. A relay may be there before it.
	guestBegins = 10 * time.Second
	dialAgain   = 5 * time.Millisecond
)

// dialGuest connects with a guest that runs or is about to.
func dialGuest(socket string) (net.Conn, error) {
	again := time.NewTicker(dialAgain)
	defer again.Stop()
	for begun := time.Now(); ; <-again.C {
		connection, err := net.Dial("unix", socket) //nolint:noctx // the process lives as long as the connection
		if err == nil || time.Since(begun) > guestBegins {
			return connection, err
		}
	}
}

// install copies the guest's program. It appears under its name when it is whole.
func install(to string) error {
	program, err := Program()
	if err != nil {
		return err
	}
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()                                            // it was only read
	made, err := os.OpenFile(to+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755) //nolint:gosec // it is a program
	if err != nil {
		return err
	}
	_, err = io.Copy(made, from)
	if err := errors.Join(err, made.Close()); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

func serveArgument(text string, confinements map[string]Confinement) error {
	var options Options
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		return fmt.Errorf("read the guest's options: %w", err)
	}
	if options.Confine != "" {
		confine, known := confinements[options.Confine]
		if !known {
			return fmt.Errorf("the confinement %q is not in this program", options.Confine)
		}
		if err := confine(options); err != nil {
			return fmt.Errorf("confine the process: %w", err)
		}
		options.Confine = ""
		return startAgain(options)
	}
	return serve(options)
}

// startAgain puts the guest anew in the place of this process. A process is
// confined thread by thread, and to the kernel each thread may be in a sandbox of
// its own, whose processes the others must not signal. What begins anew is in one.
func startAgain(options Options) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	arguments, err := Arguments(options)
	if err != nil {
		return err
	}
	err = syscall.Exec(program, append([]string{program}, arguments...), os.Environ())
	return fmt.Errorf("start the confined program: %w", err)
}
