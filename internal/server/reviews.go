package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// reviews shows reviews and the chat about them. Who asks is the person for whom the token
// acts: what belongs to others, and is not shared, does not exist for it.
type reviews struct {
	server  *Server
	service *review.Service
}

type (
	byID struct {
		ID string `path:"id"`
	}
	newQuestion    struct{ Body wire.NewQuestion }
	questionsInput struct {
		After string `query:"after" doc:"Only what comes after the question with this id"`
		Limit int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	}
	questionOutput  struct{ Body wire.Question }
	questionsOutput struct{ Body wire.Questions }

	newReview    struct{ Body wire.NewReview }
	reviewsInput struct {
		Pull  string `query:"pull" doc:"Reviews of this pull request, in place of your own history" example:"github:owner/name!12"`
		After string `query:"after" doc:"Only what comes after the review with this id"`
		Limit int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	}
	sharesInput struct {
		ID   string `path:"id"`
		Body wire.Shares
	}
	sharesOutput  struct{ Body wire.Shares }
	reviewOutput  struct{ Body wire.Review }
	reviewsOutput struct{ Body wire.ReviewEntries }
)

func (s *Server) registerReviews(service *review.Service) {
	r := reviews{s, service}
	unknown := []int{http.StatusNotFound}
	register(s, access.Operator, huma.Operation{
		OperationID: "add-question", Method: http.MethodPost, Path: "/v1/questions", Summary: "Keep an official question", DefaultStatus: http.StatusCreated,
		Description: "It is kept until its last review is deleted, or without end if it has none.",
	}, r.addQuestion)
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-questions", Method: http.MethodGet, Path: "/v1/questions", Summary: "Official questions that you may read, oldest first",
		Description: "Those that you have kept, and those of reviews that you may read. There are fewer than the limit if their texts are long; go on with after until there is none.",
	}, r.listQuestions)
	register(s, access.Viewer, huma.Operation{
		OperationID: "get-question", Method: http.MethodGet, Path: "/v1/questions/{id}", Summary: "One question", Errors: unknown,
	}, r.getQuestion)
	register(s, access.Operator, huma.Operation{
		OperationID: "add-review", Method: http.MethodPost, Path: "/v1/reviews", Summary: "Keep a review of a document", DefaultStatus: http.StatusCreated, Errors: unknown,
	}, r.addReview)
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-reviews", Method: http.MethodGet, Path: "/v1/reviews", Summary: "Your reviews and those that are shared with you, or those of a pull request, oldest first",
	}, r.listReviews)
	register(s, access.Viewer, huma.Operation{
		OperationID: "get-review", Method: http.MethodGet, Path: "/v1/reviews/{id}", Summary: "One review", Errors: unknown,
	}, r.getReview)
	register(s, access.Operator, huma.Operation{
		OperationID: "delete-review", Method: http.MethodDelete, Path: "/v1/reviews/{id}", Summary: "Remove a review of yours with its threads",
		Description:   "A saved question is deleted with its last review.",
		DefaultStatus: http.StatusNoContent, Errors: unknown,
	}, r.deleteReview)
	register(s, access.Operator, huma.Operation{
		OperationID: "share-review", Method: http.MethodPut, Path: "/v1/reviews/{id}/shares", Summary: "Say who may read a review of yours", Errors: unknown,
		Description: "Whoever may read it can talk about it too, with the role operator. Conversations stay with those who hold them.",
	}, r.share)
	r.registerThreads(unknown)
}

func questionOf(q store.Question) wire.Question {
	return wire.Question{ID: q.ID, Text: q.Text, Purpose: q.PurposeText, GradingImpression: q.GradingImpressionText, CreatedAt: q.CreatedAt}
}

func (r reviews) addQuestion(ctx context.Context, input *newQuestion) (*questionOutput, error) {
	who := person(ctx)
	stored, err := r.service.AddQuestion(ctx, who, store.Question{
		Text: input.Body.Text, PurposeText: input.Body.Purpose, GradingImpressionText: input.Body.GradingImpression,
	})
	return &questionOutput{questionOf(stored)}, err
}

func (r reviews) listQuestions(ctx context.Context, input *questionsInput) (*questionsOutput, error) {
	who := person(ctx)
	found, err := r.service.Questions(ctx, who, input.After, input.Limit)
	output := questionsOutput{wire.Questions{Questions: make([]wire.Question, 0, len(found))}}
	for _, q := range found {
		output.Body.Questions = append(output.Body.Questions, questionOf(q))
	}
	return &output, err
}

func (r reviews) getQuestion(ctx context.Context, input *byID) (*questionOutput, error) {
	who := person(ctx)
	found, err := r.service.Question(ctx, who, input.ID)
	return &questionOutput{questionOf(found)}, err
}

func (r reviews) addReview(ctx context.Context, input *newReview) (*reviewOutput, error) {
	who := person(ctx)
	stored, err := r.service.AddReview(ctx, who, store.Review{
		QuestionID: input.Body.QuestionID, CustomQuestionText: input.Body.CustomQuestion, AnswerText: input.Body.Answer, Judgement: input.Body.Review,
	})
	if err != nil {
		return nil, err
	}
	return r.whole(ctx, who, stored)
}

