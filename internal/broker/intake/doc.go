// Package intake makes tasks of what people and reviewers ask for on the forges, and stops
// those that are no longer wanted.
package intake
