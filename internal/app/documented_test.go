package app

import (
	"encoding/json"
	"errors"
	"fmt"
	goast "go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/toryo-dev/toryo/internal/app/site"
)

// newRoot makes the program's command, for one use of its flags.
func newRoot() *cobra.Command {
	root := rootCommand(site.Program{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Now: time.Now})
	root.InitDefaultHelpCmd()
	return root
}

// checkCommand says what is wrong with a command line of this program. What stands for something
// else in it, such as NAME, counts as a value. Of a command that is whole the arguments have to be
// there too.
func checkCommand(words []string, whole bool) error {
	root := newRoot()
	switch {
	case len(words) > 0 && placeholder.MatchString(words[0]):
		return nil // of any command
	case len(words) > 1 && words[0] == "help":
		words, whole = words[1:], false
	}
	command, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	command.InitDefaultHelpFlag()
	var wrong *pflag.InvalidValueError
	if err := command.ParseFlags(rest); err != nil {
		if errors.As(err, &wrong) && placeholder.MatchString(wrong.GetValue()) {
			return nil
		}
		return err
	}
	if !whole && !isGroup(command) {
		return nil
	}
	return command.ValidateArgs(command.Flags().Args())
}

// isGroup reports whether a command only has others below it, which Find has not found then.
func isGroup(c *cobra.Command) bool { return c.HasSubCommands() && c.Flags().NArg() > 0 }

var (
	placeholder = regexp.MustCompile(`^(\{[a-z_]+\}|[A-Z][A-Z_|]*)$`)
	noCommand   = regexp.MustCompile(`^(that|at|sandbox|ENCODING)$`) // toryo is something else before these
	inText      = regexp.MustCompile("\\btoryo ((?:[^\n.;,:()`'\"]|[.;,:][^ \n\"\\\\])+)")
	inProse     = regexp.MustCompile(`\btoryo((?:\s+(?:--?[a-z][a-z-]*|[a-z][a-z-]*|\{[a-z_]+\}|[A-Z][A-Z_|]+\b))+)`)
	startsAs    = regexp.MustCompile(`^(\./)?toryo$`)
)

// commandsInProse are the commands that a text names. Where one ends the words of the sentence
// follow: the first word behind toryo has to be a command, and then what the command knows counts.
func commandsInProse(root *cobra.Command, said string) [][]string {
	var found [][]string
	for _, match := range inProse.FindAllStringSubmatch(said, -1) {
		words := strings.Fields(match[1])
		end := nameLength(root, words)
		for end < len(words) && (strings.HasPrefix(words[end], "-") || placeholder.MatchString(words[end])) {
			end++
		}
		found = append(found, words[:max(end, 1)])
	}
	return found
}

// nameLength is how many words are the name of a command.
func nameLength(at *cobra.Command, words []string) int {
	for length, word := range words {
		next := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
		if next < 0 {
			return length
		}
		at = at.Commands()[next]
	}
	return len(words)
}

// checkText says what is wrong with the commands in a text of the program: each has to be there, and
// to have the flags that stand in the same part of the sentence.
func checkText(root *cobra.Command, said string) error {
	var wrong []error
	for _, match := range inText.FindAllStringSubmatch(strings.ReplaceAll(said, "\\\n", " "), -1) {
		clause, _, _ := strings.Cut(match[1], "toryo ")
		words := strings.Fields(clause)
		if len(words) == 0 || noCommand.MatchString(words[0]) || strings.Contains(words[0], "%") {
			continue
		}
		name := words[:nameLength(root, words)]
		if len(name) == 0 {
			wrong = append(wrong, fmt.Errorf("there is no command toryo %s", words[0]))
			continue
		}
		command, _, err := root.Find(name)
		wrong = append(wrong, err)
		for _, word := range words[len(name):] {
			if flag, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "="); strings.HasPrefix(word, "--") && flag != "help" && command.Flag(flag) == nil {
				wrong = append(wrong, fmt.Errorf("toryo %s has no flag %s", strings.Join(name, " "), word))
			}
		}
	}
	return errors.Join(wrong...)
}

// commandsInCode are the commands in lines for a shell.
func commandsInCode(code string) [][]string {
	var found [][]string
	for line := range strings.Lines(strings.ReplaceAll(code, "\\\n", " ")) {
		words := shellWords(line)
		for start, word := range words {
			first := start == 0 || separators[words[start-1]]
			program := first && startsAs.MatchString(word) || start >= 2 && word == "./cmd/toryo" && words[start-1] == "run"
			inside := word == "toryo" && start > 0 && words[start-1] == "--"
			if !program && !inside {
				continue
			}
			rest := words[start+1:]
			if end := slices.IndexFunc(rest, func(word string) bool { return separators[word] }); end >= 0 {
				rest = rest[:end]
			}
			found = append(found, withoutMarks(rest))
		}
	}
	return found
}

// withoutMarks are words without what says that more may follow, or that one may be left out.
func withoutMarks(words []string) []string {
	var kept []string
	for _, word := range words {
		if word = strings.Trim(word, "[]"); word != "..." && word != "…" && word != "" {
			kept = append(kept, word)
		}
	}
	return kept
}

// separators are where a command of a shell ends.
var separators = map[string]bool{"|": true, "||": true, "&&": true, "&": true, ";": true, ">": true, ">>": true, "<": true, "2>": true, "$(": true, ")": true}