func (r reviews) listReviews(ctx context.Context, input *reviewsInput) (*reviewsOutput, error) {
	found, err := r.list(ctx, input)
	if err != nil {
		return nil, err
	}
	output := reviewsOutput{wire.ReviewEntries{Reviews: make([]wire.ReviewEntry, 0, len(found))}}
	for _, one := range found {
		output.Body.Reviews = append(output.Body.Reviews, ReviewEntryOf(one, store.Question{Text: one.Title}))
	}
	return &output, nil
}

func (r reviews) list(ctx context.Context, input *reviewsInput) ([]store.Review, error) {
	if input.Pull == "" {
		return r.service.History(ctx, person(ctx), input.After, input.Limit)
	}
	pull, err := task.ParseKey(input.Pull)
	if err != nil {
		return nil, err
	}
	return r.service.ReviewsOfPull(ctx, pull)
}

// ReviewEntryOf is a review as a listing shows it.
func ReviewEntryOf(one store.Review, question store.Question) wire.ReviewEntry {
	entry := wire.ReviewEntry{
		ID: one.ID, Title: TitleOf(question.Text), QuestionID: one.QuestionID, HeadCommit: one.HeadCommit,
		Sections: len(judge.ParseSections(one.AnswerText)), Verdict: one.Verdict, State: string(one.State), Cause: one.Cause, Owner: one.Owner, CreatedAt: one.CreatedAt,
	}
	if one.Pull != (task.Key{}) {
		entry.Pull = one.Pull.String()
	}
	return entry
}

// TitleOf is the first line of a question, cut to what a list can show.
func TitleOf(text string) string {
	const most = 120
	line, _, _ := strings.Cut(strings.TrimLeft(text, "# \t\r\n"), "\n")
	if letters := []rune(strings.TrimSpace(line)); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return strings.TrimSpace(line)
}

func (r reviews) getReview(ctx context.Context, input *byID) (*reviewOutput, error) {
	who := person(ctx)
	found, err := r.service.Review(ctx, who, input.ID)
	if err != nil {
		return nil, err
	}
	return r.whole(ctx, who, found)
}

func (r reviews) whole(ctx context.Context, who string, one store.Review) (*reviewOutput, error) {
	question, err := r.service.QuestionOf(ctx, one)
	if err != nil {
		return nil, err
	}
	threads, err := r.service.Threads(ctx, who, one.ID)
	if err != nil {
		return nil, err
	}
	shared, err := r.service.SharedWith(ctx, who, one.ID)
	if err != nil {
		return nil, err
	}
	output := reviewOutput{ReviewOf(one, question, threads)}
	if shared.Count() > 0 {
		shares := wire.Shares{Everyone: shared.Everyone, People: shared.People}
		output.Body.Shares = &shares
	}
	return &output, nil
}

// share makes a review shared with those who are named and with nobody else.
func (r reviews) share(ctx context.Context, input *sharesInput) (*sharesOutput, error) {
	who := person(ctx)
	only := review.Readers{Everyone: input.Body.Everyone, People: input.Body.People}
	if err := r.service.SetReaders(ctx, who, input.ID, only); err != nil {
		return nil, err
	}
	shared, err := r.service.SharedWith(ctx, who, input.ID)
	return &sharesOutput{wire.Shares{Everyone: shared.Everyone, People: shared.People}}, err
}

func (r reviews) deleteReview(ctx context.Context, input *byID) (*struct{}, error) {
	return nil, r.service.DeleteReview(ctx, person(ctx), input.ID)
}

// ReviewOf is a review as clients see it.
func ReviewOf(one store.Review, question store.Question, threads []store.Thread) wire.Review {
	shown := wire.Review{
		ReviewEntry: ReviewEntryOf(one, question),
		Question:    question.Text, Purpose: question.PurposeText, GradingImpression: question.GradingImpressionText,
		CustomQuestion: one.CustomQuestionText, Answer: one.AnswerText, Review: one.Judgement, Threads: make([]wire.Thread, 0, len(threads)),
	}
	if len(shown.Review) == 0 {
		shown.Review = json.RawMessage("{}")
	}
	for _, thread := range threads {
		shown.Threads = append(shown.Threads, ThreadOf(thread))
	}
	return shown
}

// reportOf is the result of a review task as [review.Service.Reviewed] takes it.
func reportOf(r wire.ReviewResult) judge.Report {
	report := judge.Report{
		Commit: r.Commit, Question: r.Question, Answer: r.Answer, Judgement: r.Judgement, Verdict: r.Verdict, Text: r.Text,
	}
	for _, c := range r.Comments {
		report.Comments = append(report.Comments, judge.Comment{Place: judge.Place{Path: c.Path, Line: c.Line, Old: c.Old}, Text: c.Text})
	}
	return report
}
