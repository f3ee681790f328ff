package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/manual"
	"github.com/toryo-dev/toryo/internal/app/site"
)

// Man is the command toryo man, for whoever packs the program.
func Man(p site.Program) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages of all commands into a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			pages, err := manual.Write(c.Root(), args[0], site.Version())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Stdout, "wrote %d manual pages to %s\n", pages, args[0])
			return err
		},
	}
}
