// Toryo takes an issue that is assigned to it and carries it to a reviewed pull
// request. Everything is in internal/app.
package main

import (
	"os"

	"github.com/toryo-dev/toryo/internal/app"
)

func main() { os.Exit(app.Main()) }
