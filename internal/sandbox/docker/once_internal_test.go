package docker

import (
	"archive/tar"
	"errors"
	"io"
	"strings"
	"testing"
)

// Instructions of a base image end a build that is to have no network.
func TestInstructionsOfABaseImage(t *testing.T) {
	t.Parallel()
	const said = `{"stream":"Step 1/2 : FROM x"}` + "\n" + `{"stream":"# Executing 1 build trigger"}` + "\n" + `{"stream":"\n"}`
	if err := readBuild(strings.NewReader(said), false, func(string) {}); err == nil || !strings.Contains(err.Error(), "ONBUILD") {
		t.Errorf("without network: %v", err)
	}
	if err := readBuild(strings.NewReader(said), true, func(string) {}); err != nil {
		t.Errorf("with network: %v", err)
	}
}

// The error of who writes an archive is told, and not what follows from it, nor that nobody reads.
func TestErrorsOfAnArchive(t *testing.T) {
	t.Parallel()
	own := errors.New("its own")
	files, end := archived(func(*tar.Writer) error { return own })
	if _, err := io.Copy(io.Discard, files); !errors.Is(err, own) {
		t.Errorf("the reader is told %v", err)
	}
	if err := end(); !errors.Is(err, own) {
		t.Errorf("the end is %v", err)
	}
	_, end = archived(func(to *tar.Writer) error {
		if err := to.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 1}); err != nil {
			return errors.New("ended by a signal")
		}
		return nil
	})
	if err := end(); err != nil {
		t.Errorf("an archive that nobody reads: %v", err)
	}
}
