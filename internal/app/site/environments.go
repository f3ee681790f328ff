package site

import (
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/environment"
)

// EnvironmentsOf is the table of environments with what the configuration says
// of them.
func EnvironmentsOf(c config.Config) (*environment.Table, error) {
	table, err := environment.BuiltIn().WithImages(c.CommandExecutor.Environments).Only(c.CommandExecutor.Allowed)
	if err != nil {
		return nil, err
	}
	return table.WithDefault(c.CommandExecutor.DefaultEnvironment)
}
