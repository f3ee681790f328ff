package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
)

// Version is the command toryo version.
func Version(p site.Program) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version. With --json also the number of the database's schema, and for a release
the commit that it was built from, with its date.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			build, err := site.ThisBuild()
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(p.Stdout, build)
			}
			_, err = fmt.Fprintf(p.Stdout, "toryo %s %s %s/%s\n", build.Version, build.Go, build.OS, build.Arch)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print everything that is known of this build as JSON")
	return c
}
