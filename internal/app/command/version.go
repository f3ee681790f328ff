package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/site"
)

// Version is the command toryo version.
func Version(p site.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.Stdout, "toryo %s %s %s/%s\n", site.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
