// Package redact keeps secrets out of what people and programs get to read:
// logs, journals, comments on a forge, and what is sent to a model.
//
// It works in two ways that back each other up. A [Secret] is a string that
// shows itself as [Mask] wherever it is formatted, logged or encoded. A
// [Redactor] knows the values of the secrets and masks them in any text, so that
// a secret which reached an error message or the output of a command by another
// way is not passed on.
//
// It imports the standard library only, so that every package may import it.
package redact
