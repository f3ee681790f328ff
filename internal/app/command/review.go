package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Review is the command toryo review.
func Review(p site.Program) *cobra.Command {
	c := cli.Group("review", "Reviews of documents and pull requests",
		reviewImportCommand(p), reviewRunCommand(p), reviewListCommand(p), reviewShowCommand(p),
		reviewShareCommand(p, false), reviewShareCommand(p, true), reviewDeleteCommand(p))
	c.Long = `A review is of an answer in numbered sections to a question; toryo chat talks about it.
These commands work on the database, also while a server runs. A review belongs to a
person, who has it on the pages, over HTTP and here: the account that the user of this
machine is linked with (toryo user link), or that has the same name, or that --as names.`
	c.Example = `  toryo review run --question question.txt --answer answer.txt
  toryo review import --question q.txt --answer a.txt --review r.json
  toryo review list
  toryo review share REVIEW bob
  toryo chat REVIEW`
	return c
}

// onReviews is what every command on reviews has.
type onReviews struct {
	site.Program
	settings cli.Settings
	as       string
	json     bool
}

func (o *onReviews) bind(c *cobra.Command) {
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().StringVar(&o.as, "as", "", cli.WhoseFlag)
}

func (o *onReviews) bindJSON(c *cobra.Command) {
	c.Flags().BoolVar(&o.json, "json", false, "print JSON, in the shapes of the HTTP API")
}

// run does something with reviews in somebody's name.
func (o *onReviews) run(ctx context.Context, do func(service *review.Service, who string) error) error {
	return o.runOn(ctx, cli.Fail, func(_ store.Store, service *review.Service, who string) error { return do(service, who) })
}

// begin does the same for what may be the first thing in an installation.
func (o *onReviews) begin(ctx context.Context, do func(service *review.Service, who string) error) error {
	return o.runOn(ctx, cli.Make, func(_ store.Store, service *review.Service, who string) error { return do(service, who) })
}

func (o *onReviews) runOn(ctx context.Context, missing cli.OnMissing, do func(database store.Store, service *review.Service, who string) error) error {
	return cli.WithData(ctx, o.Program, &o.settings, missing, func(loaded config.Config, database store.Store) error {
		who, err := cli.Person(ctx, o.Stderr, database, o.as)
		if err != nil {
			return err
		}
		return site.WithReviews(ctx, o.Program, loaded, database, func(service *review.Service) error { return do(database, service, who) })
	})
}

// paperFiles are the files of a question and an answer.
type paperFiles struct{ question, questionID, purpose, grading, answer string }

func (f *paperFiles) bind(c *cobra.Command) {
	c.Flags().StringVar(&f.question, "question", "", "`FILE` with the question")
	c.Flags().StringVar(&f.questionID, "question-id", "", "`ID` of a question that is kept already, in place of --question")
	c.Flags().StringVar(&f.purpose, "purpose", "", "`FILE` with what the question is meant to test (出題趣旨); makes the question an official one")
	c.Flags().StringVar(&f.grading, "grading", "", "`FILE` with what the graders found (採点実感); makes the question an official one")
	c.Flags().StringVar(&f.answer, "answer", "", "`FILE` with the answer, in sections marked $$[N] at the start of a line")
}

// read returns the question and the answer. An official question is kept together with the
// review.
func (f *paperFiles) read(ctx context.Context, service *review.Service, who string) (store.Question, string, error) {
	if (f.question == "") == (f.questionID == "") || f.answer == "" {
		return store.Question{}, "", task.Errorf(task.Usage, "the question or the answer is missing").WithHint("give --answer, and either --question or --question-id")
	}
	answer, err := readText(f.answer)
	if err != nil {
		return store.Question{}, "", err
	}
	if f.questionID != "" {
		question, err := service.Question(ctx, who, f.questionID)
		return question, answer, err
	}
	var question store.Question
	for _, part := range []struct {
		file string
		into *string
	}{{f.question, &question.Text}, {f.purpose, &question.PurposeText}, {f.grading, &question.GradingImpressionText}} {
		if part.file == "" {
			continue
		}
		if *part.into, err = readText(part.file); err != nil {
			return store.Question{}, "", err
		}
	}
	return question, answer, nil
}

