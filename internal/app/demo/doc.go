// Package demo tells the story that toryo demo shows: a sample repository with a
// failing test, an issue, a comment in the middle of the work, a pull request and
// a review of it. Everything in it is real but for the model, which follows a
// script unless another one is named.
package demo
