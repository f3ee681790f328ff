//go:build !unix

package main

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }

// childrenTime is what processes that this one has started have used, where that can be known.
func childrenTime() (time.Duration, error) { return 0, nil }