func readText(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", task.Wrap(task.Usage, err, "the file cannot be read").WithHint("check its name, and that you may read it")
	}
	return strings.TrimPrefix(string(text), "\uFEFF"), nil
}

func reviewImportCommand(p site.Program) *cobra.Command {
	o := onReviews{Program: p}
	var files paperFiles
	var judgement string
	c := &cobra.Command{
		Use:   "import --question FILE --answer FILE --review FILE",
		Short: "Import a review from files and print its ID",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.begin(c.Context(), func(service *review.Service, who string) error {
				if judgement == "" {
					return task.Errorf(task.Usage, "toryo review import needs the review").WithHint("give it with --review FILE")
				}
				return o.importReview(c.Context(), service, who, files, judgement)
			})
		},
	}
	o.bind(c)
	o.bindJSON(c)
	files.bind(c)
	c.Flags().StringVar(&judgement, "review", "", "`FILE` with the review as JSON: overall_review, strengths, weaknesses, important_points, future_considerations")
	return c
}

func (o *onReviews) importReview(ctx context.Context, service *review.Service, who string, files paperFiles, judgement string) error {
	text, err := readText(judgement)
	if err != nil {
		return err
	}
	question, answer, err := files.read(ctx, service, who)
	if err != nil {
		return err
	}
	stored, err := service.AddReviewOf(ctx, who, question, store.Review{AnswerText: answer, Judgement: json.RawMessage(text)})
	if err != nil {
		return err
	}
	return o.printMade(stored, question)
}

func (o *onReviews) printMade(stored store.Review, question store.Question) error {
	if o.json {
		return cli.PrintJSON(o.Stdout, server.ReviewOf(stored, question, nil))
	}
	_, err := fmt.Fprintln(o.Stdout, stored.ID)
	return err
}

