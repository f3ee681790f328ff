package phase

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// earlierComments is the pinned block with the comments that were there when the
	// conversation began, and later with those that were shortened. commentsBlock begins
	// the names of the blocks with newer ones.
	earlierComments = "comments"
	commentsBlock   = "comments-"

	// longestComment is how much of a comment the model is shown, keptComment how much
	// can be read with the tool, and shortComment what is left of one that was shortened.
	longestComment = 16_000
	keptComment    = 64_000
	shortComment   = 300
	// longestWas is how much it is shown of what does not hold any more.
	longestWas = 2_000
	// mostTaken is how many bytes of comments are taken up in one entry of the journal,
	// which takes 4 MiB of JSON. There a byte may be six.
	mostTaken = 400 << 10

	commentsHeading = "# Additional instructions\n\nPeople have commented on the task since the last look. These are additional instructions from them, oldest first."
	commentsGoOn    = "Take them into account and go on with the task."
)

// commentRoom is the room for each of three kinds of comments before the model of a phase:
// those of the request, those of reviewers, and those that were made during the run. Together
// they are at most about a quarter of what the model takes, at four bytes a token.
func (r *run) commentRoom(of task.Phase) room {
	const least, most = 4_000, 32_000
	whole := most
	if length := r.Model(of).Info().ContextLength; length > 0 {
		whole = int(min(max(length/4, least), most))
	}
	return room{whole, whole / 4}
}

// takeComments gives the model what people said in other conversations of the run, such as
// a reflection, and if it is to look for more, what they have said since the last look. What
// goes wrong is logged; the comments are found at the next look, because the journal does
// not have them as taken.
func (t *chat) takeComments(ctx context.Context, look bool) {
	if t.ignoreComments {
		return
	}
	if err := t.catchUp(ctx); err != nil {
		t.run.Log.WarnContext(ctx, "failed to add comments to the conversation", "error", err)
		return
	}
	if !look || t.run.Comments.Disabled && !t.run.state.asking {
		return
	}
	if err := t.takeWaiting(ctx); err != nil {
		t.run.Log.WarnContext(ctx, "failed to take up new comments", "error", err)
	}
}

// takeWaiting gives the model what people have said since the last look, whether or not
// comments are looked for; see takeComments.
func (t *chat) takeWaiting(ctx context.Context) error {
	comments, err := t.run.waiting(ctx)
	if err != nil {
		return fmt.Errorf("look for new comments: %w", err)
	}
	for part := range inParts(comments) {
		if err := t.take(ctx, part); err != nil {
			return fmt.Errorf("add new comments to the conversation: %w", err)
		}
	}
	return nil
}

