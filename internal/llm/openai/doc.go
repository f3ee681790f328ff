// Package openai is the adapter for OpenAI's two APIs, Responses and Chat
// Completions, and so for the many servers that speak the latter: Ollama, LM
// Studio, vLLM, OpenRouter and others, by base URL.
package openai