func reviewRunCommand(p site.Program) *cobra.Command {
	o := onReviews{Program: p}
	var files paperFiles
	c := &cobra.Command{
		Use:   "run --question FILE --answer FILE",
		Short: "Let the model review a document, save the review and print it",
		Long: `Have the configured model (llm, or review in llm_overrides) review an answer to a
question. An answer without markers is numbered by paragraph. The calls count against
the budget of the day.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.begin(c.Context(), func(service *review.Service, who string) error {
				question, answer, err := files.read(c.Context(), service, who)
				if err != nil {
					return err
				}
				stored, err := service.Judge(c.Context(), who, question, answer)
				if err != nil {
					return err
				}
				return o.printReview(stored, question, nil)
			})
		},
	}
	o.bind(c)
	o.settings.NeedSecrets()
	o.bindJSON(c)
	files.bind(c)
	return c
}

func reviewListCommand(p site.Program) *cobra.Command {
	o := onReviews{Program: p}
	var pull string
	c := &cobra.Command{
		Use:   "list",
		Short: "List your reviews and those shared with you, or those of a pull request",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.runOn(c.Context(), cli.Fail, func(database store.Store, service *review.Service, who string) error {
				return o.list(c.Context(), database, service, who, pull)
			})
		},
	}
	o.bind(c)
	o.bindJSON(c)
	c.Flags().StringVar(&pull, "pull", "", "reviews of this pull request (`ITEM`, such as team/app!12)")
	return c
}

func (o *onReviews) list(ctx context.Context, database store.Listing, service *review.Service, who, pull string) error {
	found, err := listReviews(ctx, database, service, who, pull)
	if err != nil {
		return err
	}
	entries := make([]wire.ReviewEntry, 0, len(found))
	for _, one := range found {
		entries = append(entries, server.ReviewEntryOf(one, store.Question{Text: one.Title}))
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, wire.ReviewEntries{Reviews: entries})
	}
	table := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tCREATED\tOWNER\tSECTIONS\tTITLE") // Flush reports what went wrong
	for _, entry := range entries {
		of := entry.Title
		if entry.Pull != "" {
			of = entry.Pull + " " + of
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", entry.ID, entry.CreatedAt.Format(cli.Minutes), cli.OrDash(cli.OneLine(entry.Owner)), entry.Sections, textfmt.Plain(of))
	}
	return table.Flush()
}

// listReviews lists the reviews of somebody, or those of a pull request: named as it is, or
// in any of the ways that tasks are.
func listReviews(ctx context.Context, database store.Listing, service *review.Service, who, pull string) ([]store.Review, error) {
	if pull == "" {
		return service.History(ctx, who, "", 0)
	}
	key, err := task.ParseKey(pull)
	if err != nil {
		found, err := store.FindTask(ctx, database, pull)
		if err != nil {
			return nil, err
		}
		key = found.Key
	}
	return service.ReviewsOfPull(ctx, key)
}

func reviewShowCommand(p site.Program) *cobra.Command {
	o := onReviews{Program: p}
	c := &cobra.Command{
		Use:   "show REVIEW",
		Short: "Print a review",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), func(service *review.Service, who string) error {
				found, err := service.Review(c.Context(), who, args[0])
				if err != nil {
					return err
				}
				question, err := service.QuestionOf(c.Context(), found)
				if err != nil {
					return err
				}
				threads, err := service.Threads(c.Context(), who, found.ID)
				if err != nil {
					return err
				}
				return o.printReview(found, question, threads)
			})
		},
	}
	o.bind(c)
	o.bindJSON(c)
	return c
}

func reviewDeleteCommand(p site.Program) *cobra.Command {
	o := onReviews{Program: p}
	c := &cobra.Command{
		Use:   "delete REVIEW",
		Short: "Delete one of your reviews with its conversations",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), func(service *review.Service, who string) error {
				return service.DeleteReview(c.Context(), who, args[0])
			})
		},
	}
	o.bind(c)
	return c
}

func (o *onReviews) printReview(r store.Review, question store.Question, threads []store.Thread) error {
	if o.json {
		return cli.PrintJSON(o.Stdout, server.ReviewOf(r, question, threads))
	}
	judgement, err := judge.ParseJudgement(r.Judgement)
	if err != nil {
		return err
	}
	var text strings.Builder
	entry := server.ReviewEntryOf(r, question)
	fmt.Fprintf(&text, "%s  %s\n%s, %d sections\n", r.ID, entry.Title, r.CreatedAt.Format(cli.Minutes), entry.Sections)
	if entry.Pull != "" {
		fmt.Fprintf(&text, "%s at %s\n", entry.Pull, entry.HeadCommit)
	}
	if entry.Verdict != "" {
		fmt.Fprintf(&text, "verdict: %s\n", strings.ReplaceAll(entry.Verdict, "_", " "))
	}
	switch r.State {
	case store.Judging:
		fmt.Fprintln(&text, "is being assessed")
	case store.NotJudged:
		fmt.Fprintf(&text, "no assessment: %s\n", r.Cause)
	case store.Judged:
	}
	fmt.Fprintf(&text, "\n%s\n", judgement.Overall)
	field := ""
	for _, item := range judgement.Items {
		if item.Field != field {
			field = item.Field
			fmt.Fprintf(&text, "\n%s\n", strings.ReplaceAll(field, "_", " "))
		}
		fmt.Fprintf(&text, "  - %s%s\n", strings.ReplaceAll(item.Text(), "\n", "\n    "), sectionList(item.Numbers))
	}
	_, err = fmt.Fprint(o.Stdout, textfmt.Plain(text.String()))
	return err
}

func sectionList(numbers []int) string {
	if len(numbers) == 0 {
		return ""
	}
	names := make([]string, len(numbers))
	for i, number := range numbers {
		names[i] = fmt.Sprint("§", number)
	}
	return " (" + strings.Join(names, ", ") + ")"
}
