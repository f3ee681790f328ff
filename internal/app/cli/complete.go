package cli

import "github.com/spf13/cobra"

// CompleteFlag lets the shell complete the value of a flag that takes one of a few. The flag
// has to be there.
func CompleteFlag(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a fault of the program, which every start shows
	}
}

// CompleteArgument lets the shell complete one argument, counted from 0, that is one of a few.
// The others are not completed.
func CompleteArgument(c *cobra.Command, at int, values ...string) {
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) != at {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}
