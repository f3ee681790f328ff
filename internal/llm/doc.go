// Package llm is the port to language models: chat with tools, streamed, with
// what it used and what it cost.
//
//	Model          answers a conversation; adapters implement it
//	Retrying       tries again what may go better the next time
//	Budgeted       admits a call against a budget and settles what it used
//	TextCalls      drives a model that has no tool calls of its own
//	Redacting      takes secrets out of everything that is sent
//	WithFallback   asks a second model while the first is down or out of quota
//	Meter          estimates tokens between exact counts
//	Quote          labels text from outside as data
//
// [Wrap] puts these layers around an adapter in the one order that makes sense.
//
// The adapters anthropic, openai and gemini speak to the vendors by [PostForEvents]
// and do not try again by themselves: this package has the only retry layer. The adapter
// script follows a script file; it serves the demo and the tests, and can be
// served over HTTP in the vendors' wire formats. All pass the suite in package
// llmtest over real HTTP. Package cloud stands between these adapters and the clouds that
// have the vendors' models.
package llm
