package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// place is where a key or a section stands in the lines of a file.
type place struct {
	line   int // index of the line that has its name
	end    int // index after the last line of its value
	indent int // columns before its name
	colon  int // offset of the colon in the line
	value  ast.Node
}

// block is a section as lines.
type block struct {
	line   int // index of the line that has its name; -1 for the whole file
	indent int // of its name; -1 for the whole file
	values []*ast.MappingValueNode
}

// find looks for a key or a section. Found is also false if the section that it would be
// in is missing.
func (e *editor) find(path string) (place, bool, error) {
	section, name := splitPath(path)
	in, found, err := e.block(section)
	if err != nil || !found {
		return place{}, false, err
	}
	at, found := e.in(in, name)
	return at, found, nil
}

func splitPath(path string) (section, name string) {
	if dot := strings.LastIndex(path, "."); dot >= 0 {
		return path[:dot], path[dot+1:]
	}
	return "", path
}

// block is a section that is written in lines of its own.
func (e *editor) block(path string) (block, bool, error) {
	at := block{line: -1, indent: -1}
	node := e.doc.body
	if path != "" {
		found, is, err := e.find(path)
		if err != nil || !is {
			return at, false, err
		}
		at.line, at.indent, node = found.line, found.indent, found.value
	}
	switch node := node.(type) {
	case nil, *ast.NullNode:
	case *ast.MappingValueNode:
		at.values = []*ast.MappingValueNode{node}
	case *ast.MappingNode:
		if node.IsFlowStyle {
			return at, false, notInLines(path)
		}
		at.values = node.Values
	default:
		return at, false, notInLines(path)
	}
	return at, true, nil
}

func notInLines(path string) error {
	if path == "" {
		path = "the file"
	}
	return task.Errorf(task.Conflict, "%s is not written as key: value lines", path)
}

// in finds a name among those of a section.
func (e *editor) in(b block, name string) (place, bool) {
	for _, value := range b.values {
		if value.Key.GetToken() == nil || value.Key.GetToken().Value != name {
			continue
		}
		line := positionOf(value.Key).line - 1
		if line < 0 || line >= len(e.lines) {
			return place{}, false
		}
		indent := indentOf(e.lines[line])
		colon := colonOf(e.lines[line], indent)
		if colon < 0 {
			return place{}, false
		}
		return place{line: line, end: e.endOf(line, indent), indent: indent, colon: colon, value: value.Value}, true
	}
	return place{}, false
}

// indentOf counts the spaces at the beginning of a line.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// colonOf is the offset of the colon behind a name, which may be in quotes.
func colonOf(line string, indent int) int {
	rest := line[indent:]
	from := 0
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		if from = strings.IndexByte(rest[1:], rest[0]) + 1; from == 0 {
			return -1
		}
	}
	at := strings.IndexByte(rest[from:], ':')
	if at < 0 {
		return -1
	}
	return indent + from + at
}

// endOf is the index after the last line of a value: lines that are indented deeper than its
// name belong to it, and entries of a list also on the same column. Blank lines and comments
// belong to what follows them.
func (e *editor) endOf(line, indent int) int {
	end := line + 1
	for i := line + 1; i < len(e.lines); i++ {
		text := strings.TrimSpace(e.lines[i])
		if text == "" || text[0] == '#' {
			continue
		}
		at := indentOf(e.lines[i])
		item := text == "-" || strings.HasPrefix(text, "- ")
		if at <= indent && (at < indent || !item) {
			break
		}
		end = i + 1
	}
	return end
}

// put writes the value of a key, on its line or on a new one. What a comment behind the old
// value says is kept if that is asked for.
func (e *editor) put(path, raw string, keepComment bool) error {
	at, found, err := e.find(path)
	if err != nil {
		return err
	}
	if !found {
		return e.insert(path, raw)
	}
	if keepComment && at.end == at.line+1 {
		raw += commentBehind(strings.TrimRight(e.lines[at.line][at.colon+1:], "\r\n"))
	}
	last := e.lines[at.end-1]
	text := e.lines[at.line][:at.colon+1] + raw + last[len(strings.TrimRight(last, "\r\n")):]
	e.lines = slices.Replace(e.lines, at.line, at.end, text)
	return nil
}

// commentBehind is the comment behind a value of one line, with the space before it.
func commentBehind(text string) string {
	quote := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote == '"' && c == '\\':
			// What is escaped cannot be told from the quote without counting, and such a
			// value has no comment that is worth it.
			return ""
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" [,", text[i-1]) >= 0):
			quote = c
		case c == '#' && (i == 0 || text[i-1] == ' '):
			return text[len(strings.TrimRight(text[:i], " ")):]
		}
	}
	return ""
}

