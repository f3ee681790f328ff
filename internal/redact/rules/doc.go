// Package rules finds secrets that nobody told us of, by the detection rules of
// gitleaks: the keys and tokens of some two hundred services, and private keys.
//
// It stands behind the redactor of known secrets, which is faster and surer.
//
// gitleaks.toml is the configuration of gitleaks 8.30.0 as it is, under the licence
// in gitleaks.LICENSE. To move to another version, put its config/gitleaks.toml in
// its place. Only the rules are used: the program around them scans repositories,
// archives and reports, and brings fifty modules along.
package rules
