// Package testreport knows test runners: how each is asked for a report that a
// program can read, and what that report says. It runs nothing itself.
//
// [Find] recognises the runner of a command line. [Runner.Command] is the command
// line that makes it report below a folder, and [Runner.Read] reads what is there
// afterwards. docs/verification.md lists, runner by runner, what is read and what
// cannot be seen.
//
// The code that is tested runs in the same sandbox as the runner and mostly in the
// same process, and nobody vouches for it. So everything that is read is bounded and
// made printable, and a report counts only if the runner finished it: see
// [Report.Passed]. Where a runner can be given a test of ours that has to fail (a
// control), a report in which it did not fail does not count either.
package testreport
