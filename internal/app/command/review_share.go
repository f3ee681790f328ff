package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// reviewShareCommand lets others read a review, or takes that back.
func reviewShareCommand(p site.Program, back bool) *cobra.Command {
	o := onReviews{Program: p}
	everyone := false
	c := &cobra.Command{
		Use:   "share REVIEW [LOGIN]...",
		Short: "Share one of your reviews; without a name, list who it is shared with",
		Long: `Share one of your reviews. Everyone who can read it can also start conversations about it.
Conversations are not shared. Without --everyone and without a name, list who it is shared
with.`,
		Args: cobra.MinimumNArgs(1),
	}
	if back {
		c.Use, c.Short, c.Long = "unshare REVIEW [LOGIN]...", "Take back what toryo review share has allowed", ""
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		with := args[1:]
		if everyone {
			with = append(with, store.Everyone)
		}
		return o.run(c.Context(), func(service *review.Service, who string) error {
			return o.share(c.Context(), service, who, args[0], with, back)
		})
	}
	o.bind(c)
	c.Flags().BoolVar(&everyone, "everyone", false, "all who can sign in")
	return c
}

func (o *onReviews) share(ctx context.Context, service *review.Service, who, id string, with []string, back bool) error {
	do := service.Share
	if back {
		do = service.Unshare
	}
	for _, login := range with {
		if err := do(ctx, who, id, login); err != nil {
			return err
		}
	}
	shared, err := service.SharedWith(ctx, who, id)
	if err != nil {
		return err
	}
	if len(shared) == 0 {
		_, err := fmt.Fprintln(o.Stdout, "shared with nobody")
		return err
	}
	for _, login := range shared {
		if login == store.Everyone {
			login = "everyone"
		}
		if _, err := fmt.Fprintln(o.Stdout, "shared with", textfmt.Plain(login)); err != nil {
			return err
		}
	}
	return nil
}
