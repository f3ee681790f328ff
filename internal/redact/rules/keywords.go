package rules

import "strings"

// keywords finds which of many words are in a text, in one pass over it and whatever
// the case of their letters, by the algorithm of Aho and Corasick. Each word belongs
// to some of the numbered rules.
type keywords struct {
	rules   int
	classes int        // how many kinds of bytes are told apart
	class   [256]uint8 // the kind of a byte; 0 for those in no word
	next    []uint16   // the state that follows, at state*classes+class
	found   [][]int    // the rules whose words end in a state
}

// newKeywords takes the words of each rule. They are ASCII.
func newKeywords(words [][]string) *keywords {
	k := &keywords{rules: len(words), classes: 1}
	for _, list := range words {
		for _, word := range list {
			for i := range len(word) {
				k.setClass(word[i])
			}
		}
	}
	k.addState()
	for rule, list := range words {
		for _, word := range list {
			k.add(word, rule)
		}
	}
	k.link()
	return k
}

// setClass gives a byte a class, the same as its other case.
func (k *keywords) setClass(b byte) {
	if b >= 'A' && b <= 'Z' {
		b += 'a' - 'A'
	}
	if k.class[b] != 0 {
		return
	}
	k.class[b] = uint8(k.classes) //nolint:gosec // there are 256 at most with the 0
	if b >= 'a' && b <= 'z' {
		k.class[b-('a'-'A')] = k.class[b]
	}
	k.classes++
}

func (k *keywords) addState() uint16 {
	k.next = append(k.next, make([]uint16, k.classes)...)
	k.found = append(k.found, nil)
	return uint16(len(k.found) - 1) //nolint:gosec // a test loads all there are
}

func (k *keywords) add(word string, rule int) {
	state := uint16(0)
	for i := range len(word) {
		edge := int(state)*k.classes + int(k.class[word[i]])
		if k.next[edge] == 0 {
			made := k.addState()
			k.next[edge] = made
		}
		state = k.next[edge]
	}
	k.found[state] = append(k.found[state], rule)
}

// link fills in what follows where a word does not go on: the state of the longest
// word that could have begun later. States are visited by depth, so that those for
// shorter texts are done.
func (k *keywords) link() {
	fallback := make([]uint16, len(k.found))
	queue := []uint16{0}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for class := 1; class < k.classes; class++ {
			edge := int(state)*k.classes + class
			shorter := uint16(0)
			if state != 0 {
				shorter = k.next[int(fallback[state])*k.classes+class]
			}
			following := k.next[edge]
			if following == 0 {
				k.next[edge] = shorter
				continue
			}
			fallback[following] = shorter
			k.found[following] = append(k.found[following], k.found[shorter]...)
			queue = append(queue, following)
		}
	}
}

// kelvin is the one letter outside ASCII whose small form is in it. Patterns that
// ignore case match it too.
const kelvin = "\u212a"

// in says for each rule whether one of its words is in the text.
func (k *keywords) in(text string) []bool {
	text = strings.ReplaceAll(text, kelvin, "k")
	present := make([]bool, k.rules)
	seen := make([]bool, len(k.found))
	state := 0
	for i := range len(text) {
		state = int(k.next[state*k.classes+int(k.class[text[i]])])
		if len(k.found[state]) > 0 && !seen[state] {
			seen[state] = true
			for _, rule := range k.found[state] {
				present[rule] = true
			}
		}
	}
	return present
}
