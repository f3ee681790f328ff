// Package receipt makes and checks receipts: signed statements of what verification
// found about a commit that was published.
//
// A receipt is an in-toto Statement v1 in a DSSE envelope. Its subject is the commit,
// its predicate is in-toto's test result v0.1 with one further field, toryo, that has
// what the predicate has no place for. docs/receipts.md describes both.
//
// An agent says what verification found ([Verdict]), the server what it knows itself
// ([Facts]). The server signs; its keys are ed25519 keys that all servers on a database
// share. Anybody who has the public key can check a receipt.
package receipt
