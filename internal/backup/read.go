package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"

	"github.com/toryo-dev/toryo/internal/task"
)

// reading is a reader that ends with a context.
type reading struct {
	ctx context.Context //nolint:containedctx // for the length of one call of io.Copy
	io.Reader
}

// Read implements io.Reader.
func (r reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

var errTooMuch = task.Errorf(task.Invalid, "there is more in it than its manifest says")

// endOf is the content of the last entry.
func endOf(manifest []byte) []byte {
	sum := sha256.Sum256(manifest)
	return []byte(hex.EncodeToString(sum[:]) + "\n")
}

// Read takes the files of a backup out into a folder, which is empty. Accept is asked about the
// manifest first. It fails with Invalid if the backup is not whole or was changed; files that were
// taken out by then stay.
func Read(ctx context.Context, file, into string, accept func(Manifest) error) (m Manifest, err error) {
	source, err := os.Open(file)
	if err != nil {
		return m, task.Wrap(task.NotFound, err, "the backup cannot be opened")
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	root, err := os.OpenRoot(into)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	whole := bufio.NewReader(reading{ctx, source})
	packed, err := gzip.NewReader(whole)
	if err != nil {
		return m, broken(ctx, file, err)
	}
	packed.Multistream(false)
	if m, err = readFrom(packed, root, accept); err != nil {
		return m, broken(ctx, file, err)
	}
	if _, err := whole.ReadByte(); !errors.Is(err, io.EOF) {
		return m, broken(ctx, file, errTooMuch)
	}
	return m, nil
}

// broken says which backup is not as it was written. Errors that have a code say what they are.
func broken(ctx context.Context, file string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return task.Wrap(task.Interrupted, ended, "reading the backup was interrupted")
	}
	if coded, is := task.AsError(err); is {
		return task.Wrap(coded.Code, coded.Err, "the backup "+file+" cannot be used: "+coded.Message).WithHint("%s", coded.Hint)
	}
	return task.Wrap(task.Invalid, err, "the backup "+file+" is cut off, or was changed").WithHint("use another one")
}

// readFrom reads the tar file.
func readFrom(packed io.Reader, root *os.Root, accept func(Manifest) error) (m Manifest, err error) {
	files := tar.NewReader(packed)
	text, err := readSmall(files, manifestName, maxManifest)
	if err != nil {
		return m, err
	}
	if m, err = parse(text); err != nil {
		return m, err
	}
	if err := accept(m); err != nil {
		return m, err
	}
	for _, entry := range m.Entries {
		if err := next(files, entry.Name, entry.Size); err != nil {
			return m, err
		}
		if err := takeOut(files, root, entry); err != nil {
			return m, err
		}
	}
	end, err := readSmall(files, endName, sha256.Size*2+1)
	if err != nil {
		return m, err
	}
	if !bytes.Equal(end, endOf(text)) {
		return m, task.Errorf(task.Invalid, "its manifest was changed")
	}
	if _, err := files.Next(); err == nil {
		return m, errTooMuch
	} else if !errors.Is(err, io.EOF) {
		return m, err
	}
	// What follows the end of a tar file is read to its end too: then gzip compares its sum.
	more, err := io.Copy(io.Discard, io.LimitReader(packed, maxPadding+1))
	if err == nil && more > maxPadding {
		err = errTooMuch
	}
	return m, err
}

// maxPadding is how many bytes may follow the end of a tar file.
const maxPadding = 64 << 10

// next goes on to the next entry, which has to be a regular file of that name and size.
func next(files *tar.Reader, name string, size int64) error {
	header, err := files.Next()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg || header.Name != name || size >= 0 && header.Size != size {
		return task.Errorf(task.Invalid, "it has %q where the file %q has to be", header.Name, name)
	}
	return nil
}

// readSmall reads a small file.
func readSmall(files *tar.Reader, name string, most int64) ([]byte, error) {
	if err := next(files, name, -1); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(files, most+1))
	if err == nil && int64(len(text)) > most {
		err = task.Errorf(task.TooLarge, "%s in it has more than %d bytes", name, most)
	}
	return text, err
}

// takeOut writes a file, and compares what it has with the manifest.
func takeOut(content io.Reader, root *os.Root, entry Entry) error {
	if err := root.MkdirAll(path.Dir(entry.Name), 0o700); err != nil {
		return unwritten(err)
	}
	file, err := root.OpenFile(entry.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return unwritten(err)
	}
	sum := sha256.New()
	saved := &saving{Writer: file}
	size, err := io.Copy(io.MultiWriter(saved, sum), content)
	if failed := errors.Join(saved.err, file.Sync(), file.Close()); failed != nil {
		return unwritten(failed)
	}
	if err != nil {
		return err
	}
	if size != entry.Size || hex.EncodeToString(sum.Sum(nil)) != entry.SHA256 {
		return task.Errorf(task.Invalid, "%s in it was changed", entry.Name)
	}
	return nil
}

// saving tells an error of the disk that is written to from one of what is read.
type saving struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (s *saving) Write(p []byte) (n int, err error) {
	n, s.err = s.Writer.Write(p)
	return n, s.err
}

// unwritten is the error for a folder that does not take what is in the backup: the disk may be
// full, or the backup has a file where it needs a folder.
func unwritten(err error) error {
	return task.Wrap(task.DataDir, err, "what is in it cannot be written to the disk")
}
