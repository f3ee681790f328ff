package guest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/yamux"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// forged is an archive that no guest sends: code in a sandbox can put itself in the
// place of one.
type forged struct{ bytes.Buffer }

func (f *forged) add(t *testing.T, entry archiveEntry, content int) {
	t.Helper()
	if err := writeMessage(f, frameEntry, entry); err != nil {
		t.Fatal(err)
	}
	if content == 0 {
		return
	}
	if err := writeFrame(f, frameContent, make([]byte, content)); err != nil {
		t.Fatal(err)
	}
}

func (f *forged) whole(t *testing.T) io.Reader {
	t.Helper()
	if err := writeFrame(f, frameDone, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

// takesNoMore has a mirror take a forged archive, and looks at the disk.
func takesNoMore(t *testing.T, there *mirror, archive *forged) {
	t.Helper()
	before := workdir.TreeSize(there.dir)
	_, err := there.take(archive.whole(t), forgedMost)
	if size := workdir.TreeSize(there.dir); size > max(forgedMost, before)+workdir.MinSize {
		t.Errorf("the folder takes %d bytes and may take %d (%v)", size, max(forgedMost, before), err)
	}
}

const forgedMost = 200_000

func TestForgedNamesGiveNoRoom(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(*forged, int){
		"one file under two names": func(archive *forged, i int) {
			folder := rawString(fmt.Sprintf("d%d", i))
			archive.add(t, archiveEntry{Path: folder, Kind: isFolder, Mode: 0o755}, 0)
			archive.add(t, archiveEntry{Path: "l", Kind: isLink, Link: folder}, 0)
			archive.add(t, archiveEntry{Path: "l/x", Kind: isFile, Mode: 0o644}, 50_000)
			archive.add(t, archiveEntry{Path: "l", Kind: isGone}, 0)
			archive.add(t, archiveEntry{Path: "l/x", Kind: isGone}, 0)
		},
		"a file in a folder that was gone": func(archive *forged, i int) {
			if i%100 == 0 {
				archive.add(t, archiveEntry{Path: "old", Kind: isGone}, 0)
			}
			archive.add(t, archiveEntry{Path: rawString(fmt.Sprintf("old/%d", i)), Kind: isFile, Mode: 0o644}, 50_000)
		},
		"a file that is gone twice": func(archive *forged, i int) {
			archive.add(t, archiveEntry{Path: rawString(fmt.Sprintf("f%d", i)), Kind: isFile, Mode: 0o644}, 50_000)
			archive.add(t, archiveEntry{Path: "f0", Kind: isGone}, 0)
			archive.add(t, archiveEntry{Path: "f0", Kind: isGone}, 0)
		},
	} {
		_, there := mirrors(t)
		var folder forged
		folder.add(t, archiveEntry{Path: "old", Kind: isFolder, Mode: 0o755}, 0)
		takesNoMore(t, there, &folder)
		for i := range 3 { // what one archive leaves behind is counted for the next
			var archive forged
			for j := range 20 {
				fill(&archive, 100*i+j)
			}
			t.Log(name)
			takesNoMore(t, there, &archive)
		}
	}
}

func TestForgedPathsAreNotMadeForNothing(t *testing.T) {
	t.Parallel()
	_, there := mirrors(t)
	var long forged
	long.add(t, archiveEntry{Path: rawString(strings.Repeat("a/", 3000) + "x"), Kind: isFile}, 0)
	takesNoMore(t, there, &long)

	_, there = mirrors(t)
	var many forged
	for i := range 10 {
		many.add(t, archiveEntry{Path: rawString(fmt.Sprintf("%d/%sx", i, strings.Repeat("a/", 100))), Kind: isFile}, 0)
	}
	takesNoMore(t, there, &many)

	// By a link a short name leads to where nobody looks.
	_, there = mirrors(t)
	var deep forged
	below := strings.TrimSuffix(strings.Repeat(strings.Repeat("b", 200)+"/", 19), "/")
	deep.add(t, archiveEntry{Path: rawString(below), Kind: isFolder, Mode: 0o755}, 0)
	deep.add(t, archiveEntry{Path: "l", Kind: isLink, Link: rawString(below)}, 0)
	deep.add(t, archiveEntry{Path: rawString("l/" + strings.Repeat("c", 200) + "/" + strings.Repeat("d", 200)), Kind: isFolder, Mode: 0o755}, 0)
	_, _ = there.take(deep.whole(t), 1<<20)
	if _, err := there.root.Lstat("l/" + strings.Repeat("c", 200)); err == nil {
		t.Error("a folder was made through a link")
	}
}

func TestForgedEntriesTakeNoMemory(t *testing.T) {
	t.Parallel()
	_, there := mirrors(t)
	do(t, there.dir, file("dir/x", "", 0o644))
	archive := unpacker{room: func() int64 { return 1 << 20 }, names: 1000, place: func(name string) (*workdir.Dir, string, error) { return there.root, name, nil }}
	var same forged
	for range 1000 {
		same.add(t, archiveEntry{Path: "dir", Kind: isFolder, Mode: 0o755}, 0)
	}
	if err := archive.unpack(same.whole(t)); task.CodeOf(err) != task.TooLarge {
		t.Errorf("a folder was named 1000 times: %v", err)
	}
}

// forgingGuest answers every request with what send writes.
func forgingGuest(t *testing.T, dir string, send func(stream net.Conn)) *Client {
	t.Helper()
	host, inside := net.Pipe()
	session, err := yamux.Server(inside, sessionConfig(writeTimeout))
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(host, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); _ = session.Close() })
	if err := client.Mirror(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.mirror.root.Close() })
	go func() { // ends with the session
		for {
			stream, err := session.Accept()
			if err != nil {
				return
			}
			if _, _, err := readFrame(stream); err == nil {
				send(stream)
			}
			_ = stream.Close()
		}
	}()
	return client
}

func TestPullsDoNotAddUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i := 0
	client := forgingGuest(t, dir, func(stream net.Conn) {
		i++
		var archive forged
		archive.add(t, archiveEntry{Path: rawString(fmt.Sprintf("f%d", i)), Kind: isFile, Mode: 0o644}, 0)
		for range 4 {
			if err := writeFrame(&archive, frameContent, make([]byte, 3<<20)); err != nil {
				t.Error(err)
			}
		}
		_, _ = io.Copy(stream, archive.whole(t)) // the host may have had enough
	})
	for range 5 {
		_, err := client.Pull(t.Context(), 1<<20)
		if size := workdir.TreeSize(dir); size > 1<<20+takeSpare+workdir.MinSize {
			t.Fatalf("the folder takes %d MB and may take 1 and %d (%v)", size>>20, takeSpare>>20, err)
		}
	}
}
