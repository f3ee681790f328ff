package site

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// encryptionOf is how the server's connections are encrypted, or nil.
func encryptionOf(c config.Config) (*tls.Config, error) {
	if c.Server.TLSCertFile == "" {
		return nil, nil //nolint:nilnil // nil is what means none
	}
	certificate := &certificateFiles{certificate: c.Server.TLSCertFile, key: c.Server.TLSKeyFile}
	if _, err := certificate.get(nil); err != nil {
		return nil, task.Wrap(task.BadConfig, err, "the certificate cannot be used").
			WithHint("check server.tls_cert_file and server.tls_key_file")
	}
	return &tls.Config{
		GetCertificate: certificate.get, MinVersion: tls.VersionTLS12,
		// Named here, since the server settles what it speaks by whichever of its
		// listeners comes first, and one of them may be plain.
		NextProtos: []string{"h2", "http/1.1"},
	}, nil
}

// certificateFiles is a certificate that is read again when its files change, so
// that it can be renewed without a restart.
type certificateFiles struct {
	certificate, key string

	mutex   sync.Mutex
	loaded  *tls.Certificate
	changed [2]time.Time // when the files that were loaded were written
}

func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var changed [2]time.Time
	for i, name := range []string{f.certificate, f.key} {
		if info, err := os.Stat(name); err == nil {
			changed[i] = info.ModTime()
		}
	}
	if f.loaded != nil && changed == f.changed {
		return f.loaded, nil
	}
	read, err := tls.LoadX509KeyPair(f.certificate, f.key)
	switch {
	case err == nil:
		f.loaded, f.changed = &read, changed
	case f.loaded == nil:
		return nil, err
	}
	// While only one of the two files is new they do not fit: the old pair is
	// good for as long.
	return f.loaded, nil
}
