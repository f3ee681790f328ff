package config

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/toryo-dev/toryo/internal/task"
)

// Changes are what [Edit] does to a file.
type Changes struct {
	// Set gives keys ("gitea.owner") values, which are written as in an environment
	// variable.
	Set map[string]string
	// Restore gives keys back the text that [Written] has returned for them.
	Restore map[string]string
	// Remove takes keys out, and sections in which nothing is left, not even a comment.
	Remove []string
}

// Edit changes some keys of a configuration file and leaves every other byte as it is:
// comments, order, blank lines and line ends. A key that is there keeps its line; a new one
// goes below the line in which the template has it commented out, or to the end of its
// section; a new section goes to the end of the file. A key that has the value already is
// not touched. Comments between the lines of a list that gets another value go with these
// lines; what [Written] says before has them, so that Restore brings them back.
//
// The text is changed line by line and is parsed again after each change: if anything but
// the key differs then, if the key is not what it was to become, or if the file is written in
// a way that lines do not show (braces, anchors), nothing is changed and the error says what
// to write by hand.
func Edit(data []byte, changes Changes) ([]byte, error) {
	schema := keys()
	for _, path := range slices.Sorted(maps.Keys(changes.Set)) {
		if schema.byPath[path] == nil {
			return nil, task.Errorf(task.Internal, "there is no key %s to set", path)
		}
	}
	mark, data := cutMark(data)
	var err error
	for _, k := range schema.keys { // in the order of the template
		if text, given := changes.Set[k.path]; given {
			data, err = setKey(data, k, text)
		} else if raw, given := changes.Restore[k.path]; given {
			data, err = restoreKey(data, k.path, raw)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, path := range changes.Remove {
		if data, err = removeKey(data, path); err != nil {
			return nil, err
		}
	}
	return append(mark, data...), nil
}

// restoreKey gives one key back the text that it had.
func restoreKey(data []byte, path, raw string) ([]byte, error) {
	changed, err := change(data, path, func(e *editor) error { return e.put(path, raw, false) })
	if err == nil {
		var now string
		var found bool
		if now, found, err = Written(changed, path); err == nil && (!found || now != raw) {
			err = notEdited(path)
		}
	}
	if err != nil {
		return nil, byHand(err, path, strings.TrimSpace(raw))
	}
	return changed, nil
}

// removeKey takes one key out, or a section in which nothing is left.
func removeKey(data []byte, path string) ([]byte, error) {
	changed, err := change(data, path, func(e *editor) error { return e.remove(path) })
	if err != nil {
		return nil, err
	}
	if keys().sections[path] != nil {
		return changed, nil // one with something in it stays
	}
	after, err := newEditor(changed)
	if err != nil {
		return nil, err
	}
	values, err := after.contents()
	if err != nil {
		return nil, err
	}
	for at := range values {
		if at == path || strings.HasPrefix(at, path+"[") {
			return nil, task.Wrap(task.Conflict, notEdited(path), cannotEdit).WithHint("take %s out by hand, and try again", path)
		}
	}
	return changed, nil
}

// notEdited is that an edit has not led to what it was for.
func notEdited(path string) error {
	return task.Errorf(task.Conflict, "the configuration file cannot be edited at %s", path)
}

// Written is how the value of a key stands in the file: all that follows the colon, also on
// the lines below. Found is false if the key is not there.
func Written(data []byte, path string) (raw string, found bool, err error) {
	_, data = cutMark(data)
	e, err := newEditor(data)
	if err != nil {
		return "", false, err
	}
	at, found, err := e.find(path)
	if err != nil || !found {
		return "", false, err
	}
	text := strings.Join(e.lines[at.line:at.end], "")
	return strings.TrimRight(text[at.colon+1:], "\r\n"), true, nil
}

// CheckValue says what is wrong with the value of a key, which is written as in an
// environment variable.
func CheckValue(path, text string) error {
	k := keys().byPath[path]
	if k == nil {
		return task.Errorf(task.Internal, "there is no key %s", path)
	}
	if _, wrong := k.parse(text); wrong != nil {
		return task.Errorf(task.Invalid, "%s", wrong.message).WithHint("%s", wrong.hint)
	}
	return nil
}

// cutMark takes the byte order mark off.
func cutMark(data []byte) (mark, rest []byte) {
	const bom = "\xef\xbb\xbf"
	if rest, found := bytes.CutPrefix(data, []byte(bom)); found {
		return []byte(bom), rest
	}
	return nil, data
}

// setKey gives one key a value, unless it has it.
func setKey(data []byte, k *key, text string) ([]byte, error) {
	if k.kind == secretKind {
		return nil, refused(k.path, secretElsewhere(k, "in the configuration file"))
	}
	value, wrong := k.parse(text)
	if wrong != nil {
		return nil, refused(k.path, wrong)
	}
	e, err := newEditor(data)
	if err != nil {
		return nil, err
	}
	if now, found := e.value(k); found && reflect.DeepEqual(now, value) {
		return data, nil
	}
	changed, err := change(data, k.path, func(e *editor) error { return e.put(k.path, " "+yamlText(k, value), true) })
	if err != nil {
		return nil, byHand(err, k.path, yamlText(k, value))
	}
	after, err := newEditor(changed)
	if err != nil {
		return nil, byHand(err, k.path, yamlText(k, value))
	}
	if now, found := after.value(k); !found || !reflect.DeepEqual(now, value) {
		return nil, byHand(notEdited(k.path), k.path, yamlText(k, value))
	}
	return changed, nil
}

const cannotEdit = "the configuration file is written in a way that Toryo does not edit"

// byHand says what a person can write where we cannot.
func byHand(err error, path, value string) error {
	return task.Wrap(task.Conflict, err, cannotEdit).
		WithHint("set %s: %s by hand, and try again", path, value)
}

func refused(path string, wrong *complaint) error {
	return task.Errorf(task.Invalid, "%s: %s", path, wrong.message).WithHint("%s", wrong.hint)
}

// change makes one change, and makes sure that it concerns the path only.
func change(data []byte, path string, do func(*editor) error) ([]byte, error) {
	e, err := newEditor(data)
	if err != nil {
		return nil, err
	}
	before, err := e.contents()
	if err != nil {
		return nil, err
	}
	if err := do(e); err != nil {
		return nil, err
	}
	changed := []byte(strings.Join(e.lines, ""))
	after, err := newEditor(changed)
	if err != nil {
		return nil, task.Wrap(task.Conflict, err, "the configuration file cannot be edited at "+path)
	}
	now, err := after.contents()
	if err != nil {
		return nil, err
	}
	for _, values := range []map[string]string{before, now} {
		maps.DeleteFunc(values, func(at, _ string) bool { return at == path || strings.HasPrefix(at, path+"[") })
	}
	if !maps.Equal(before, now) {
		return nil, task.Errorf(task.Conflict, "the configuration file cannot be edited at %s without changing something else in it", path)
	}
	return changed, nil
}

// editor is a file as lines and as what they mean.
type editor struct {
	lines []string // each with its end
	doc   *document
	end   string // of a line
}

func newEditor(data []byte) (*editor, error) {
	doc, wrong := parseDocument(data)
	if wrong != nil {
		err := task.Errorf(task.BadConfig, "%s", wrong.message).WithHint("%s", wrong.hint)
		if wrong.at.line > 0 {
			err.Message = fmt.Sprintf("line %d: %s", wrong.at.line, err.Message)
		}
		return nil, err
	}
	e := &editor{lines: splitLines(string(data)), doc: doc, end: "\n"}
	if len(e.lines) > 0 && strings.HasSuffix(e.lines[0], "\r\n") {
		e.end = "\r\n"
	}
	return e, nil
}

// splitLines splits a text as plainText counts lines: a single carriage return ends one too.
func splitLines(text string) []string {
	var lines []string
	for text != "" {
		at := strings.IndexAny(text, "\r\n")
		if at < 0 {
			return append(lines, text)
		}
		size := at + 1
		if strings.HasPrefix(text[at:], "\r\n") {
			size++
		}
		lines, text = append(lines, text[:size]), text[size:]
	}
	return lines
}

// contents are the values of the file by their paths. What says nothing is not among them.
func (e *editor) contents() (map[string]string, error) {
	all := make(map[string]string)
	if wrong := e.doc.collect(e.doc.body, "", all, 0); wrong != nil {
		return nil, task.Errorf(task.BadConfig, "line %d: %s", wrong.at.line, wrong.message).WithHint("%s", wrong.hint)
	}
	return all, nil
}

// collect adds the values below a node.
func (d *document) collect(node ast.Node, path string, to map[string]string, depth int) *fault {
	if depth > maxNesting || len(to) > maxEntries {
		return faultAt(positionOf(node), "write it in plain key: value lines", "the YAML is nested too deeply")
	}
	node, wrong := d.resolve(node)
	if wrong != nil {
		return wrong
	}
	if isMapping(node) {
		pairs, faults := d.pairs(node, depth)
		if len(faults) > 0 {
			return faults[0]
		}
		for _, p := range pairs {
			if wrong := d.collect(p.value, join(path, pathName(p.key)), to, depth+1); wrong != nil {
				return wrong
			}
		}
		return nil
	}
	if list, is := node.(*ast.SequenceNode); is {
		to[path] += "[]" // also of an empty one
		for i, item := range list.Values {
			if wrong := d.collect(item, fmt.Sprintf("%s[%d]", path, i), to, depth+1); wrong != nil {
				return wrong
			}
		}
		return nil
	}
	if single, is := scalarOf(node); is && !single.null {
		to[path] += fmt.Sprintf("%t%q", single.quoted, single.text) // twice if it is there twice
	}
	return nil
}
