package relational

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/task"
)

// nameLimit bounds, in bytes, text that is looked up: PostgreSQL cannot index
// more than this.
const nameLimit = 2000

// checkText refuses what PostgreSQL cannot keep in text, on every engine.
func checkText(text string) error {
	if strings.IndexByte(text, 0) >= 0 {
		return task.Errorf(task.Invalid, "text with a NUL character cannot be stored")
	}
	if !utf8.ValidString(text) {
		return task.Errorf(task.Invalid, "text that is not UTF-8 cannot be stored")
	}
	return nil
}

// cleanText makes any text storable. It is for error messages, whose loss would
// be worse than a changed character.
func cleanText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// checkName refuses text that is too long to be looked up by.
func checkName(what, name string) error {
	if len(name) > nameLimit {
		return task.Errorf(task.TooLarge, "the %s has %d bytes; %d are the limit", what, len(name), nameLimit)
	}
	return nil
}

// requireName refuses a name that is empty or too long.
func requireName(what, name string) error {
	if name == "" {
		return task.Errorf(task.Invalid, "the %s is empty", what)
	}
	return checkName(what, name)
}

// checkJSON refuses what is neither empty nor JSON.
func checkJSON(what string, data json.RawMessage) error {
	if len(data) > 0 && !json.Valid(data) {
		return task.Errorf(task.Invalid, "the %s is not JSON", what)
	}
	return nil
}

// rawJSON is JSON as it comes back: nil for none.
func rawJSON(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// blob is binary data as it is stored: never NULL.
func blob(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// nonEmpty is binary data as it comes back: nil for none.
func nonEmpty(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return data
}

// micros scans a moment.
type micros struct{ into *time.Time }

// Scan implements sql.Scanner.
func (m micros) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return task.Errorf(task.Internal, "a moment in the database is %T", value)
	}
	*m.into = time.UnixMicro(n).UTC()
	return nil
}

// never is the zero time as it is stored.
var never = time.Time{}.UnixMicro()

// checkLimit refuses a limit below zero; zero means all.
func checkLimit(limit int) error {
	if limit < 0 {
		return task.Errorf(task.Invalid, "the limit %d is below zero", limit)
	}
	return nil
}

// limited adds a limit to a query.
func limited(query string, args []any, limit int) (string, []any) {
	if limit == 0 {
		return query, args
	}
	return query + ` LIMIT ?`, append(args, limit)
}

// orNothing returns what was stored, or nothing if it was not.
func orNothing[T any](stored T, err error) (T, error) {
	if err != nil {
		var nothing T
		return nothing, err
	}
	return stored, nil
}
