package doctor

// AllowNamespaces is for tests.
var AllowNamespaces = allowNamespaces
