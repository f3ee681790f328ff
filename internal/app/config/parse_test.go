package config

// parse is [LoadText], in fewer letters.
func parse(file string, data []byte, environ []string, overrides map[string]string) (Config, Report) {
	return LoadText(file, data, environ, overrides)
}
