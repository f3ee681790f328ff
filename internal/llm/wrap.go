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
	Images    bool // the model takes images
	NoKey     bool // no key is configured for the provider
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
	model = named{model, layers.NoKey}
	if layers.Images {
		model = seeing{model}
	}
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

// named says in an error which model it is of, and whether it has a key.
type named struct {
	Model
	noKey bool
}

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
		failed.Model, failed.NoKey = n.Info().Model, n.noKey
	}
	return err
}
