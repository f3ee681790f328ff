package redact_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/toryo-dev/toryo/internal/redact"
)

const token = "ghp_0123456789abcdef"

type named struct{ value string }

func (n named) String() string { return "named " + n.value }

type hidden struct {
	Name  string
	inner string
}

type lazy struct{ value string }

func (l lazy) LogValue() slog.Value { return slog.GroupValue(slog.String("token", l.value)) }

type broken struct{}

func (*broken) Error() string                { panic("no error") }
func (*broken) MarshalJSON() ([]byte, error) { panic("no JSON " + token) }

type marshals struct{}

func (marshals) MarshalJSON() ([]byte, error) { panic("no JSON " + token) }

// handlers are the two that programs use.
var handlers = map[string]func(*bytes.Buffer) slog.Handler{
	"text": func(out *bytes.Buffer) slog.Handler { return slog.NewTextHandler(out, nil) },
	"json": func(out *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(out, nil) },
}

func TestNoAttributeShowsASecret(t *testing.T) {
	t.Parallel()
	wrapped := fmt.Errorf("call: %w", errors.New("401 for "+token))
	address, err := url.Parse("https://me:" + token + "@host/path")
	if err != nil {
		t.Fatal(err)
	}
	for name, attr := range map[string]slog.Attr{
		"string":          slog.String("a", "x "+token),
		"key":             slog.Int(token, 1),
		"error":           slog.Any("a", wrapped),
		"Stringer":        slog.Any("a", named{token}),
		"group":           slog.Group("g", slog.Group("h", slog.String("a", token), slog.Any("e", wrapped))),
		"LogValuer":       slog.Any("a", lazy{token}),
		"struct":          slog.Any("a", struct{ Token string }{token}),
		"unexported":      slog.Any("a", hidden{"n", token}),
		"pointer":         slog.Any("a", &hidden{"n", token}),
		"map":             slog.Any("a", map[string]any{"x": []string{token}}),
		"bytes":           slog.Any("a", []byte(token)),
		"raw JSON":        slog.Any("a", json.RawMessage(`"`+token+`"`)),
		"slice":           slog.Any("a", []any{1, token}),
		"URL":             slog.Any("a", address),
		"list of attrs":   slog.Any("a", []slog.Attr{slog.String("b", token)}),
		"whole number":    slog.Int64("a", 1234567890123),
		"unsigned number": slog.Uint64("a", 1234567890123),
		"nil error":       slog.Any("a", (*broken)(nil)),
		"panic in JSON":   slog.Any("a", marshals{}),
	} {
		for kind, handler := range handlers {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				out := new(bytes.Buffer)
				log := slog.New(redact.Handler(handler(out), redact.New(token, "1234567890123")))
				log.Info("with "+token, attr)
				log.With(attr).Info("before")
				log.WithGroup("g").With("k", "v").With(attr).Info("in a group")
				if strings.Count(out.String(), "\n") != 3 {
					t.Errorf("not three lines:\n%s", out)
				}
				for _, leak := range []string{token, "1234567890123", "Z2hwXzAxMjM0NTY3ODlhYmNkZW"} {
					if strings.Contains(out.String(), leak) {
						t.Errorf("%s is logged:\n%s", leak, out)
					}
				}
			})
		}
	}
}

func TestWhatHoldsNoSecretIsLoggedAsItIs(t *testing.T) {
	t.Parallel()
	for kind, handler := range handlers {
		write := func(wrap func(slog.Handler) slog.Handler) string {
			out := new(bytes.Buffer)
			record := slog.NewRecord(time.Unix(0, 0), slog.LevelWarn, "a message", 0)
			record.AddAttrs(
				slog.Int("int", 7), slog.Bool("bool", true), slog.Float64("float", 1.5), slog.Duration("for", time.Second),
				slog.Time("at", time.Unix(1, 0)), slog.Any("struct", struct{ A []int }{[]int{1}}), slog.Any("err", errors.New("no")),
				slog.Any("nil", nil), slog.Any("secret", redact.Secret("x")), slog.Group("", slog.Int("inline", 1)), slog.Group("empty"))
			logger := wrap(handler(out)).WithGroup("outer").WithAttrs([]slog.Attr{slog.String("k", "v")}).WithAttrs(nil)
			if err := logger.Handle(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		plain := write(func(h slog.Handler) slog.Handler { return h })
		masked := write(func(h slog.Handler) slog.Handler { return redact.Handler(h, redact.New(token)) })
		if plain != masked {
			t.Errorf("%s: logged\n%s, want\n%s", kind, masked, plain)
		}
	}
}

func TestASecretAddedLaterIsMaskedInAttributesGivenBefore(t *testing.T) {
	t.Parallel()
	out := new(bytes.Buffer)
	r := redact.New()
	log := slog.New(redact.Handler(slog.NewTextHandler(out, nil), r)).With("a", token)
	log.Info("first")
	if !strings.Contains(out.String(), token) {
		t.Fatalf("an unknown value is masked:\n%s", out)
	}
	out.Reset()
	r.Add(token)
	log.Info("second")
	if strings.Contains(out.String(), token) || !strings.Contains(out.String(), redact.Mask) {
		t.Errorf("a known secret is logged:\n%s", out)
	}
}

// The wrapper keeps the rules that every handler must keep.
func TestHandlerKeepsTheRulesOfSlog(t *testing.T) {
	t.Parallel()
	out := new(bytes.Buffer)
	err := slogtest.TestHandler(redact.Handler(slog.NewJSONHandler(out, nil), redact.New(token)), func() []map[string]any {
		var records []map[string]any
		for line := range bytes.Lines(out.Bytes()) {
			var record map[string]any
			if err := json.Unmarshal(line, &record); err != nil {
				t.Fatal(err)
			}
			records = append(records, record)
		}
		return records
	})
	if err != nil {
		t.Error(err)
	}
}
