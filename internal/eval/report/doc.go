// Package report writes down what an evaluation came to: predictions and reports in the forms
// that SWE-bench's own harness reads, a page with plots, and a table for the terminal.
package report

//go:generate sh -c "$(../../../scripts/tool github.com/a-h/templ/cmd/templ) generate"
