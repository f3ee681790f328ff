package progress

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

var verb = regexp.MustCompile(`%[a-z]`)

// Every phrase is there in both languages, with the same places to fill in.
func TestBothLanguagesAreComplete(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "words.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(node ast.Node) bool {
		literal, is := node.(*ast.CompositeLit)
		if !is || len(literal.Elts) != 2 {
			return true
		}
		var texts []string
		for _, element := range literal.Elts {
			if text, is := element.(*ast.BasicLit); is && text.Kind == token.STRING {
				plain, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, plain)
			}
		}
		if len(texts) != 2 {
			return true
		}
		count++
		en, ja := texts[0], texts[1]
		if strings.Join(verb.FindAllString(en, -1), "") != strings.Join(verb.FindAllString(ja, -1), "") {
			t.Errorf("%q and %q have other places to fill in", en, ja)
		}
		letters := regexp.MustCompile(`[\p{L}]`)
		if en == "" || ja == "" || letters.MatchString(verb.ReplaceAllString(ja, "")) && task.Automatic.Of(verb.ReplaceAllString(ja, "")) != task.Japanese {
			t.Errorf("%q is not in Japanese", ja)
		}
		return true
	})
	if count < 30 {
		t.Errorf("only %d phrases were found", count)
	}
}
