package contexts

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
)

// The files of a run beside its journal.
const (
	metadataFile  = "metadata.json"
	messagesFile  = "messages.jsonl"
	currentFile   = "current.jsonl"
	summariesFile = "summaries.jsonl"
	toolsFile     = "tools.jsonl"
	planningDir   = "planning"
	stateFile     = "task_state.json"
	commentsFile  = "comment_detection_state.json"
)

// views makes the files that show a journal. What they hold follows from the
// entries alone: the same entries make the same bytes, one after the other or all
// at once.
type views struct {
	dir      string
	id       string
	planning string // the log of phases and plans
	stale    bool   // one of the files may be behind

	logs          map[string]*log // by file name
	conversations map[string][][]byte
	conversation  string // the conversation that is shown
	state         TaskState
	cost          llm.Money
	shown         []byte // task_state.json
	comment       CommentState
	shownComments []byte // comment_detection_state.json
}

// log is a file that is appended to. While everything is made at once its content
// is gathered; then it is written with each line.
type log struct {
	content []byte
	file    *os.File
}

func newViews(dir, id string) *views {
	v := &views{dir: dir, id: id, planning: filepath.Join(planningDir, id+".jsonl"), logs: map[string]*log{}, conversations: map[string][][]byte{}}
	for _, name := range []string{messagesFile, currentFile, summariesFile, toolsFile, v.planning} {
		v.logs[name] = &log{}
	}
	v.state.Phases = map[task.Phase]string{}
	v.comment.IDs = []string{}
	v.show()
	v.showComments()
	return v
}

// said is a line of messages.jsonl and current.jsonl.
type said struct {
	Sequence     int64                `json:"sequence,omitempty"`
	At           *time.Time           `json:"at,omitempty"`
	Phase        task.Phase           `json:"phase,omitempty"`
	Conversation string               `json:"conversation,omitempty"`
	Entry        *conversation.Entry  `json:"entry,omitempty"`
	Head         []conversation.Block `json:"head,omitempty"`
	Summary      string               `json:"summary,omitempty"`
	Message      *llm.Message         `json:"message,omitempty"`
}

// summed is a line of summaries.jsonl.
type summed struct {
	Sequence     int64               `json:"sequence"`
	At           time.Time           `json:"at"`
	Conversation string              `json:"conversation,omitempty"`
	Method       conversation.Method `json:"method,omitempty"`
	Before       int64               `json:"before,omitempty"`
	After        int64               `json:"after,omitempty"`
	Text         string              `json:"text,omitempty"`
}

// change is what an entry does to the files.
type change struct {
	appended map[string][]byte // by file
	current  bool              // current.jsonl is another one now
	state    bool
	comments bool
}

// take takes an entry in and says what changes.
func (v *views) take(line Line, entry phase.Entry) change {
	c := change{appended: map[string][]byte{}}
	v.state.Entries++
	v.state.Step = max(v.state.Step, entry.Step)
	if entry.Message != nil {
		v.takeMessage(line, entry, &c)
	}
	switch line.Kind {
	case task.ToolCalled:
		c.appended[toolsFile] = line.encode()
	case task.Summed:
		c.appended[summariesFile] = encode(summed{Sequence: line.Sequence, At: line.At, Text: entry.Text})
	case task.PhaseChanged, task.Planned, task.Prepared:
		c.appended[v.planning] = line.encode()
	}
	c.state = v.takeState(line.Kind, entry)
	if entry.Signal != nil {
		c.comments = v.takeComments(*entry.Signal)
	}
	return c
}

func (v *views) takeMessage(line Line, entry phase.Entry, c *change) {
	message := entry.Message
	c.appended[messagesFile] = encode(said{Sequence: line.Sequence, At: &line.At, Phase: entry.Phase, Conversation: entry.Conversation, Entry: message})
	var lines [][]byte
	switch message.Kind {
	case conversation.BeginEntry:
		v.conversations[entry.Conversation] = nil
		lines = [][]byte{encode(said{Conversation: entry.Conversation, Head: message.Begin})}
	case conversation.CompactionEntry:
		if message.Compaction == nil {
			return
		}
		state := message.Compaction.State
		v.conversations[entry.Conversation] = nil
		lines = append(lines, encode(said{Conversation: entry.Conversation, Head: state.Head, Summary: state.Summary}))
		for i := range state.Turns {
			lines = append(lines, encode(said{Message: &state.Turns[i]}))
		}
		c.current = true
		c.appended[summariesFile] = encode(summed{
			Sequence: line.Sequence, At: line.At, Conversation: entry.Conversation, Method: message.Compaction.Method,
			Before: message.Compaction.Before, After: message.Compaction.After, Text: state.Summary,
		})
	default:
		lines = [][]byte{encode(said{Entry: shownEntry(message), Message: message.Message})}
	}
	v.conversations[entry.Conversation] = append(v.conversations[entry.Conversation], lines...)
	if v.conversation != entry.Conversation || message.Kind == conversation.BeginEntry {
		v.conversation, c.current = entry.Conversation, true
	}
	if !c.current {
		c.appended[currentFile] = bytes.Join(lines, nil)
	}
}

// shownEntry is an entry that is no message, such as a block that was pinned.
func shownEntry(entry *conversation.Entry) *conversation.Entry {
	if entry.Message != nil {
		return nil
	}
	return entry
}

