// Package rules finds secrets that nobody told us of, by the detection rules of
// gitleaks: the keys and tokens of some two hundred services, and private keys.
//
// It stands behind the redactor of known secrets, which is faster and surer.
package rules
