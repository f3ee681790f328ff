package redact

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
)

// Handler returns a handler that masks the secrets which r knows in the message
// and in the names and values of all attributes, and passes the record on to
// next. Secrets that are made known later are masked from then on, also in
// attributes that a logger was given before.
func Handler(next slog.Handler, r *Redactor) slog.Handler {
	return &handler{base: next, redactor: r}
}

// handler keeps what WithAttrs and WithGroup were given and applies it to base
// when a record comes, because base writes its attributes down once and for all:
// the result is good only as long as no more secrets become known.
type handler struct {
	base     slog.Handler
	redactor *Redactor
	steps    []step
	applied  atomic.Pointer[applied]
}

// step is one call of WithGroup, or of WithAttrs when group is empty.
type step struct {
	group string
	attrs []slog.Attr
}

type applied struct {
	known *known
	to    slog.Handler
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.base.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	masked := slog.NewRecord(record.Time, record.Level, h.redactor.String(record.Message), record.PC)
	record.Attrs(func(attr slog.Attr) bool {
		masked.AddAttrs(h.redactor.attr(attr))
		return true
	})
	return h.next().Handle(ctx, masked)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	return h.with(step{attrs: attrs})
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(step{group: name})
}

func (h *handler) with(next step) slog.Handler {
	steps := make([]step, 0, len(h.steps)+1)
	steps = append(append(steps, h.steps...), next)
	return &handler{base: h.base, redactor: h.redactor, steps: steps}
}

// next is base with all steps applied, masked by what is known now.
func (h *handler) next() slog.Handler {
	if len(h.steps) == 0 {
		return h.base
	}
	now := h.redactor.known.Load()
	if last := h.applied.Load(); last != nil && last.known == now {
		return last.to
	}
	to := h.base
	for _, step := range h.steps {
		if step.group != "" {
			to = to.WithGroup(h.redactor.String(step.group))
			continue
		}
		to = to.WithAttrs(h.redactor.attrs(step.attrs))
	}
	h.applied.Store(&applied{known: now, to: to})
	return to
}

func (r *Redactor) attrs(attrs []slog.Attr) []slog.Attr {
	masked := make([]slog.Attr, len(attrs))
	for i, attr := range attrs {
		masked[i] = r.attr(attr)
	}
	return masked
}

func (r *Redactor) attr(attr slog.Attr) slog.Attr {
	return slog.Attr{Key: r.String(attr.Key), Value: r.value(attr.Value)}
}

func (r *Redactor) value(value slog.Value) slog.Value {
	value = value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		return slog.StringValue(r.String(value.String()))
	case slog.KindGroup:
		return slog.GroupValue(r.attrs(value.Group())...)
	case slog.KindAny:
		return r.any(value)
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64:
		// A secret can be all digits.
		if text := value.String(); r.String(text) != text {
			return slog.StringValue(Mask)
		}
	}
	return value
}

// any masks a value of any other type. One that shows no secret goes on as it
// is, so that the next handler can write it in its own way.
func (r *Redactor) any(value slog.Value) slog.Value {
	for _, text := range renderings(value.Any()) {
		if masked := r.String(text); masked != text {
			return slog.StringValue(masked)
		}
	}
	return value
}

// renderings are the texts that a handler may make of a value.
func renderings(value any) []string {
	texts := []string{fmt.Sprintf("%+v", value)}
	if err, ok := value.(error); ok {
		return append(texts, render(err.Error))
	}
	texts = append(texts, render(func() string {
		text, err := json.Marshal(value)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}))
	if kind := reflect.TypeOf(value); kind != nil && kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Uint8 {
		texts = append(texts, string(reflect.ValueOf(value).Bytes()))
	}
	return texts
}

// render calls a method of a value that is being logged. A method that panics,
// often that of a nil pointer, must not stop the program for the sake of a log
// line; slog's own handlers keep to the same rule.
func render(text func() string) (result string) {
	defer func() {
		if cause := recover(); cause != nil {
			result = fmt.Sprintf("!PANIC: %v", cause)
		}
	}()
	return text()
}