// takeState reports whether task_state.json is to be replaced. It is at turning
// points, not with each entry: it costs more than the entry.
func (v *views) takeState(kind task.EventKind, entry phase.Entry) bool {
	switch kind {
	case task.PhaseChanged:
		v.state.Phases[entry.Phase] = entry.Status
		if active := entry.Status == phase.PhaseActive; active || entry.Phase.Now(active) != entry.Phase {
			v.state.Phase = entry.Phase.Now(active)
		}
	case task.Planned:
		v.state.Plan = entry.Plan
	case task.Saved:
		if v.state.Commit = entry.Commit; entry.Status != phase.SavedBranch {
			return false // there is one after each step that changes a file
		}
		v.state.Branch = entry.Commit
	case task.ModelUsed:
		if entry.Usage != nil {
			v.state.Tokens += entry.Usage.Usage.Total()
			v.cost += entry.Usage.Cost
			v.state.Scripted = v.state.Scripted || entry.Usage.Scripted
		}
		return false
	case task.SignalTaken, task.Prepared:
	default:
		return false
	}
	v.show()
	return true
}

func (v *views) show() {
	v.state.Cost = v.cost.String()
	v.shown = indented(v.state)
}

func (v *views) takeComments(signal phase.SignalEntry) bool {
	if signal.Position == 0 && len(signal.Comments) == 0 {
		return false
	}
	v.comment.Position = max(v.comment.Position, signal.Position)
	for _, comment := range signal.Comments {
		if !slices.Contains(v.comment.IDs, comment.ID) {
			v.comment.IDs = append(v.comment.IDs, comment.ID)
		}
		if comment.Refused != "" {
			v.comment.Refused = append(v.comment.Refused, comment.ID)
		}
	}
	v.showComments()
	return true
}

func (v *views) showComments() { v.shownComments = indented(v.comment) }

// fold takes an entry in before the files are made.
func (v *views) fold(line Line, entry phase.Entry) {
	for name, text := range v.take(line, entry).appended {
		if name != currentFile { // it is made from the conversation that is shown at last
			v.logs[name].content = append(v.logs[name].content, text...)
		}
	}
}

// rebuild makes all files from what was folded.
func (v *views) rebuild() error {
	if err := errors.Join(removeMaking(v.dir), os.MkdirAll(filepath.Join(v.dir, planningDir), 0o700), removeMaking(filepath.Join(v.dir, planningDir))); err != nil {
		return err
	}
	v.logs[currentFile].content = bytes.Join(v.conversations[v.conversation], nil)
	for name, log := range v.logs {
		full := filepath.Join(v.dir, name)
		if err := renameOver(full, log.content); err != nil {
			return err
		}
		var err error
		if log.file, err = os.OpenFile(full, os.O_WRONLY|os.O_APPEND, 0); err != nil {
			return err
		}
		log.content = nil
	}
	return errors.Join(renameOver(filepath.Join(v.dir, stateFile), v.shown), renameOver(filepath.Join(v.dir, commentsFile), v.shownComments),
		syncFolder(filepath.Join(v.dir, planningDir)), syncFolder(v.dir))
}

// add takes an entry in and brings the files up to date.
func (v *views) add(line Line, entry phase.Entry) error {
	change := v.take(line, entry)
	var failed error
	for name, text := range change.appended {
		_, err := v.logs[name].file.Write(text)
		failed = errors.Join(failed, err)
	}
	if change.current {
		failed = errors.Join(failed, v.replaceCurrent())
	}
	if change.state {
		failed = errors.Join(failed, replaceFile(filepath.Join(v.dir, stateFile), v.shown))
	}
	if change.comments {
		failed = errors.Join(failed, replaceFile(filepath.Join(v.dir, commentsFile), v.shownComments))
	}
	v.stale = v.stale || failed != nil
	return failed
}

func (v *views) replaceCurrent() error {
	name := filepath.Join(v.dir, currentFile)
	if err := renameOver(name, bytes.Join(v.conversations[v.conversation], nil)); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	old := v.logs[currentFile].file
	v.logs[currentFile].file = file
	return old.Close()
}

// finish makes sure that the files are durable and that none is behind.
func (v *views) finish() error {
	if v.stale {
		return v.remake()
	}
	var failed error
	for _, log := range v.logs {
		failed = errors.Join(failed, log.file.Sync())
	}
	return failed
}

// remake makes the files anew from the journal.
func (v *views) remake() error {
	lines, _, err := readLines(filepath.Join(v.dir, journalFile))
	if err != nil {
		return err
	}
	fresh := newViews(v.dir, v.id)
	for _, line := range lines {
		var entry phase.Entry
		if err := json.Unmarshal(line.Data, &entry); err != nil {
			return err
		}
		fresh.fold(line, entry)
	}
	return errors.Join(fresh.rebuild(), fresh.close())
}

func (v *views) close() error {
	var failed error
	for _, log := range v.logs {
		if log.file != nil {
			failed = errors.Join(failed, log.file.Close())
		}
	}
	return failed
}

// encode writes a value that has a JSON form as a line.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil { // every type here has one
		return nil
	}
	return append(text, '\n')
}

func indented(value any) []byte {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil
	}
	return append(text, '\n')
}
