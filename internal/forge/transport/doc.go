// Package transport sends the requests to one installation of a forge: all requests
// of an adapter's client go through one [Transport], which makes as few requests as
// it can.
//
//   - A GET that was answered before is asked with If-None-Match and
//     If-Modified-Since, and an answer 304 is given to the client as the answer
//     that is kept.
//   - A GET that fails for now is asked again, with growing and random pauses. A
//     write never is: whether it happened is for the caller to find out.
//   - What the forge says about its limits holds for all requests: Retry-After,
//     the quota that is left, secondary limits.
//   - Writes of content keep to limits of our own, such as GitHub's 80 a minute
//     and 500 an hour.
//
// Waiting ends with the request's context. A wait that would be longer than the
// client can be expected to hang is not begun: the answer is then a 429 with a
// Retry-After of our own making, and the forge is not asked.
//
// No credential is logged, kept or put into an error.
package transport
