// Package phasetest runs whole tasks through the phases: with a real repository,
// a real sandbox and a scripted model. A scenario is data; see [Scenario].
package phasetest
