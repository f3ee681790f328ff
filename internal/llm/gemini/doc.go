// Package gemini is the adapter for Google's Gemini API.
package gemini
