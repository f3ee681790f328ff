package config

import "github.com/goccy/go-yaml/ast"

// readDocument takes what the text of the file says.
func (l *loader) readDocument(data []byte) {
	doc, wrong := parseDocument(data)
	if wrong != nil {
		l.unread = true
		l.problem(l.inFile(wrong.at), "", &wrong.complaint)
		return
	}
	l.readSection(doc, l.schema.root, doc.body, position{1, 1})
}

// readSection takes the keys of one section. A section that says nothing is
// right.
func (l *loader) readSection(doc *document, s *section, value ast.Node, at position) {
	node, wrong := doc.resolve(value)
	if wrong != nil {
		l.problem(l.inFile(wrong.at), s.path, &wrong.complaint)
		return
	}
	l.sections[s.path] = at
	if single, ok := scalarOf(node); ok && single.null {
		return
	}
	pairs, faults := doc.pairs(node, 0)
	for _, fault := range faults {
		l.problem(l.inFile(fault.at), s.path, &fault.complaint)
	}
	if pairs == nil && faults == nil && !isMapping(node) {
		l.problem(l.inFile(firstPosition(value)), s.path, complain("write key: value lines", "keys are expected here, not %s", sortOf(node)))
		return
	}
	first := make(map[string]position)
	for _, p := range pairs {
		if before, twice := first[p.key]; twice {
			l.problem(l.inFile(p.at), join(s.path, shortName(p.key)), complain("remove one of the two", "the key is already on line %d", before.line))
			continue
		}
		first[p.key] = p.at
		l.readPair(doc, s, p)
	}
}

func isMapping(node ast.Node) bool {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

func (l *loader) readPair(doc *document, s *section, p pair) {
	m, found := s.find(p.key)
	if !found && s.entries != nil {
		l.readEntry(doc, s, p)
		return
	}
	if wrong := removed[join(s.path, p.key)]; !found && wrong != nil {
		l.warning(l.inFile(p.at), join(s.path, p.key), wrong)
		return
	}
	switch {
	case !found:
		l.problem(l.inFile(p.at), join(s.path, shortName(p.key)), complain(l.schema.suggest(s, p.key), "unknown key"))
	case m.section != nil:
		l.readSection(doc, m.section, p.value, p.at)
	default:
		l.readKey(doc, m.key, p)
	}
}

// shortName keeps a key that is not one from filling the line.
func shortName(name string) string {
	quoted := show(name)
	if quoted == `"`+name+`"` && name != "" {
		return name
	}
	return quoted
}

// readKey takes the value of one key.
func (l *loader) readKey(doc *document, k *key, p pair) {
	node, wrong := doc.resolve(p.value)
	if wrong != nil {
		l.problem(l.inFile(wrong.at), k.path, &wrong.complaint)
		return
	}
	at := l.inFile(firstPosition(p.value))
	if list, ok := node.(*ast.SequenceNode); ok && k.kind.isList() {
		l.readList(doc, k, p, list)
		return
	}
	single, ok := scalarOf(node)
	switch {
	case ok && single.null:
		return // says nothing: not set
	case k.kind == secretKind:
		l.redactor.Add(single.text)
		l.problem(l.inFile(p.at), k.path, secretElsewhere(k, "in the configuration file"))
	case k.kind.isList():
		l.problem(at, k.path, complain("write it as a list: [one, two]", "a list is expected here, not %s", sortOf(node)))
	case !ok:
		l.problem(at, k.path, complain("write "+k.name+": and the value", "one value is expected here, not %s", sortOf(node)))
	case single.quoted && k.kind.isBare():
		l.problem(at, k.path, complain("remove the quotes", "%s is expected here, not text", k.kind))
	default:
		value, refused := k.parse(single.text)
		if refused != nil {
			l.problem(at, k.path, refused)
			return
		}
		l.set(l.inFile(p.at), k, value, nil)
	}
}

func (l *loader) readList(doc *document, k *key, p pair, list *ast.SequenceNode) {
	var items []string
	for _, item := range list.Values {
		node, wrong := doc.resolve(item)
		if wrong != nil {
			l.problem(l.inFile(wrong.at), k.path, &wrong.complaint)
			return
		}
		single, ok := scalarOf(node)
		if !ok {
			l.problem(l.inFile(firstPosition(item)), k.path, complain("write one value for each entry", "an entry of the list is %s", sortOf(node)))
			return
		}
		items = append(items, single.text)
		if refused := k.checkList(items); refused != nil {
			l.problem(l.inFile(firstPosition(item)), k.path, refused)
			return
		}
	}
	l.set(l.inFile(p.at), k, items, nil)
}

func (k kind) isList() bool { return k == listKind || k == commandKind }

// isBare says that a value in quotes is not of this kind.
func (k kind) isBare() bool { return k == boolKind || k == wholeKind || k == numberKind }

// String names the kind, for people.
func (k kind) String() string {
	switch k {
	case boolKind:
		return "true or false"
	case wholeKind:
		return "a whole number"
	case numberKind:
		return "a number"
	case durationKind:
		return "a duration"
	case sizeKind:
		return "a size"
	case listKind, commandKind:
		return "a list"
	default:
		return "text"
	}
}
