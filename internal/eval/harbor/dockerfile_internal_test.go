package harbor

import "testing"

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
