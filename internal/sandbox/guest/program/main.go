// Program is the guest and nothing else: what runs inside of sandboxes, small and without
// what the whole program initialises.
package main

import "github.com/toryo-dev/toryo/internal/sandbox/guest"

func main() { guest.Main(confinements()) }
