package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/task"
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
		with := review.Readers{Everyone: everyone, People: args[1:]}
		if slices.ContainsFunc(with.People, func(login string) bool { return strings.TrimSpace(login) == "" }) {
			return task.Errorf(task.Usage, "a LOGIN is empty").WithHint("name a person, or give --everyone")
		}
		return o.run(c.Context(), func(service *review.Service, who string) error {
			return o.share(c.Context(), service, who, args[0], with, back)
		})
	}
	o.bind(c)
	c.Flags().BoolVar(&everyone, "everyone", false, "all who can sign in")
	return c
}

func (o *onReviews) share(ctx context.Context, service *review.Service, who, id string, with review.Readers, back bool) error {
	do := service.Share
	if back {
		do = service.Unshare
	}
	if with.Count() > 0 {
		if err := do(ctx, who, id, with); err != nil {
			return err
		}
	}
	shared, err := service.SharedWith(ctx, who, id)
	if err != nil {
		return err
	}
	if shared.Count() == 0 {
		_, err := fmt.Fprintln(o.Stdout, "shared with nobody")
		return err
	}
	if shared.Everyone {
		if _, err := fmt.Fprintln(o.Stdout, "shared with everyone"); err != nil {
			return err
		}
	}
	for _, login := range shared.People {
		if _, err := fmt.Fprintln(o.Stdout, "shared with", textfmt.Plain(login)); err != nil {
			return err
		}
	}
	return nil
}
