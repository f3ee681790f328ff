package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
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

// Request is what somebody asked for in a review.
type Request struct {
	Comment task.Comment
	Path    string // of the file; empty if it is about none
	// Writer says that the author may write to the repository. Of others nothing is kept.
	Writer bool
	// Resolved says that the thread was resolved, and Changed that a task has changed the place since.
	Resolved, Changed bool
}

// Ended is a pull request of ours that was merged or closed.
type Ended struct {
	Pull   task.Key
	URL    string
	Merged bool
	// Names are the logins by which people address us.
	Names    []string
	Requests []Request // the first of them first
}

// Learn makes the lesson of a pull request. Known are the notes that the repository has. Redact masks
// secrets in what people wrote.
func Learn(ended Ended, known []store.Note, redact func(string) string, now time.Time) store.Lesson {
	lesson := store.Lesson{Pull: ended.Pull, Most: MostNotes}
	said := make([]like, 0, len(known)+len(ended.Requests))
	for _, note := range known {
		said = append(said, like{note.ID, wordsOf(note.Text)})
	}
	for _, request := range ended.Requests {
		text, source := clean(request.Comment.Body, ended.Names, redact), Source(ended.Pull, request.Comment.Ref())
		if letters(text) < leastLetters {
			continue
		}
		lesson.Present = append(lesson.Present, source)
		if !request.Writer || len(lesson.Learned) == mostLearned {
			continue
		}
		learned := store.Learned{Source: source, Note: store.Note{
			Repository: ended.Pull.Repo(), Text: text, Path: textfmt.Shorten(textfmt.OneLine(redact(visible(request.Path))), MaxPath), Ending: ending(ended.Merged, request),
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

func ending(merged bool, request Request) store.NoteEnding {
	switch {
	case !merged:
		return store.NoteClosed
	case request.Changed:
		return store.NoteDone
	case request.Resolved:
		return store.NoteResolved
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
	htmlComment = lazyregexp.New(`(?s)<!--.*?(?:-->|$)`)
	quotedLine  = lazyregexp.New(`(?m)^[ \t]*>.*$`)
	emptyLines  = lazyregexp.New(`\n\s*\n+`)
	addressed   = lazyregexp.New(`^@([\w.-]+)(?:\[bot\])?[,:]?`)
)

// clean is a text as a note has it: without what it quotes, without what cannot be seen, without our
// names at the beginning, and not longer than a note may be.
func clean(text string, names []string, mask func(string) string) string {
	// Secrets are masked as the text is written, and again when what hides in them is gone.
	text = quotedLine.ReplaceAllString(htmlComment.ReplaceAllString(plain(text, mask), ""), "")
	text = withoutNames(plain(emptyLines.ReplaceAllString(text, "\n"), mask), names)
	return textfmt.Shorten(text, MaxText)
}

// plain is a text without secrets, as it is written and as it is shown.
func plain(text string, mask func(string) string) string {
	return strings.TrimSpace(mask(visible(mask(text))))
}

// withoutNames is a text without the names of those to whom it is addressed, as far as we are that.
// Other words that begin like that may be what it is about, such as @Override.
func withoutNames(text string, names []string) string {
	ours := func(found []string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return task.SameLogin(strings.TrimSuffix(name, "[bot]"), strings.TrimRight(found[1], ".-"))
		})
	}
	for {
		found := addressed.FindStringSubmatch(text)
		if len(found) == 0 || !ours(found) {
			return text
		}
		text = strings.TrimSpace(text[len(found[0]):])
	}
}

// visible is a text without the characters that are not shown. PostgreSQL does not take some of them.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
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

// withdrawn is a sentence by which people take back what they asked for: it begins with these words, with
// an excuse before them at most, and they have no object ("ignore this error" asks for something). What is
// to be ignored has to be the comment: "ignore it" may be the answer to a question about the code.
var withdrawn = lazyregexp.New(`(?i)(?:^|[.!?。！？\n])\s*(?:(?:@[\w.-]+|oh|ah|hm+|ok(?:ay)?|sorry|actually|wait|no|please|すみません|すいません|申し訳ありません|ごめんなさい|失礼しました|あ)[\s,.!:、。]*)*` +
	`(?:(?:never ?mind|nvm|(?:ignore|forget|disregard) (?:me|(?:my|this|that) comment)|my (?:mistake|bad)|scratch that|i was wrong)` +
	`\s*(?:$|[.!?\n,;:()…—–-]|\s(?:i|it|then|sorry|thanks|please)\b)|` +
	`(?:(?:この|その|上の|前の|先ほどの|さっきの|私の)?(?:コメント|指摘)[はもを]?[、 ]?無視してください)|` +
	`(?:(?:この|その|上の|前の|先ほどの|さっきの)?(?:コメント|指摘|件)[はも]?[、 ]?|これは、?|私の|こちらの)?` +
	`(?:忘れてください|気にしないで|(?:を)?取り下げ(?:ます|ました|させて)|(?:を)?撤回(?:します|しました|させて)|やっぱり(?:いい|大丈夫|不要)|(?:勘違い|誤解)(?:でした|していました|してました)))`)

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
