// Package evaluation does the tasks of an evaluation with the program as it is: the built-in
// executor with the configured models, or with a script that plays a model.
package evaluation
