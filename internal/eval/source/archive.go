package source

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// The limits of an archive that becomes a commit.
const (
	maxArchive      = 2 << 30
	maxArchiveFiles = 200_000
)

// FromArchive makes a repository in a new folder that has one commit, of the files in a tar
// archive. The same files are the same commit.
func FromArchive(ctx context.Context, archive io.Reader, dir string) (*Repository, error) {
	program, err := newProgram()
	if err != nil {
		return nil, err
	}
	if err := program.Init(ctx, dir, "sha1"); err != nil {
		return nil, task.Wrap(task.DataDir, err, "no folder for the repository can be made")
	}
	r := &Repository{Dir: dir, git: program}
	if r.Base, err = r.Import(ctx, archive, ""); err == nil {
		_, err = r.run(ctx, git.Command{Args: []string{"update-ref", main, r.Base}})
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

// Import makes a commit of the files in a tar archive, and of no others, on top of another one
// if that is not empty. What git keeps in folders named .git is no part of it. It fails with
// Invalid or TooLarge if there can be no such commit.
func (r *Repository) Import(ctx context.Context, archive io.Reader, on string) (string, error) {
	reader, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := stream(writer, archive, on)
		_ = writer.CloseWithError(err) // always nil
		written <- err
	}()
	output, err := r.run(ctx, git.Command{Input: reader, Args: []string{"-c", "core.bigFileThreshold=4m", "fast-import", "--quiet", "--force", "--done", "--date-format=raw"}})
	_ = reader.CloseWithError(io.ErrClosedPipe) // ends the writer, should git have ended early
	if streamErr := <-written; streamErr != nil && !errors.Is(streamErr, io.ErrClosedPipe) {
		return "", streamErr
	}
	if err != nil && (git.NotWritten(err) || ctx.Err() != nil) {
		return "", task.Wrap(task.DataDir, err, "the files cannot be written")
	}
	if err != nil {
		return "", task.Wrap(task.Invalid, err, "no commit can be made of the files")
	}
	return strings.TrimSpace(output), nil
}

// stream tells git what the commit is.
func stream(to io.Writer, from io.Reader, on string) error {
	out := bufio.NewWriterSize(to, 256<<10)
	const message = "The files of the task\n"
	// Nothing is said that differs from one time to the next.
	_, _ = fmt.Fprintf(out, "commit refs/toryo/import\nmark :1\ncommitter Toryo <toryo@localhost> 0 +0000\ndata %d\n%s\n", len(message), message) // Flush says it
	if on != "" {
		_, _ = fmt.Fprintf(out, "from %s\n", on)
	}
	_, _ = out.WriteString("deleteall\n")
	bounded := &io.LimitedReader{R: from, N: maxArchive}
	archive := tar.NewReader(bounded)
	for files := 0; ; files++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if bounded.N <= 0 || files > maxArchiveFiles {
			return task.Errorf(task.TooLarge, "there are more than %d files or %d bytes", maxArchiveFiles, maxArchive)
		}
		if err != nil {
			return task.Wrap(task.Unavailable, err, "the files cannot be read")
		}
		if err := streamEntry(out, header, archive); err != nil {
			if bounded.N <= 0 {
				return task.Errorf(task.TooLarge, "there are more than %d bytes", maxArchive)
			}
			return err
		}
	}
	_, _ = out.WriteString("get-mark :1\ndone\n")
	return out.Flush()
}

// streamEntry tells git of one file. Folders are there by what is in them, and pipes and devices
// are no files.
func streamEntry(out *bufio.Writer, header *tar.Header, content io.Reader) error {
	name, kept := archiveName(header.Name)
	if !kept {
		return nil
	}
	var err error
	switch header.Typeflag {
	case tar.TypeReg:
		mode := "100644"
		if header.Mode&0o111 != 0 {
			mode = "100755"
		}
		if _, err = fmt.Fprintf(out, "M %s inline %s\ndata %d\n", mode, git.StreamName(name), header.Size); err == nil {
			_, err = io.CopyN(out, content, header.Size)
		}
		if err == nil {
			err = out.WriteByte('\n')
		}
	case tar.TypeSymlink:
		_, err = fmt.Fprintf(out, "M 120000 inline %s\ndata %d\n%s\n", git.StreamName(name), len(header.Linkname), header.Linkname)
	case tar.TypeLink:
		if target, kept := archiveName(header.Linkname); kept {
			_, err = fmt.Fprintf(out, "C %s %s\n", git.StreamName(target), git.StreamName(name))
		}
	}
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return task.Wrap(task.Unavailable, err, "the files cannot be read")
	}
	return err
}

// archiveName is the name of a file in an archive, and whether it can be one of the commit.
func archiveName(name string) (string, bool) {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".git") {
			return "", false
		}
	}
	return name, name != ""
}