// catchUp gives the model what was taken up elsewhere.
func (t *chat) catchUp(ctx context.Context) error {
	for part := range inParts(t.run.state.missing(t.name)) {
		if err := t.pinComments(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// waiting are the comments that were not taken up yet. The first look of a run that goes on
// asks the server: the answer that it goes on for may not have been received yet.
func (r *run) waiting(ctx context.Context) ([]task.CommentEntry, error) {
	if r.firstLook {
		return r.waitingNow(ctx)
	}
	return r.untaken(r.Forge.Comments(ctx, r.state.position))
}

// waitingNow is waiting, of all that the server has by now.
func (r *run) waitingNow(ctx context.Context) ([]task.CommentEntry, error) {
	comments, err := r.untaken(r.Forge.LatestComments(ctx, r.state.position))
	if err == nil {
		r.firstLook = false
	}
	return comments, err
}

// untaken are those of the comments that were not taken up yet.
func (r *run) untaken(comments []task.CommentEntry, err error) ([]task.CommentEntry, error) {
	return slices.DeleteFunc(comments, func(c task.CommentEntry) bool { return c.Position <= r.state.position }), err
}

// take takes comments up: they are in the journal as taken when the model has them.
func (t *chat) take(ctx context.Context, comments []task.CommentEntry) error {
	signal := judge(comments)
	counting := counted(comments)
	if len(counting) == 0 {
		return t.run.append(ctx, task.SignalTaken, Entry{Step: t.run.step(), Signal: signal})
	}
	t.journal.signal = signal
	defer func() { t.journal.signal = nil }()
	return t.pinComments(ctx, counting)
}

// pinComments pins comments that the conversation does not have. Past the room that there
// is for comments, those that it has are shortened.
func (t *chat) pinComments(ctx context.Context, comments []task.CommentEntry) error {
	room := t.run.commentRoom(t.phase)
	added := conversation.Block{
		Name: fmt.Sprint(commentsBlock, comments[len(comments)-1].Position),
		Text: commentsHeading + "\n\n" + room.describeAll(comments) + "\n\n" + commentsGoOn,
	}
	if mayHaveImages(added.Text) {
		t.run.loadImages(ctx)
		added = t.run.withImages(added)
	}
	if err := t.conversation.Pin(ctx, added); err != nil {
		return err
	}
	t.journal.signal = nil // it is written
	return t.shorten(ctx, room, added, comments[0].Position)
}

// shorten makes the blocks with comments before the position into one with less text, when
// there is no room for all of them. It leaves room for some more, so that this is seldom.
func (t *chat) shorten(ctx context.Context, in room, added conversation.Block, before int64) error {
	size := len(added.Text)
	var others []string
	for _, block := range t.conversation.Blocks() {
		if block.Name != added.Name && (block.Name == earlierComments || strings.HasPrefix(block.Name, commentsBlock)) {
			others = append(others, block.Name)
			size += len(block.Text)
		}
	}
	if size <= in.whole+in.shortened || len(others) == 0 {
		return nil
	}
	earlier := slices.DeleteFunc(slices.Clone(t.run.state.newComments), func(c task.CommentEntry) bool { return c.Position >= before })
	left := room{in.whole/2 - len(added.Text), in.shortened}
	return t.conversation.Replace(ctx, others, t.run.withImages(conversation.Block{Name: earlierComments, Text: commentsHeading + "\n\n" + left.describeAll(earlier)}))
}

// inParts yields the comments in parts that are not too long for one entry.
func inParts(comments []task.CommentEntry) func(yield func([]task.CommentEntry) bool) {
	return func(yield func([]task.CommentEntry) bool) {
		for begin := 0; begin < len(comments); {
			end, size := begin, 0
			for end < len(comments) && (end == begin || size+len(comments[end].Body) <= mostTaken) {
				size += len(comments[end].Body)
				end++
			}
			if !yield(comments[begin:end]) {
				return
			}
			begin = end
		}
	}
}

// judge says what becomes of each comment.
func judge(comments []task.CommentEntry) *SignalEntry {
	signal := &SignalEntry{Signal: task.SignalComments}
	for _, comment := range comments {
		signal.Comments = append(signal.Comments, takenOf(comment))
		signal.Position = max(signal.Position, comment.Position)
	}
	return signal
}

// takenOf is a comment for the journal. The times are left out, and of a refused comment
// also kind, place, access and text.
func takenOf(comment task.CommentEntry) task.CommentEntry {
	if comment.Refused != "" { // named one by one, so that nothing else of it is ever kept
		return task.CommentEntry{
			Comment: task.Comment{ID: comment.ID, Author: comment.Author}, Position: comment.Position, Change: comment.Change, Refused: comment.Refused,
		}
	}
	comment.CreatedAt, comment.UpdatedAt = time.Time{}, time.Time{}
	comment.Body = tool.Shorten(tool.Printable(comment.Body), keptComment)
	comment.Before = tool.Shorten(tool.Printable(comment.Before), longestWas)
	return comment
}

// counted are the comments that are taken up.
func counted(comments []task.CommentEntry) []task.CommentEntry {
	return slices.DeleteFunc(slices.Clone(comments), func(c task.CommentEntry) bool { return c.Refused != "" })
}

// room is how many bytes there are for comments.
type room struct {
	whole     int // for those that are shown as they are
	shortened int // for those that are shortened
}

// fitted are texts about comments, oldest first: the newest as they are while there is
// room, those before them shortened, and the first, when there are very many, by their
// number only. Each is made by of, with at most so many bytes of the comment.
func (in room) fitted(count int, of func(i, most int) string) []string {
	texts, short := make([]string, 0, count), false
	for i := count - 1; i >= 0; i-- {
		text := of(i, longestComment)
		if short = short || len(text) > in.whole && (len(texts) > 0 || in.whole <= 0); short {
			text = of(i, shortComment)
			in.shortened -= len(text)
		} else {
			in.whole -= len(text)
		}
		if in.shortened < 0 {
			texts = append(texts, fmt.Sprintf("There are %d earlier comments. Read them with the tool %s.", i+1, commentsTool))
			break
		}
		texts = append(texts, text)
	}
	slices.Reverse(texts)
	return texts
}

// describeAll describes comments, oldest first, as far as there is room.
func (in room) describeAll(comments []task.CommentEntry) string {
	return strings.Join(in.fitted(len(comments), func(i, most int) string { return describe(comments[i], most) }), "\n\n")
}

// quoteComment quotes a comment, with so many bytes of its text.
func quoteComment(source string, comment task.CommentEntry, most int) string {
	text := quoteBy(source, authorOf(comment), comment.Body, most)
	if len(comment.Body) > most {
		text += fmt.Sprintf("\n(This is not all of it. Read it whole with the tool %s and the id %s.)", commentsTool, llm.QuoteLine(reference(comment)))
	}
	return text
}

func authorOf(comment task.CommentEntry) Person {
	return Person{Login: comment.Author, Access: comment.Access}
}

// describe is a comment as the model is told of it, with at most so many bytes of its text.
func describe(comment task.CommentEntry, most int) string {
	author, id, place := textfmt.OneLine(comment.Author), textfmt.OneLine(comment.ID), ""
	switch {
	case comment.Kind == task.SummaryComment:
		place = " in a review" + verdicts[comment.About]
	case comment.About != "":
		place = " on the line " + plainName(comment.About)
	}
	quoted := func(text string, most int) string { return quoteBy(sourceOf(comment), authorOf(comment), text, most) }
	switch comment.Change {
	case task.CommentEdited:
		now := fmt.Sprintf("%s has changed a comment of theirs (%s)%s. It now says:\n%s", author, id, place, quoteComment(sourceOf(comment), comment, most))
		if comment.Before == "" {
			return now
		}
		return now + "\nWhat it said before does not hold any more:\n" + quoted(comment.Before, min(longestWas, most))
	case task.CommentDeleted:
		gone := fmt.Sprintf("%s has withdrawn a comment (%s). What it said does not hold any more", author, id)
		if comment.Body == "" {
			return gone + "."
		}
		return gone + " and is not to be followed:\n" + quoted(comment.Body, min(longestWas, most))
	}
	return fmt.Sprintf("%s says%s:\n%s", author, place, quoteComment(sourceOf(comment), comment, most))
}

// reference is what the model calls a comment. Forges number comments of different kinds
// apart.
func reference(c task.CommentEntry) string {
	if c.Kind == "" || c.Kind == task.ItemComment {
		return textfmt.OneLine(c.ID)
	}
	return string(c.Kind) + "/" + textfmt.OneLine(c.ID)
}

// sourceOf is what the model is told that a comment is.
func sourceOf(c task.CommentEntry) string {
	switch c.Kind {
	case task.ReviewComment:
		return "review comment"
	case task.SummaryComment:
		return "review"
	}
	return "comment"
}

// verdicts are those of reviews as the model is told of them. One that decides nothing
// has no words.
var verdicts = map[string]string{"approve": " that approves", "request_changes": " that requests changes"}

// commentsTool is the tool that reads comments.
const commentsTool = "comments"

//go:embed comments.md
var commentsDescription string

type commentsInput struct {
	ID     string `json:"id,omitempty"`
	Offset int    `json:"offset,omitempty" jsonschema:"bytes or comments to leave out"`
}

// readComments is the tool of a phase that reads comments whole, in parts.
func (r *run) readComments(of task.Phase) tool.Tool {
	return tool.Define(commentsTool, commentsDescription, true, func(_ context.Context, _ llm.Call, in commentsInput) (tool.Output, error) {
		all := slices.Concat(r.Work.initialComments(), r.state.newComments)
		if in.Offset < 0 {
			return tool.Output{}, tool.Mistake("the offset has to be 0 or more")
		}
		if in.ID == "" {
			return tool.Output{Text: listed(all, in.Offset)}, nil
		}
		at := -1
		for i := range all { // the last of several versions counts
			if reference(all[i]) == in.ID {
				at = i
			}
		}
		if at < 0 {
			return tool.Output{}, tool.Mistake("there is no comment with the id %q", in.ID)
		}
		return tool.Output{Text: part(all[at], in.Offset, min(longestComment, r.commentRoom(of).whole/2))}, nil
	})
}

// initialComments are the comments that were there when the run began.
func (w Work) initialComments() []task.CommentEntry {
	all := slices.Clone(w.Comments)
	if w.Pull != nil {
		all = append(all, w.Pull.Summaries...)
		for _, thread := range w.Pull.Threads {
			for _, comment := range thread.Comments {
				comment.Kind, comment.About = task.ReviewComment, fmt.Sprintf("%s:%d", thread.Path, thread.Line)
				all = append(all, comment)
			}
		}
	}
	return all
}

// listed lists comments by their first words.
func listed(comments []task.CommentEntry, from int) string {
	const most, words = 100, 120
	from = min(from, len(comments))
	lines := []string{fmt.Sprintf("There are %d comments, oldest first.", len(comments))}
	for _, comment := range comments[from:min(from+most, len(comments))] {
		text := textfmt.OneLine(tool.Printable(comment.Body))
		if len(text) > words {
			text = textfmt.Clip(text, words) + "…"
		}
		place := ""
		if comment.Kind == task.ReviewComment && comment.About != "" {
			place = " on " + plainName(comment.About)
		}
		lines = append(lines, fmt.Sprintf("- %s by %s%s, %d bytes: %s", llm.QuoteLine(reference(comment)), llm.QuoteLine(textfmt.OneLine(comment.Author)),
			place, len(comment.Body), llm.QuoteLine(text)))
	}
	if left := len(comments) - from - most; left > 0 {
		lines = append(lines, fmt.Sprintf("There are %d more; list them with offset %d.", left, from+most))
	}
	return strings.Join(lines, "\n")
}

// part is a part of a comment, of so many bytes.
func part(comment task.CommentEntry, from, most int) string {
	body := tool.Printable(comment.Body)
	from = min(from, len(body))
	for from < len(body) && !utf8.RuneStart(body[from]) {
		from++
	}
	until := min(from+most, len(body))
	for until < len(body) && !utf8.RuneStart(body[until]) {
		until--
	}
	comment.Body = body[from:until]
	text := describe(comment, longestComment)
	if until < len(body) {
		text += fmt.Sprintf("\n%d bytes follow; read on with offset %d.", len(body)-until, until)
	}
	return text
}

// missing are the comments that were taken up and that a conversation does not have.
func (s *state) missing(name string) []task.CommentEntry {
	has := s.has[name]
	return slices.DeleteFunc(slices.Clone(s.newComments), func(c task.CommentEntry) bool { return c.Position <= has })
}

// unanswered are the comments that were taken up and that the model that does the work has
// not answered since.
func (s *state) unanswered() []task.CommentEntry {
	until := s.answered[string(task.Execution)]
	return slices.DeleteFunc(slices.Clone(s.newComments), func(c task.CommentEntry) bool { return c.Position <= until })
}

// tooLate says which comments were taken up and could not be dealt with any more.
func (r *run) tooLate() string {
	var late []notice.Late
	for _, comment := range r.state.unanswered() {
		late = append(late, notice.Late{Author: comment.Author, Kind: cmp.Or(comment.Kind, task.ItemComment), About: comment.About,
			Change: comment.Change})
	}
	if len(late) == 0 {
		return ""
	}
	return "\n\n" + notice.Notice{Late: late}.TooLate(r.language)
}

// newCommentTexts is all that people said while the run went on.
func (s *state) newCommentTexts() []string {
	texts := make([]string, len(s.newComments))
	for i, comment := range s.newComments {
		texts[i] = describe(comment, longestComment)
	}
	return texts
}
