// Package env does the work of the commands "toryo env": detection, classification
// and set-up of environments on any folder. It also chooses the sandbox engine.
package env
