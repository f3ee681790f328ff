package drill

import (
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
)

// SettleWithin is how long nothing may get done after the breaking before the drill gives up. A
// write to the forge that a server had taken when it was killed is taken up again after
// two minutes and a half, and later if the clock of the database was set back.
const SettleWithin = 8 * time.Minute

// WithoutSettings is the environment without what configures Toryo and without the
// credentials that it would take: a drill has nothing to do with the installation
// that is here.
func WithoutSettings(environ []string) (rest []string) {
	known := config.WellKnownVariables()
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, config.VariablePrefix) && !slices.Contains(known, name) {
			rest = append(rest, variable)
		}
	}
	return rest
}
