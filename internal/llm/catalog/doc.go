// Package catalog knows the current models of the vendors and common open ones: how
// much they take in and answer, what they cost, and how their reasoning is asked for.
//
// What it knows is in models.json, one row for each model, with the page that the row
// was read from and the date of that page. Prices are in US dollars for a million
// tokens.
package catalog
