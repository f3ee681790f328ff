// Package anthropic is the adapter for Anthropic's Messages API.
//
// It sets cache breakpoints after the system prompt, which covers the tools,
// after the pinned messages, and lets the API set the one at the end.
package anthropic