// shellWords cuts a line as a shell does, as far as the documentation uses one: quotes, remarks
// and what separates commands.
func shellWords(line string) []string {
	var words []string
	word, begun := "", false
	end := func() {
		if begun {
			words = append(words, word)
		}
		word, begun = "", false
	}
	for at := 0; at < len(line); at++ {
		switch c := line[at]; {
		case c == '\'' || c == '"':
			length := strings.IndexByte(line[at+1:], c)
			if length < 0 {
				length = len(line) - at - 1
			}
			word, begun = word+line[at+1:at+1+length], true
			at += length + 1
		case c == '#' && !begun:
			return words
		case c == ' ' || c == '\t' || c == '\n':
			end()
		case strings.HasPrefix(line[at:], "$("):
			end()
			words = append(words, "$(")
			at++
		case strings.IndexByte(";|&<>()", c) >= 0:
			end()
			words = append(words, string(c))
		default:
			word, begun = word+string(c), true
		}
	}
	end()
	return words
}

// told is a command that people are told to give, and where.
type told struct {
	where string
	words []string
	whole bool // it can be given as it stands
}

func (c told) check(t *testing.T) {
	t.Helper()
	if err := checkCommand(c.words, c.whole); err != nil {
		t.Errorf("%s: toryo %s: %v", c.where, strings.Join(c.words, " "), err)
	}
}

// commandsInPage are the commands in the code of a Markdown file.
func commandsInPage(t *testing.T, file string) []told {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []told
	add := func(code string, isBlock bool) {
		for _, words := range commandsInCode(code) {
			found = append(found, told{file, words, isBlock || slices.ContainsFunc(words, isMoreThanName)})
		}
	}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(content))
	err = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node.(type) {
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			add(string(node.Lines().Value(content)), true)
		case *ast.CodeSpan:
			code := ""
			for part := node.FirstChild(); part != nil; part = part.NextSibling() {
				if piece, is := part.(*ast.Text); is {
					code += string(piece.Value(content))
				}
			}
			add(strings.Join(strings.Fields(code), " "), false)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// isMoreThanName reports whether a word is none of a command's name: then the command is not only
// mentioned.
func isMoreThanName(word string) bool {
	return strings.HasPrefix(word, "-") || strings.ToLower(word) != word
}

func filesOf(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		all = append(all, found...)
	}
	return all
}

// Every command in the documentation is one of the program, with flags that it has; one in a block
// of code can be given as it stands. The changelog also names what there was.
func TestCommandsInTheDocumentation(t *testing.T) {
	t.Parallel()
	count := 0
	for _, file := range filesOf(t, "README*.md", "CONTRIBUTING.md", "docs/*.md", "docs/*/*.md") {
		for _, one := range commandsInPage(t, file) {
			count++
			one.check(t)
		}
	}
	if count < 200 {
		t.Errorf("the documentation names %d commands", count)
	}
}

// Every command that a message of a page or a comment names can be given as it stands, but for
// what is written in capitals.
func TestCommandsInMessages(t *testing.T) {
	t.Parallel()
	root := newRoot()
	for _, file := range filesOf(t, "internal/messages/*.json") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var texts map[string]string
		if err := json.Unmarshal(content, &texts); err != nil {
			t.Fatal(err)
		}
		count := 0
		for key, said := range texts {
			for _, words := range commandsInProse(root, said) {
				count++
				told{file + " " + key, words, true}.check(t)
			}
		}
		if count < 15 {
			t.Errorf("%s names %d commands", file, count)
		}
	}
}

// Every command that the program names in its errors, hints and help is one that it has, with flags
// that it has.
func TestCommandsInTheProgram(t *testing.T) {
	t.Parallel()
	root, count := newRoot(), 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") && name != "..") {
			return filepath.SkipDir
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		count += checkTexts(t, root, file)
		return nil
	})
	if err != nil || count < 100 {
		t.Errorf("the program names %d commands, %v", count, err)
	}
}

// checkTexts checks the commands in the texts of a Go file, and counts them.
func checkTexts(t *testing.T, root *cobra.Command, file string) (count int) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	goast.Inspect(parsed, func(node goast.Node) bool {
		literal, is := node.(*goast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return true
		}
		said, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkText(root, said); err != nil {
			t.Errorf("%s: %v", files.Position(literal.Pos()), err)
		}
		count += len(inText.FindAllString(said, -1))
		return true
	})
	return count
}

// What is wrong with a command in a text is found.
func TestWrongCommandsAreFound(t *testing.T) {
	t.Parallel()
	root := newRoot()
	for said, want := range map[string]string{
		"go on with toryo resume --all; then":                         "",
		"go on with toryo resume; then":                               "needs TASK",
		"use toryo resume --force":                                    "needs TASK",
		"toryo agent token create, and start toryo agent with it":     "",
		"toryo run --full does it":                                    "--full",
		"toryo restart":                                               "restart",
		"`toryo receipt verify {receipt}`":                            "",
		"toryo doctor says what is missing; toryo up works by itself": "",
	} {
		var err error
		for _, words := range commandsInProse(root, said) {
			err = errors.Join(err, checkCommand(words, true))
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", said, err)
		}
	}
	for said, want := range map[string]string{
		"see toryo help exit-codes, or toryo run DIR with --full":   "toryo run has no flag --full",
		"toryo init --forge gitea \\\n  --tokens x":                 "toryo init has no flag --tokens",
		"start toryo agent with --enrol-file; --other is another's": "",
		"toryo restart": "restart",
	} {
		if err := checkText(root, said); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", said, err)
		}
	}
	code := "X=1; toryo tasks list --json | jq .  # toryo none\nsudo docker exec x -- toryo up > 'a file'\nhelm install toryo chart\ncat key | ./toryo init --yes \\\n  --model-key-file -\necho \"$(toryo agent token create)\"\n"
	got := fmt.Sprintf("%q", commandsInCode(code))
	if want := `[["tasks" "list" "--json"] ["up"] ["init" "--yes" "--model-key-file" "-"]]`; got != want {
		t.Errorf("the commands are %s", got)
	}
}
