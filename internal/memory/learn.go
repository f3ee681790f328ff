package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// MaxText is how many characters the text of a note has at most.
	MaxText = 500
	// MaxPath is how many characters its path has at most.
	MaxPath = 300
	// MostNotes is how many notes a repository keeps.
	MostNotes = 500
	// mostLearned is how much is learned from one pull request: the first comments count.
	mostLearned = 50
	// leastLetters is how many letters a request has at least. What is shorter, such as "nit" or "LGTM",
	// is of no use to another task.
	leastLetters = 8
	// sameShare is the share of words that two requests have in common which ask for the same.
	sameShare = 0.6
)

// Request is what somebody who may write to the repository asked for in a review.
type Request struct {
	Comment task.Comment
	Path    string // of the file; empty if it is about none
	Done    bool   // it was changed since
}

// Ended is a pull request of ours that was merged or closed.
type Ended struct {
	Pull   task.Key
	URL    string
	Merged bool
	// Present are all comments in its reviews, whoever wrote them, and Requests those that are kept.
	Present  []task.CommentRef
	Requests []Request
}

// Learn makes the lesson of a pull request. Known are the notes that the repository has. Redact masks
// secrets in what people wrote.
func Learn(ended Ended, known []store.Note, redact func(string) string, now time.Time) store.Lesson {
	lesson := store.Lesson{Pull: ended.Pull, Most: MostNotes}
	for _, ref := range ended.Present {
		lesson.Present = append(lesson.Present, Source(ended.Pull, ref))
	}
	said := make([]like, 0, len(known)+len(ended.Requests))
	for _, note := range known {
		said = append(said, like{note.ID, wordsOf(note.Text)})
	}
	for _, request := range ended.Requests {
		text := Clean(redact(request.Comment.Body))
		if letters(text) < leastLetters || len(lesson.Learned) == mostLearned {
			continue
		}
		learned := store.Learned{Source: Source(ended.Pull, request.Comment.Ref()), Note: store.Note{
			Repository: ended.Pull.Repo(), Text: text, Path: textfmt.Shorten(textfmt.OneLine(request.Path), MaxPath), Ending: ending(ended.Merged, request.Done),
			Author: request.Comment.Author, URL: ended.URL, Pull: ended.Pull.Number, AskedAt: request.Comment.CreatedAt, CreatedAt: now,
		}}
		words := wordsOf(text)
		if learned.Into = same(said, words); learned.Into == "" {
			said = append(said, like{learned.Source, words})
		}
		lesson.Learned = append(lesson.Learned, learned)
	}
	return lesson
}

func ending(merged, done bool) store.NoteEnding {
	switch {
	case !merged:
		return store.NoteClosed
	case done:
		return store.NoteDone
	default:
		return store.NoteMerged
	}
}

// Source is what is kept of where a note comes from, so that the same comment is learned from once.
func Source(pull task.Key, comment task.CommentRef) string {
	sum := sha256.Sum256([]byte(pull.String() + "\n" + string(comment.Kind) + "\n" + comment.ID))
	return hex.EncodeToString(sum[:])
}

var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)`)
	quotedLine  = regexp.MustCompile(`(?m)^[ \t]*>.*$`)
	emptyLines  = regexp.MustCompile(`\n\s*\n+`)
	// addressed is whom a comment is addressed to.
	addressed = regexp.MustCompile(`^(?:\s*@[\w.\[\]-]+[,:]?)+\s*`)
)

// Clean is a text as a note has it: without what it quotes, without what cannot be seen, and not
// longer than a note may be.
func Clean(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD")
	text = quotedLine.ReplaceAllString(htmlComment.ReplaceAllString(text, ""), "")
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, text)
	text = addressed.ReplaceAllString(emptyLines.ReplaceAllString(text, "\n"), "")
	return textfmt.Shorten(strings.TrimSpace(text), MaxText)
}

func letters(text string) (n int) {
	for _, r := range text {
		if unicode.IsLetter(r) {
			n++
			if ideographic(r) {
				n++ // a character of these scripts says as much as two letters
			}
		}
	}
	return n
}

// withdrawn are the words by which people take back what they asked for.
var withdrawn = regexp.MustCompile(`(?i)\b(?:never ?mind|nvm|ignore (?:this|that|me|my)|forget (?:it|this|that)|my (?:mistake|bad)|scratch that|i was wrong)\b|` +
	`忘れてください|気にしないで|取り下げ|撤回|無視して|やっぱり(?:いい|大丈夫|不要)|勘違い|誤解でした`)

// longestWithdrawal is how long a comment is at most that only takes something back.
const longestWithdrawal = 200

// Withdraws reports whether a later comment of the same person takes back what was asked for.
func Withdraws(text string) bool {
	return len(text) <= longestWithdrawal && withdrawn.MatchString(text)
}

// like is a request that is known: its name, and its words.
type like struct {
	name  string
	words map[string]bool
}

// same returns the name of the request that asks for the same, or nothing.
func same(said []like, words map[string]bool) string {
	best, name := sameShare, ""
	for _, one := range said {
		common := inCommon(one.words, words)
		all := len(one.words) + len(words) - common
		if all > 0 && float64(common)/float64(all) >= best {
			best, name = float64(common)/float64(all), one.name
		}
	}
	return name
}

func inCommon(a, b map[string]bool) (n int) {
	for word := range a {
		if b[word] {
			n++
		}
	}
	return n
}
