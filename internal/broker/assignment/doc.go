// Package assignment makes what an agent is given with a task: the item and what people
// wrote on it, the pull request with its reviews, the prompt, the branch, where an earlier run
// of the task was, and the repository to clone.
package assignment
