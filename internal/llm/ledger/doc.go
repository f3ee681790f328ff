// Package ledger keeps the budgets of models in the store, so that they hold for
// all agents and servers together and outlast the process.
//
// It is a leaf below llm that speaks to the store, as forge/board is below forge:
// package llm itself knows of no database.
package ledger
