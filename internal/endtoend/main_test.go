package endtoend

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toryo-dev/toryo/internal/app"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
)

// The test binary is the program too, and the inside of the sandboxes that its
// agents start.
func TestMain(m *testing.M) {
	guest.Main(nil)
	testscript.Main(m, map[string]func(){"toryo": func() { os.Exit(app.MainAround(leash)) }})
}
