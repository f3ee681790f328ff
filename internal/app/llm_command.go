package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

func (p commands) llmCommand() *cobra.Command {
	return group("llm", "Try the model, and see what was spent", p.llmTryCommand(), p.llmSpentCommand())
}

// namedModels are the names in llm_overrides that are neither phases nor roles.
var namedModels = []string{config.SummaryModel, config.ChatModel, config.ReviewModel}

type llmTry struct {
	program
	settings settings
	modelFor string
}

func (p commands) llmTryCommand() *cobra.Command {
	o := llmTry{program: p.program}
	c := &cobra.Command{
		Use:   "try [PROMPT]",
		Short: "Ask the configured model something, to see that it works",
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
	o.settings.bind(c)
	c.Flags().StringVar(&o.modelFor, "model-for", "", "ask the model for this `NAME` of llm_overrides: a phase, "+strings.Join(namedModels, ", ")+" or a role")
	return c
}

func (o llmTry) run(ctx context.Context, prompt string) error {
	loaded, err := o.settings.load(o.program)
	if err != nil {
		return err
	}
	if _, found := loaded.LLMOverrides[o.modelFor]; !found && o.modelFor != "" &&
		!slices.Contains(namedModels, o.modelFor) && !task.Phase(o.modelFor).Valid() {
		return task.Errorf(task.NotFound, "%q is no phase, and llm_overrides does not have it", o.modelFor).
			WithMend("see llm_overrides in toryo.yaml")
	}
	answered, err := o.askOnce(ctx, loaded, question{text: prompt, modelFor: o.modelFor})
	if err != nil {
		return err
	}
	return answered.print(o.stdout)
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
func (p program) askOnce(ctx context.Context, c config.Config, q question) (answered, error) {
	made, err := newModels(c, nil, p.quietLog(c))
	if err != nil {
		return answered{}, err
	}
	model, err := made.model(llm.Account{}, q.modelFor)
	if err != nil {
		return answered{}, err
	}
	begun := time.Now()
	response, err := model.Chat(ctx, llm.Request{Messages: []llm.Message{llm.UserText(q.text)}, MaxTokens: q.most}, nil)
	return answered{response, model.Info(), time.Since(begun).Round(time.Millisecond)}, err
}

// quietLog says what went wrong, and nothing else, for a command that talks to a
// person.
func (p program) quietLog(c config.Config) *slog.Logger {
	return slog.New(redact.Handler(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}), c.Redactor()))
}

func (a answered) print(to io.Writer) error {
	model, cost := a.info.Provider+" "+a.Model, a.Cost.String()
	if a.Scripted {
		model += " (scripted)"
	}
	if a.info.Prices == (llm.Prices{}) {
		cost = "not known: set the prices of the model"
	}
	said := plainText(a.Message.Text())
	if a.Stop == llm.StopMaxTokens {
		said += " […]"
	}
	_, err := fmt.Fprintf(to, "%s\n\nmodel   %s\ntokens  %d sent (%d from the cache), %d answered\ncost    %s\ntook    %s\n",
		said, plainText(model), a.Usage.Input, a.Usage.Cached, a.Usage.Output, cost, a.took)
	return err
}

// plainText is a text of a model without what a terminal would obey.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

func (p commands) llmSpentCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "spent",
		Short: "Say what models have used today, and what the budget is",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := s.load(p.program)
			if err != nil {
				return err
			}
			return p.printSpent(c.Context(), loaded)
		},
	}
	s.bind(c, dataFlag)
	return c
}

func (p program) printSpent(ctx context.Context, c config.Config) (err error) {
	database, err := openStore(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	books := ledger.Ledger{Store: database, Limits: limitsOf(c.Budget), Now: p.now}
	_, ofDay, err := books.Spent(ctx, "")
	if err != nil {
		return err
	}
	tokens, money := "no limit", "no limit"
	if limit := books.Limits.Day.Tokens; limit > 0 {
		tokens = fmt.Sprintf("the limit is %d", limit)
	}
	if limit := books.Limits.Day.Money; limit > 0 {
		money = fmt.Sprintf("the limit is %s", limit)
	}
	_, err = fmt.Fprintf(p.stdout, "%s (UTC), calls under way included\ntokens  %d (%s)\ncost    %s (%s)\n",
		p.now().UTC().Format(time.DateOnly), ofDay.Tokens, tokens, ofDay.Money, money)
	return err
}
