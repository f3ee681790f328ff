// Package review makes reviews, answers questions about them and turns requests for
// changes into tasks.
//
// Nothing stands here yet but its place in the import table.
package review
