package harbor

import (
	"fmt"
	"testing"
)

// However an ADD is written for the builder, it is found. Others are not taken for one.
func TestMayFetch(t *testing.T) {
	t.Parallel()
	const address = "http://192.0.2.1/x /app/\n"
	for text, want := range map[string]bool{
		"FROM x\nADD " + address:                       true,
		"\ufeffadd " + address:                         true,
		"FROM x\n\tADD\v" + address:                    true,
		"FROM x\n\u00a0\u0085ADD " + address:           true,
		"FROM x\r\nADD\r\n":                            true,
		"FROM x\nA\\\n# x\nDD " + address:              true,
		"FROM x\nA\\ \t\r\n\n\nD\\\nD " + address:      true,
		"FROM x\n\\\nADD " + address:                   true,
		"# escape=`\nFROM x\nAD`\nD " + address:        true,
		"FROM x\nADD\\\n " + address:                   true,
		"FROM x\nADD http:/\\\n#\n/192.0.2.1/x /app\n": true,
		"FROM x AS y\nONBUILD ADD " + address:          true,
		"FROM x AS y\nONBU\u0130LD ADD " + address:     true,
		"FROM x AS y\nonb\\\nuild ADD " + address:      true,
		"FROM x\n# ADD\nWORKDIR /app\nCOPY a b\nRUN apt-get install \\\n    curl\\\n    && echo add \\\n\\\n    adduser\nENV ADD=1\n": false,
	} {
		if mayFetch(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// The images that a Dockerfile begins from are found, or it is said that they cannot be.
func TestBasesIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"FROM x\nRUN echo \\\n  a\nfrom y:1 as Z\nFROM z\nFROM scratch\n":            "[{x } {y:1 }]",
		"FROM --platform=linux/amd64 x@sha256:0 AS a # \n":                           "unclear",
		"\ufeff# syntax=x\nFROM --platform=linux/amd64 x@sha256:0 AS a\nFROM\ta\r\n": "[{x@sha256:0 linux/amd64}]",
		"ARG X=y\nFROM ${X}\n": "unclear",
		"ARG X=y\nFROM x$X\n":  "unclear",
		"FROM \\\nx\n":         "unclear",
		"FR\\\nOM x\n":         "unclear",
		"FROM x\nRUN true \\\nFROM y AS z\nFROM z\n":            "unclear",
		"FROM x\nRUN true \\ \n\n# a\nFROM y AS z\nFROM z\n":    "unclear",
		"# escape=`\nFROM x\nRUN true `\nFROM y AS z\nFROM z\n": "unclear",
		"FROM --other=y x\n":                                        "unclear",
		"FROM x\n# x\rFROM scratch AS evil\nFROM evil\n":            "unclear",
		"FROM x\nRUN <<EOF\nFROM scratch AS evil\nEOF\nFROM evil\n": "unclear",
		"FROM x\nRUN cat <\\\n<EOF\nFROM y AS z\nEOF\nFROM z\n":     "unclear",
		"FROM x\r\nRUN sort < a\r\nFROM y\r\n":                      "[{x } {y }]",
		"FROM\n":                                                    "unclear",
		"FROM x\nRUN echo from y\n# FROM y\nCOPY --from=a b c\n":    "[{x }]",
	} {
		bases, unclear := basesIn(text)
		got := fmt.Sprint(bases)
		if unclear != "" {
			got = "unclear"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
