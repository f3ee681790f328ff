package llm

import "github.com/toryo-dev/toryo/internal/quote"

// UntrustedRule is the paragraph of a system prompt that says what quoted text
// is. A prompt that quotes anything has it.
var UntrustedRule = quote.Rule

// Origin says where a text from outside comes from.
type Origin = quote.Origin

// Quote puts a text from outside between marks that name its origin. The text
// cannot close the marks itself, nor open others.
func Quote(origin Origin, text string) string { return quote.Text(origin, text) }

// QuoteLine is a short text from outside in a line of ours.
func QuoteLine(text string) string { return quote.Line(text) }

// QuoteEntry is a text as one entry of a list, such as a transcript: only an entry
// begins a line that is not indented.
func QuoteEntry(text string) string { return quote.Inset(text) }

// QuoteSection is a section under the heading §number, which no line in it looks like.
func QuoteSection(number int, text string) string { return quote.Section(number, text) }

// Pinned is a block that stays at the head of a conversation.
func Pinned(name, text string) string { return quote.Pinned(name, text) }

// EarlierSummary is the summary of the earlier part of a conversation.
func EarlierSummary(heading, text string) string { return quote.Summary(heading, text) }
