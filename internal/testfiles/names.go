package testfiles

import (
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// declarations match what declares a test, by the end of a file's name. The last group that
// matches is the name of the test.
var declarations = map[string]*lazyregexp.Regexp{
	".go":    lazyregexp.New(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(|\bt\.Run\("([^"\n]+)"`),
	".py":    lazyregexp.New(`(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+(test\w*)|^class[ \t]+(Test\w*)`),
	".rs":    lazyregexp.New(`#\[(?:\w+::)*test\b[^\]\n]*\]\s*(?:#\[[^\]\n]*\]\s*)*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)`),
	".java":  lazyregexp.New(`@(?:Test|ParameterizedTest|RepeatedTest)\b[^{;]*?(\w+)\s*\(\s*[^)]*\)\s*(?:throws [\w\s,.]+)?\{`),
	".kt":    lazyregexp.New("@(?:Test|ParameterizedTest)\\b[^{;]*?fun\\s+(`[^`\\n]+`|\\w+)"),
	".cs":    lazyregexp.New(`\[(?:Fact|Theory|Test|TestMethod|TestCase)\b[^{;]*?(\w+)\s*\([^)]*\)\s*(?:\{|=>)`),
	".rb":    lazyregexp.New(`(?m)^[ \t]*def[ \t]+(test_\w+)|^[ \t]*(?:it|test|specify)[ \t(]+['"]([^'"\n]+)`),
	".php":   lazyregexp.New(`function\s+(test\w+)`),
	".swift": lazyregexp.New(`func\s+(test\w+)`),
	".exs":   lazyregexp.New(`(?m)^[ \t]*test[ \t(]+"([^"\n]+)`),
	".cpp":   lazyregexp.New(`\bTEST(?:_F|_P)?\s*\(\s*(\w+\s*,\s*\w+)\s*\)|\bTEST_CASE\s*\(\s*"([^"\n]+)`),
	".js":    lazyregexp.New("\\b(?:it|test|describe)(?:\\.\\w+)*\\s*\\(\\s*(?:'([^'\\n]+)'|\"([^\"\\n]+)\"|`([^`\\n]+)`)"),
	".sh":    lazyregexp.New(`(?m)^[ \t]*(?:function[ \t]+(test_\w+)|(test_\w+)[ \t]*\(\))|^@test[ \t]+["']([^"'\n]+)`),
}

// sameDeclarations are ends of names whose files declare tests as those with another end.
var sameDeclarations = map[string]string{
	".ts": ".js", ".jsx": ".js", ".tsx": ".js", ".mjs": ".js", ".cjs": ".js", ".mts": ".js", ".cts": ".js", ".vue": ".js",
	".bats": ".sh", ".bash": ".sh", ".zsh": ".sh", ".cc": ".cpp", ".cxx": ".cpp", ".scala": ".kt", ".groovy": ".java", ".ex": ".exs",
}

// Declared are the names of the tests that a file declares, sorted. It goes by how tests are
// written and runs nothing, so that it does not know all of them: those of a table are not
// found. What it finds may be no test, as in a file of another language in a string.
func Declared(name string, content []byte) []string {
	end := strings.ToLower(path.Ext(name))
	if other, is := sameDeclarations[end]; is {
		end = other
	}
	pattern := declarations[end]
	if pattern == nil {
		return nil
	}
	var names []string
	for _, match := range pattern.FindAllStringSubmatch(string(content), -1) {
		for _, group := range match[1:] {
			if group != "" {
				names = append(names, strings.Join(strings.Fields(group), " "))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
