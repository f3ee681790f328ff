package config

import "path/filepath"

// SecretFiles are the files with secrets that a configuration names, in full, by the keys that
// name them ("github.token_file"). The report is that of the configuration.
func (r Report) SecretFiles(c Config) map[string]string {
	files := map[string]string{}
	for _, secret := range keys().inForce(&c) {
		if secret.kind != secretKind {
			continue
		}
		named := secret.fileKey()
		path := shown(named.load(&c))
		if path == "" {
			continue
		}
		if r.origins[named.path].source == fromFile && !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(r.file), path)
		}
		if full, err := filepath.Abs(path); err == nil {
			path = full
		}
		files[named.path] = path
	}
	return files
}