// insert adds a key, and its section if that is missing.
func (e *editor) insert(path, raw string) error {
	section, name := splitPath(path)
	b, found, err := e.block(section)
	if err != nil {
		return err
	}
	if !found {
		if strings.Contains(section, ".") {
			return task.Errorf(task.Unsupported, "the section %s is missing", section)
		}
		if len(e.lines) > 0 {
			e.add(len(e.lines), "")
		}
		e.add(len(e.lines), section+":")
		e.add(len(e.lines), "  "+name+":"+raw)
		return nil
	}
	indent := e.childIndent(b)
	e.add(e.placeFor(b, name, indent), strings.Repeat(" ", indent)+name+":"+raw)
	return nil
}

// add puts a line before the one of an index.
func (e *editor) add(at int, line string) {
	if at > 0 && !strings.HasSuffix(e.lines[at-1], "\n") && !strings.HasSuffix(e.lines[at-1], "\r") {
		e.lines[at-1] += e.end
	}
	e.lines = slices.Insert(e.lines, at, line+e.end)
}

// childIndent is how deep the keys of a section are indented: as those that are there, or
// else as its comments.
func (e *editor) childIndent(b block) int {
	for _, value := range b.values {
		if line := positionOf(value.Key).line - 1; line >= 0 && line < len(e.lines) {
			return indentOf(e.lines[line])
		}
	}
	if b.line < 0 {
		return 0
	}
	for _, line := range e.lines[b.line+1 : e.lastOf(b)] {
		if strings.TrimSpace(line) != "" {
			return indentOf(line)
		}
	}
	return b.indent + 2
}

// lastOf is the index after the last line of a section, with the comments in it.
func (e *editor) lastOf(b block) int {
	if b.line < 0 {
		return len(e.lines)
	}
	last := b.line + 1
	for i := last; i < len(e.lines); i++ {
		if strings.TrimSpace(e.lines[i]) == "" {
			continue
		}
		if indentOf(e.lines[i]) <= b.indent {
			break
		}
		last = i + 1
	}
	return last
}

// placeFor is where a new key of a section goes: below the line that has it commented out,
// below the last key, or below the name of the section.
func (e *editor) placeFor(b block, name string, indent int) int {
	before := strings.Repeat(" ", indent) + "#"
	for i := b.line + 1; i < e.lastOf(b); i++ {
		text, comment := strings.CutPrefix(e.lines[i], before)
		text = strings.TrimPrefix(strings.TrimRight(text, "\r\n"), " ")
		if comment && (text == name+":" || strings.HasPrefix(text, name+": ")) {
			return i + 1
		}
	}
	last := b.line + 1
	if b.line < 0 {
		last = len(e.lines)
	}
	for _, value := range b.values {
		if line := positionOf(value.Key).line - 1; line >= 0 && line < len(e.lines) {
			last = e.endOf(line, indentOf(e.lines[line]))
		}
	}
	return last
}

// remove takes a key out, or a section that has nothing in it. The blank line above a
// section goes with it, unless that would join what is above to what is below.
func (e *editor) remove(path string) error {
	at, found, err := e.find(path)
	if err != nil || !found {
		return err
	}
	if keys().sections[path] != nil {
		b, _, err := e.block(path)
		if err != nil {
			return err
		}
		if len(b.values) > 0 || e.lastOf(b) > b.line+1 {
			return nil
		}
		if e.blank(at.end) && at.line > 0 && e.blank(at.line-1) {
			at.line--
		}
	}
	e.lines = slices.Delete(e.lines, at.line, at.end)
	return nil
}

// blank reports whether there is nothing in a line, or no such line.
func (e *editor) blank(line int) bool {
	return line >= len(e.lines) || strings.TrimSpace(e.lines[line]) == ""
}

// value is the value of a key as it is in the file.
func (e *editor) value(k *key) (any, bool) {
	at, found, err := e.find(k.path)
	if err != nil || !found {
		return nil, false
	}
	node, wrong := e.doc.resolve(at.value)
	if wrong != nil {
		return nil, false
	}
	if list, is := node.(*ast.SequenceNode); is && k.kind.isList() {
		return e.items(list)
	}
	single, is := scalarOf(node)
	if !is || single.null || k.kind.isList() {
		return nil, false
	}
	value, refused := k.parse(single.text)
	return value, refused == nil
}

func (e *editor) items(list *ast.SequenceNode) (any, bool) {
	var items []string
	for _, item := range list.Values {
		node, wrong := e.doc.resolve(item)
		single, is := scalarOf(node)
		if wrong != nil || !is {
			return nil, false
		}
		items = append(items, single.text)
	}
	return items, true
}

// otherYAML is text that YAML does not take for text.
var otherYAML = lazyregexp.New(`(?i)^(null|true|false|yes|no|on|off|y|n|[0-9][0-9a-fox_.+-]*)$`)

// yamlText is a value as it is written in the file.
func yamlText(k *key, value any) string {
	if items, is := value.([]string); is {
		quoted := make([]string, len(items))
		for i, item := range items {
			quoted[i] = yamlWord(item)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	if text, is := value.(string); is && k.kind == textKind {
		return yamlWord(text)
	}
	return shown(value)
}

// yamlWord is a text, in quotes if it needs them.
func yamlWord(text string) string {
	if plainYAML.MatchString(strings.TrimPrefix(text, "/")) && !otherYAML.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
