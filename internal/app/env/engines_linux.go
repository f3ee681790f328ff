package env

import (
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/bubblewrap"
	"github.com/toryo-dev/toryo/internal/sandbox/landlock"
)

func (e Engines) bubblewrap(gate sandbox.NewGate) (sandbox.Engine, error) {
	return bubblewrap.New(bubblewrap.Config{Dir: filepath.Join(e.Dir, bubblewrap.Name), Toolchains: e.Toolchains, NewGate: gate, Log: e.Log})
}

func (e Engines) landlock(sandbox.NewGate) (sandbox.Engine, error) {
	return landlock.New(landlock.Config{Dir: filepath.Join(e.Dir, landlock.Name), Toolchains: e.Toolchains})
}
