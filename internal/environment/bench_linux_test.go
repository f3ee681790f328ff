package environment_test

import (
	"testing"
)

// BenchmarkSetup measures set-up from nothing and from a snapshot, side by side,
// for each kind of project in each engine.
func BenchmarkSetup(b *testing.B) {
	for engineName, newEngine := range realEngines {
		for name, project := range realProjects {
			plan := project.plan
			plan.SetupCommands = project.repair.SetupCommands
			b.Run(engineName+"/"+name+"/cold", func(b *testing.B) {
				setup := realSetup(realEngine(b, newEngine))
				setup.Snapshots = 0
				for b.Loop() {
					runForReal(b, setup, project, plan, false)
				}
			})
			b.Run(engineName+"/"+name+"/warm", func(b *testing.B) {
				engine := realEngine(b, newEngine)
				setup := realSetup(engine)
				first := runForReal(b, setup, project, plan, false)
				defer func() { _ = engine.RemoveSnapshot(b.Context(), first.Result.SetupResult.SnapshotKey) }()
				for b.Loop() {
					runForReal(b, setup, project, plan, false)
				}
			})
		}
	}
}
