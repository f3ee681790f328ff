package store

import (
	"context"
	"time"
)

// Kept names something that the database keeps for a time.
type Kept string

// What is kept for a time. What is not listed stays: it is either content that people made and
// remove themselves, or a mark without which something would be done a second time. A task
// stays as one row with its moves, the comments that its runs were told of (as hashes) and the
// keys of the writes that it made.
const (
	// KeptJournals is what runs wrote and were told: the entries of journals but for moves, the
	// texts of comments and of writes, how runs ended. The time counts from the end of the
	// task; of writes that belong to no task, from when they were put.
	KeptJournals Kept = "journals"
	// KeptGit is what tasks have in git, from the end of the task; see [Refs].
	KeptGit Kept = "git"
	// KeptSent is what models were sent for answers in conversations, from the answer.
	KeptSent Kept = "sent"
	// KeptCalls are single calls to models, and what was spent in all on a day. What tasks have
	// spent stays. A call that is not there any more cannot be settled.
	KeptCalls Kept = "calls"
	// KeptStatistics is what [StatisticsStore] counts: runs from their end, pull requests from when they
	// were opened, and what was spent on a day for a repository.
	KeptStatistics Kept = "statistics"
	// KeptAudit is the audit.
	KeptAudit Kept = "audit"
	// KeptDeliveries are the webhooks that were dealt with.
	KeptDeliveries Kept = "deliveries"
	// KeptAnswers are answers of forges, from when they were stored.
	KeptAnswers Kept = "forge_answers"
	// KeptTokens are revoked tokens, from when they were revoked.
	KeptTokens Kept = "revoked_tokens"
	// KeptSessions and KeptEnrolments are over when they have expired.
	KeptSessions   Kept = "sessions"
	KeptEnrolments Kept = "enrolments"
)

// AllKept lists them in the order in which they are shown.
var AllKept = []Kept{
	KeptJournals, KeptGit, KeptSent, KeptCalls, KeptStatistics, KeptAudit, KeptDeliveries, KeptAnswers, KeptTokens, KeptSessions, KeptEnrolments,
}

// TextKinds are the kinds of action whose payload is a text for the forge, which nobody reads
// again once it was delivered.
var TextKinds = []string{"comment", "edit_comment", "open_pull", "edit_pull", "submit_review", "reply"}

// PassingKinds are the kinds of action that replace each other while a run works. When the
// task has ended, nothing asks for them.
var PassingKinds = []string{"progress", "progress_state"}

// Extent is how much there is of something.
type Extent struct {
	Rows  int64
	Bytes int64 // of what is stored in them, about
}

// TableSize is what a table takes.
type TableSize struct {
	Name string
	Extent
}

// Retention removes what was kept for long enough. Nothing of a task goes that has not ended.
type Retention interface {
	// Prune removes one step of what is older than the given time: about as many rows as the
	// limit, in one transaction. More says that there may be more to remove. It returns how many rows
	// were removed or emptied. Whoever is cut off in the middle calls it again.
	Prune(ctx context.Context, what Kept, before time.Time, limit int) (removed int, more bool, err error)
	// Prunable says how much Prune would remove in all.
	Prunable(ctx context.Context, what Kept, before time.Time) (Extent, error)
	// TableSizes says what takes space: all tables of ours, the largest first, with their indexes.
	TableSizes(ctx context.Context) ([]TableSize, error)
}
