// Package github is the adapter to GitHub and GitHub Enterprise. It uses the
// REST API, and GraphQL for what REST does not have: whether a review thread is
// resolved, links that were made by hand, and turning a draft into a pull request
// that is ready, or back.
//
// It authenticates as a GitHub App's installation or with a token.
package github
