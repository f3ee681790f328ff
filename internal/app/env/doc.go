// Package env is the command "toryo env": detection, classification and set-up of
// environments on any folder, and the choice of the sandbox engine.
package env
