// Program is the guest and nothing else. Tests send it into pods, where the whole
// test binary with its race detector would be slow.
package main

import "github.com/toryo-dev/toryo/internal/sandbox/guest"

func main() { guest.Main(nil) }
