// Package phase holds the phases of a run, their prompts and tools.
//
// Nothing stands here yet but its place in the import table.
package phase
