// Package turn carries a conversation with a model on, turn by turn: it asks the
// model, carries out what it calls for, and gives it the results, until the model
// is done or it makes no sense to go on.
//
// It is where a model's bad answers are dealt with, each in a defined way:
//
//   - a call without an ID, or with an ID that was used before, gets a new one;
//   - more calls than allowed: the first are done, the model is told of the rest;
//   - an answer that the length limit cut: none of its calls is done;
//   - an answer that is too long is kept whole in the journal and cut in the
//     middle in the conversation;
//   - an empty answer is asked for again, and the third in a row ends the phase;
//   - the same call with the same result: the model is warned at the third, and
//     the phase ends at the fifth;
//   - arguments that are not JSON and tools that do not exist are errors that the
//     model is told of.
//
// At a checkpoint (before each turn, after the model's answer, after the tools'
// results) the caller looks for signals, and may end the phase.
package turn
