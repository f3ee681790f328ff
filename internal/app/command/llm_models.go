package command

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/llm/catalog"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

type llmModels struct {
	site.Program
	settings cli.Settings
	json     bool
}

func llmModelsCommand(p site.Program) *cobra.Command {
	o := llmModels{Program: p}
	c := &cobra.Command{
		Use:   "models",
		Short: "List the models that Toryo knows, with their limits and prices",
		Long: `List the models that Toryo knows: context and longest answer in tokens, prices of a million
tokens in US dollars where the vendor serves the model, whether it takes images, how its
reasoning is controlled, and the date of what is known. Those that the configuration names
have a star. A model that is not in the list works too: set its limits and prices.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	o.settings.Bind(c)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON, with the source of each row")
	return c
}

// knownModel is a row of the list.
type knownModel struct {
	catalog.Model

	UsedFor []string `json:"used_for,omitempty"` // "llm" and names of llm_overrides and roles
}

func (o llmModels) run() error {
	loaded, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	used := modelsUsed(loaded)
	var models []knownModel
	for _, model := range catalog.All() {
		models = append(models, knownModel{model, used[model.Name]})
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, map[string]any{"models": models})
	}
	table := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "  MODEL\tVENDOR\tCONTEXT\tANSWER\tINPUT\tCACHED\tCACHE WRITE\tOUTPUT\tTOOLS\tIMAGES\tREASONING\tDATE") // Flush says what went wrong
	for _, model := range models {
		_, _ = fmt.Fprintln(table, model.line()) // as above
	}
	return table.Flush()
}

// modelsUsed says of the known models which of them the configuration names, and for what.
func modelsUsed(c config.Config) map[string][]string {
	used := map[string][]string{}
	names := slices.Sorted(maps.Keys(c.LLMOverrides))
	for _, role := range c.RoleNames() {
		if !slices.Contains(names, role) {
			names = append(names, role)
		}
	}
	note := func(chosen config.LLM, use string) {
		if model, known := chosen.Find(); known {
			used[model.Name] = append(used[model.Name], use)
		}
	}
	note(c.LLM, "llm")
	if c.LLM.Fallback != (config.ModelOverride{}) {
		second, _ := c.FallbackFor()
		note(second, "llm.fallback")
	}
	for _, name := range names {
		if chosen := c.ModelFor(name); chosen.Model != c.LLM.Model {
			note(chosen, name)
		}
	}
	return used
}

func (m knownModel) line() string {
	mark := " "
	if len(m.UsedFor) > 0 {
		mark = "*"
	}
	price := func(price float64) string {
		if price == 0 {
			return "-"
		}
		return strconv.FormatFloat(price, 'f', -1, 64)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	return strings.Join([]string{
		mark + " " + m.Name, m.Vendor, textfmt.Count(m.Context), textfmt.Count(m.Answer),
		price(m.Input), price(m.Cached), price(m.CacheWrite), price(m.Output),
		yes[m.Tools], yes[m.Images], reasoningOf(m.Reasoning), m.Date,
	}, "\t")
}

// reasoningOf is how the reasoning of a model is controlled, in few words.
func reasoningOf(r catalog.Reasoning) string {
	said := string(r.Way)
	switch {
	case r.Way == "":
		return "no"
	case len(r.Levels) > 1:
		said += " " + r.Levels[0] + "…" + r.Levels[len(r.Levels)-1]
	case len(r.Levels) == 1:
		said += " " + r.Levels[0]
	case r.Max > 0:
		said += fmt.Sprintf(" %d…%d", r.Min, r.Max)
	case r.Min > 0:
		said += fmt.Sprintf(" from %d", r.Min)
	}
	if r.Off == "" && r.Way != catalog.Always {
		said += ", never off"
	}
	return said
}
