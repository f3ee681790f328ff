// Package statistics makes of what the store counts the numbers that the pages, the API and the command
// line show: one row for each day of a time, also for those on which nothing happened, and one for all
// days together. Docs/statistics.md says what each number means.
package statistics
