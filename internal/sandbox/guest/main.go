package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
)

// The names under which the program is started again.
const (
	guestName  = "sandbox-guest"
	launchName = "sandbox-launch"
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
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "toryo sandbox:", err)
		os.Exit(1) //nolint:revive // the program is a guest and nothing else
	}
	os.Exit(0) //nolint:revive // the program is a guest and nothing else
}

// Arguments are those with which the program has to be started to be a guest.
func Arguments(options Options) ([]string, error) {
	text, err := json.Marshal(options)
	return []string{guestName, string(text)}, err
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
