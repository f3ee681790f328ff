// Package taskset reads the tasks of an evaluation: rows as SWE-bench has them. Sets come from
// others: everything that is read is bounded, and nothing of it is run here.
package taskset
