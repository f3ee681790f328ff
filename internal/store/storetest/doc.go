// Package storetest is the suite that every adapter of the persistence port
// passes, and the proof that no task is handed out twice. Only tests import it.
package storetest
