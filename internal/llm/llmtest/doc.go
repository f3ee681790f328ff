// Package llmtest is the conformance suite of package llm: every adapter passes
// it, the network ones over real HTTP against the scripted server.
package llmtest
