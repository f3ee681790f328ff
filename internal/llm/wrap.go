package llm

import (
	"context"
	"errors"
	"log/slog"
)

// Layers is what [Wrap] puts around an adapter. What is not set is left out, but
// the retry layer is always there.
type Layers struct {
	Retry     RetryPolicy
	TextCalls bool // the model has no tool calls of its own
	Ledger    Ledger
	Account   Account
	Redactor  Redactor
	Logger    *slog.Logger
}

// Wrap puts the layers around an adapter: secrets are taken out first, each try
// is admitted by the budget for itself, and the text protocol is closest to the
// model.
func Wrap(model Model, layers Layers) Model {
	logger := layers.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	model = named{model}
	if layers.TextCalls {
		model = TextCalls(model)
	}
	if layers.Ledger != nil {
		model = Budgeted(model, layers.Ledger, layers.Account, logger)
	}
	model = Retrying(model, layers.Retry, logger)
	if layers.Redactor != nil {
		model = Redacting(model, layers.Redactor)
	}
	return model
}

// WithoutKey is a model that is asked without a key. When its provider wants one, the error says
// that there is none, and not that it is wrong.
func WithoutKey(model Model) Model { return keyless{model} }

type keyless struct{ Model }

// Chat implements [Model].
func (k keyless) Chat(ctx context.Context, request Request, sink Sink) (Response, error) {
	response, err := k.Model.Chat(ctx, request, sink)
	return response, k.in(err)
}

// CountTokens implements [Model].
func (k keyless) CountTokens(ctx context.Context, request Request) (int64, error) {
	count, err := k.Model.CountTokens(ctx, request)
	return count, k.in(err)
}

func (keyless) in(err error) error {
	if failed, ok := errors.AsType[*Error](err); ok {
		failed.NoKey = true
	}
	return err
}

// named says in an error which model it is of.
type named struct{ Model }

// Chat implements [Model].
func (n named) Chat(ctx context.Context, request Request, sink Sink) (Response, error) {
	response, err := n.Model.Chat(ctx, request, sink)
	return response, n.in(err)
}

// CountTokens implements [Model].
func (n named) CountTokens(ctx context.Context, request Request) (int64, error) {
	count, err := n.Model.CountTokens(ctx, request)
	return count, n.in(err)
}

func (n named) in(err error) error {
	if failed, ok := errors.AsType[*Error](err); ok {
		failed.Model = n.Info().Model
	}
	return err
}
