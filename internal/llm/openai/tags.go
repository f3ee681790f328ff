package openai

import "strings"

const openTag, closeTag = "<think>", "</think>"

// tagReader takes apart what a model thinks and what it says where a server leaves both
// in one text: the thinking is at the start, between tags. They may come in pieces.
type tagReader struct {
	state   tagState
	pending string // may be part of a tag
}

type tagState int

const (
	atStart tagState = iota
	inThinking
	behind // in what is said; nothing is looked for any more
)

// read takes the next piece.
func (r *tagReader) read(piece string) (thinking, text string) {
	r.pending += piece
	if r.state == atStart {
		begun := strings.TrimLeft(r.pending, " \n\r\t")
		switch {
		case strings.HasPrefix(begun, openTag):
			r.state, r.pending = inThinking, begun[len(openTag):]
		case strings.HasPrefix(openTag, begun):
			return "", "" // more has to come
		default:
			r.state = behind
		}
	}
	if r.state == inThinking {
		before, after, found := strings.Cut(r.pending, closeTag)
		if !found {
			keep := overlap(r.pending, closeTag)
			thinking, r.pending = r.pending[:len(r.pending)-keep], r.pending[len(r.pending)-keep:]
			return thinking, ""
		}
		r.state, r.pending = behind, strings.TrimLeft(after, "\r\n")
		thinking = before
	}
	text, r.pending = r.pending, ""
	return thinking, text
}

// rest is what is left at the end.
func (r *tagReader) rest() (thinking, text string) {
	left := r.pending
	r.pending = ""
	if r.state == inThinking {
		return left, ""
	}
	return "", left
}

// overlap is how many bytes at the end of the text may begin the tag.
func overlap(text, tag string) int {
	for n := min(len(text), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}
