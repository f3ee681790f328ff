package sandboxtest

import (
	"os/exec"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// Benchmark measures the start of a sandbox and what one command costs in it,
// beside the same command run directly.
func Benchmark(b *testing.B, newEngine func(*testing.B) sandbox.Engine, image string) {
	b.Helper()
	engine := newEngine(b)
	start := func(b *testing.B) sandbox.Sandbox {
		b.Helper()
		box, err := engine.Start(b.Context(), sandbox.Spec{Owner: owner + "-bench", Image: image, Workspace: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		return box
	}
	b.Run("start and stop", func(b *testing.B) {
		for b.Loop() {
			if err := start(b).Stop(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("command", func(b *testing.B) {
		box := start(b)
		for b.Loop() {
			if result, err := box.Run(b.Context(), sandbox.Command{Text: "echo step"}); err != nil || string(result.Stdout) != "step\n" {
				b.Fatal(result, err)
			}
		}
		b.StopTimer()
		if err := box.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("directly", func(b *testing.B) {
		for b.Loop() {
			if output, err := exec.CommandContext(b.Context(), "bash", "-c", "echo step").Output(); err != nil || string(output) != "step\n" {
				b.Fatal(output, err)
			}
		}
	})
}
