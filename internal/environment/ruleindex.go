package environment

import "strings"

// ruleIndex finds the rules that a line can match, by the first bytes of their
// first text. Without it every line would be searched for some five hundred
// texts.
var ruleIndex = indexRules(rules)

// keyLength is how many bytes of a text are its key. No first text of a rule is
// shorter, which a test watches.
const keyLength = 4

type indexedRules struct {
	maybe [1 << 16]bool // whether a key with this hash exists at all
	byKey map[string][]int
}

func keyHash(key string) uint16 {
	return uint16(key[0])<<8 ^ uint16(key[1])<<5 ^ uint16(key[2])<<3 ^ uint16(key[3])
}

func indexRules(all []rule) *indexedRules {
	index := &indexedRules{byKey: map[string][]int{}}
	for number, rule := range all {
		for text := range strings.SplitSeq(rule.all[0], "|") {
			key := text[:keyLength]
			index.maybe[keyHash(key)] = true
			index.byKey[key] = append(index.byKey[key], number)
		}
	}
	return index
}

// candidates appends the numbers of the rules that the line, in lower case, may
// match. A number can come more than once.
func (x *indexedRules) candidates(line string, to []int) []int {
	for at := 0; at+keyLength <= len(line); at++ {
		key := line[at : at+keyLength]
		if x.maybe[keyHash(key)] {
			to = append(to, x.byKey[key]...)
		}
	}
	return to
}
