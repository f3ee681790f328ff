// Package memory decides what is kept of what reviewers asked for, which of it later tasks of the same
// repository are told, and what people may write into notes. Package store keeps the notes, package
// broker/intake finds out what was asked for, and package broker/assignment gives notes to tasks. See
// docs/memory.md.
package memory
