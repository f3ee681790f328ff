package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// LLM is the command toryo llm.
func LLM(p site.Program) *cobra.Command {
	return cli.Group("llm", "Try the model, list the models that are known, and see what was spent", llmTryCommand(p), llmModelsCommand(p), llmSpentCommand(p))
}

// namedModels are the names in llm_overrides that are neither phases nor roles.
var namedModels = []string{config.SummaryModel, config.ChatModel, config.ReviewModel}

type llmTry struct {
	site.Program
	settings cli.Settings
	modelFor string
}

func llmTryCommand(p site.Program) *cobra.Command {
	o := llmTry{Program: p}
	c := &cobra.Command{
		Use:   "try [PROMPT]",
		Short: "Send a prompt to the configured model to check that it works",
		Long: `Make one real call to the configured model and print its answer, the tokens, the cost
and the time that it took. The call is not counted against the budget.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			prompt := "Say hello in one short sentence."
			if len(args) == 1 {
				prompt = args[0]
			}
			return o.run(c.Context(), prompt)
		},
	}
	o.settings.Bind(c)
	c.Flags().StringVar(&o.modelFor, "model-for", "", "ask the model for this `NAME` of llm_overrides: a phase, "+strings.Join(namedModels, ", ")+" or a role")
	return c
}

func (o llmTry) run(ctx context.Context, prompt string) error {
	loaded, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	if _, found := loaded.LLMOverrides[o.modelFor]; !found && o.modelFor != "" &&
		!slices.Contains(namedModels, o.modelFor) && !task.Phase(o.modelFor).Valid() {
		return task.Errorf(task.NotFound, "%q is no phase, and llm_overrides does not have it", o.modelFor).
			WithHint("see llm_overrides in toryo.yaml")
	}
	answered, err := askOnce(ctx, o.Program, loaded, question{text: prompt, modelFor: o.modelFor})
	if err != nil {
		return err
	}
	return answered.print(o.Stdout)
}

// question is what a model is asked.
type question struct {
	text     string
	modelFor string // a name of llm_overrides, or nothing
	most     int64  // tokens of the answer; 0 means as configured
}

// answered is what came of it.
type answered struct {
	llm.Response
	info llm.Info
	took time.Duration
}

// askOnce makes one call through the configured model, with everything that a
// run's calls pass through except the budget.
func askOnce(ctx context.Context, p site.Program, c config.Config, q question) (answered, error) {
	made, err := site.NewModels(c, nil, new(llm.Outages), site.QuietLog(p, c))
	if err != nil {
		return answered{}, err
	}
	model, err := made.Model(llm.Account{}, q.modelFor)
	if err != nil {
		return answered{}, err
	}
	begun := time.Now()
	response, err := model.Chat(ctx, llm.Request{Messages: []llm.Message{llm.UserText(q.text)}, MaxTokens: q.most}, nil)
	return answered{response, model.Info(), time.Since(begun).Round(time.Millisecond)}, err
}

func (a answered) print(to io.Writer) error {
	model, cost := a.info.Provider+" "+a.Model, a.Cost.String()
	if a.Scripted {
		model += " (scripted)"
	}
	if a.info.Prices == (llm.Prices{}) {
		cost = "not known: set the prices of the model"
	}
	if by := a.Standin; by != nil {
		model += fmt.Sprintf(", in place of %s: %s", by.Instead, by.Reason)
	}
	said := textfmt.Plain(a.Message.Text())
	if a.Stop == llm.StopMaxTokens {
		said += " […]"
	}
	out := textfmt.Count(a.Usage.Output) + " out"
	if a.Usage.Reasoning > 0 {
		out += " (" + textfmt.Count(a.Usage.Reasoning) + " of them reasoning)"
	}
	_, err := fmt.Fprintf(to, "%s\n\nmodel   %s\ntokens  %s in (%s cached), %s\ncost    %s\ntook    %s\n",
		said, textfmt.Plain(model), textfmt.Count(a.Usage.Input), textfmt.Count(a.Usage.Cached), out, cost, a.took)
	return err
}

func llmSpentCommand(p site.Program) *cobra.Command {
	var s cli.Settings
	c := &cobra.Command{
		Use:   "spent",
		Short: "Show today's model usage and the budget",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.WithData(c.Context(), p, &s, cli.Fail, func(loaded config.Config, database store.Store) error {
				return printSpent(c.Context(), p, loaded, database)
			})
		},
	}
	s.Bind(c, cli.DataFlag)
	return c
}

func printSpent(ctx context.Context, p site.Program, c config.Config, database store.Spending) error {
	books := ledger.Ledger{Store: database, Limits: site.LimitsOf(c.Budget), Now: p.Now}
	_, ofDay, err := books.Spent(ctx, "")
	if err != nil {
		return err
	}
	tokens, money := "no limit", "no limit"
	if limit := books.Limits.Day.Tokens; limit > 0 {
		tokens = fmt.Sprintf("the limit is %s", textfmt.Count(limit))
	}
	if limit := books.Limits.Day.Money; limit > 0 {
		money = fmt.Sprintf("the limit is %s", limit)
	}
	_, err = fmt.Fprintf(p.Stdout, "%s (UTC), running calls included\ntokens  %s (%s)\ncost    %s (%s)\n",
		p.Now().UTC().Format(time.DateOnly), textfmt.Count(ofDay.Tokens), tokens, ofDay.Money, money)
	return err
}
