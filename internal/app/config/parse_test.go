package config

// parse is [Load] of a file whose content is known already.
func parse(file string, data []byte, environ []string, overrides map[string]string) (Config, Report) {
	l := newLoader(file)
	l.readDocument(data)
	l.readEnvironment(environ)
	l.readOverrides(overrides)
	l.readPassed(environ)
	return l.finish(environ)
}
