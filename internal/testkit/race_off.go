//go:build !race

package testkit

const raceFactor = 1
