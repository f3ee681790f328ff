// Package site turns a configuration into running parts: it opens the database,
// connects to the forges, makes models, sandboxes and executors, and starts and stops
// the server and the agent of a process in the order in which one needs the other.
//
// Serve runs a whole server. The other exported functions make single parts for
// commands that work without one.
package site
