// Package board is a forge of our own, for people without one and for the
// embedded default. Its git repositories are bare ones on disk, worked on with the
// git program; everything else about it is in the store.
//
// A [Board] is the whole; [Board.As] is the board as one user sees it and acts on
// it, and that is what implements the forge port. The bot is such a user, and people
// act through the same code.
//
// What is peculiar to it:
//
//   - Access is for the whole board, not per repository. Without it nothing is
//     there; ReadAccess allows to read, to open issues, to comment and to react;
//     WriteAccess allows the rest.
//   - Labels need not be created: any text can be one.
//   - The head and base of a pull request that is merged are kept under
//     refs/pull in the repository, so that its diff can still be seen.
//   - A pull request that is merged into the default branch closes the issues
//     that its text says it closes.
//   - Several processes may work on one board at the same time, if they have the
//     same folder and the same database.
//   - Repositories are not renamed.
package board
