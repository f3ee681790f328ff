package task

import (
	"errors"
	"fmt"
)

// Code says what kind of error something is. [Codes] gives each an HTTP status
// and an exit code.
type Code string

// The error codes.
const (
	Internal        Code = "internal"
	Usage           Code = "usage"
	Invalid         Code = "invalid"
	NotFound        Code = "not_found"
	Conflict        Code = "conflict"
	IllegalMove     Code = "illegal_move"
	StaleGeneration Code = "stale_generation"
	LeaseLost       Code = "lease_lost"
	Unauthorized    Code = "unauthorized"
	Forbidden       Code = "forbidden"
	TooLarge        Code = "too_large"
	Unsupported     Code = "unsupported"
	Unavailable     Code = "unavailable"
	BadConfig       Code = "bad_config"
	DatabaseDown    Code = "database_down"
	DatabaseNewer   Code = "database_newer"
	DataDir         Code = "data_dir"
	AddressInUse    Code = "address_in_use"
	NotReady        Code = "not_ready"
	OverBudget      Code = "over_budget"
	TooMany         Code = "too_many_requests"
	Unsafe          Code = "unsafe_change"
	ProviderError   Code = "provider_error"
	Interrupted     Code = "interrupted"
)

// CodeInfo is what a code means to the outside.
type CodeInfo struct {
	Code    Code
	Status  int // HTTP
	Exit    int // of the process
	Meaning string
}

// Codes is the one table from an error's code to its HTTP status and the exit
// code of the process. Exit codes are distinct and never change their meaning.
var Codes = []CodeInfo{
	{Internal, 500, 1, "a fault of Toryo itself; the log has the details"},
	{Usage, 400, 2, "the command line is wrong"},
	{BadConfig, 500, 3, "the configuration is wrong"},
	{DatabaseDown, 503, 4, "the database cannot be reached"},
	{DatabaseNewer, 503, 5, "the database was written by a newer version"},
	{DataDir, 500, 6, "the data directory cannot be used"},
	{AddressInUse, 500, 7, "the address to listen on is taken or not allowed"},
	{NotFound, 404, 8, "there is no such thing"},
	{Invalid, 422, 9, "what was given is not valid"},
	{Conflict, 409, 10, "it contradicts what is there already"},
	{IllegalMove, 409, 11, "the task cannot go there from its state"},
	{StaleGeneration, 409, 12, "the run is over: a newer one has begun"},
	{LeaseLost, 409, 13, "the lease is held by someone else or has run out"},
	{Unauthorized, 401, 14, "no valid token was given"},
	{Forbidden, 403, 15, "the token does not allow this"},
	{TooLarge, 413, 16, "it is larger than the limit"},
	{Unsupported, 501, 17, "not supported"},
	{Unavailable, 503, 18, "a service that this needs does not answer"},
	{NotReady, 503, 19, "something that Toryo needs is missing"},
	{OverBudget, 402, 20, "the budget is used up"},
	{TooMany, 429, 21, "there were too many requests; wait a little"},
	{Unsafe, 422, 22, "the change has something in it that is never published, such as a secret"},
	{ProviderError, 502, 23, "the model provider returned an error"},
	{Interrupted, 503, 130, "interrupted"},
}

// Info returns the row of the table for the code; an unknown code is Internal.
func (c Code) Info() CodeInfo {
	for _, info := range Codes {
		if info.Code == c {
			return info
		}
	}
	return Codes[0]
}

// OfServer is what a code means that a server has answered with. DataDir is about the disk of the
// machine that says it: for whoever asked, the server cannot do it for now.
func (c Code) OfServer() Code {
	if c == DataDir {
		return Unavailable
	}
	return c
}

// Error is an error with a code. Message is one line for the person who sees it
// and Hint says what that person can do; Err is for the log and is never shown
// to anyone over the network.
type Error struct {
	Code    Code
	Message string
	Hint    string
	Err     error
}

// Error gives everything in one line.
func (e *Error) Error() string {
	text := e.Message
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error with a code and a message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an error with a code and a message from its cause.
func Wrap(code Code, err error, message string) *Error {
	return &Error{Code: code, Message: message, Err: err}
}

// WithHint says what the person can do about the error.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// AsError returns the first [Error] in the chain.
func AsError(err error) (coded *Error, found bool) { return errors.AsType[*Error](err) }

// IllegalMoveError says that a trigger makes no move from a state.
type IllegalMoveError struct {
	From    State
	Trigger Trigger
}

// stateWords and triggerWords say plainly how a task stands and what was tried with it.
var (
	stateWords = map[State]string{
		Queued: "the task waits for an agent", Running: "the task is running", Paused: "the task is paused",
		Stopped: "the task was stopped", Done: "the task is done", Failed: "the task has failed",
	}
	triggerWords = map[Trigger]string{
		Assigned: "be queued again", Claimed: "be taken by an agent", Returned: "be handed back", Lost: "be taken back from its agent",
		PauseSet: "be paused", Resumed: "be resumed", Finished: "be finished", GaveUp: "fail", Withdrawn: "be stopped", Lapsed: "expire",
	}
	// triggerHints say what can be done instead of what people try.
	triggerHints = map[Trigger]string{
		Assigned:  "only a task that has ended can be queued again; a paused one goes on with resume",
		PauseSet:  "only a task that is queued or running can be paused",
		Resumed:   "only a paused task can be resumed; one that has ended begins again with retry",
		Withdrawn: "it has ended, and nothing more is done; to begin again, retry it",
	}
)

func (e *IllegalMoveError) Error() string {
	text, hint := IllegalMoveText(e)
	if hint != "" {
		return text + "; " + hint
	}
	return text
}

// IllegalMoveText is what happened and what to do, of an [IllegalMoveError].
func IllegalMoveText(err error) (text, hint string) {
	move, is := errors.AsType[*IllegalMoveError](err)
	if !is {
		return err.Error(), ""
	}
	if move.From == none {
		return "there is no task that could " + triggerWords[move.Trigger], ""
	}
	return stateWords[move.From] + " and cannot " + triggerWords[move.Trigger], triggerHints[move.Trigger]
}

// NoCommitError says that a repository does not have a commit that its forge names.
type NoCommitError struct {
	Commit string
	error
}

// NoCommit makes a [NoCommitError] with the code Unavailable: the commit may still come.
func NoCommit(commit string, err error) error {
	return &NoCommitError{commit, Wrap(Unavailable, err, "the repository does not have the commit "+commit+" that the forge names")}
}

func (e *NoCommitError) Unwrap() error { return e.error }

// CodeOf returns the code of the first error in the chain that has one. An error
// without a code is Internal; nil has the code "".
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if coded, found := AsError(err); found {
		return coded.Code
	}
	if _, found := errors.AsType[*IllegalMoveError](err); found {
		return IllegalMove
	}
	return Internal
}

// MovedError says that the branch of a task has commits of others on the forge, which are not
// in the work. They are never thrown away: the work has to be put on top of them.
type MovedError struct {
	Commit string // that the forge has, and that the task sees as its branch now
	Err    error
}

func (e *MovedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause, whose code is Conflict.
func (e *MovedError) Unwrap() error { return e.Err }
