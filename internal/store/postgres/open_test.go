package postgres

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

const password = "s3cr3t"

// refused opens and looks at a database that must be refused in one line that says
// how to fix it and not what the password is.
func refused(t *testing.T, address string, code task.Code) {
	t.Helper()
	for name, try := range map[string]func() error{
		"Open": func() error { _, err := Open(t.Context(), address); return err },
		"Look": func() error { _, err := Look(t.Context(), address); return err },
	} {
		err := try()
		if task.CodeOf(err) != code {
			t.Errorf("%s: error has the code %q, want %q: %v", name, task.CodeOf(err), code, err)
			continue
		}
		checkMessage(t, err)
	}
}

func checkMessage(t *testing.T, err error) {
	t.Helper()
	coded, found := task.AsError(err)
	if !found || coded.Hint == "" {
		t.Errorf("the error does not say how to fix it: %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %v", err)
	}
	if strings.Contains(err.Error(), password) {
		t.Errorf("the error has the password: %v", err)
	}
}

// changed is a database URL with something else in it.
func changed(t testing.TB, address string, change func(*url.URL)) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	change(parsed)
	return parsed.String()
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "postgres://toryo:" + password + "@" + listener.Addr().String() + "/toryo"
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, address, task.DatabaseDown)
	refused(t, "postgres://toryo:"+password+"@127.0.0.1:1,127.0.0.1:2/toryo", task.DatabaseDown)
	refused(t, "postgres://toryo:"+password+"@no-such-host.invalid/toryo", task.DatabaseDown)
}

// TestNobodyAnswers: a server that takes the connection and says nothing.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	refused(t, "postgres://toryo:"+password+"@"+listener.Addr().String()+"/toryo?connect_timeout=1", task.DatabaseDown)
}

func TestNotAURL(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://toryo:" + password + "%zz@host/toryo",
		"postgres://toryo:" + password + "@host:port/toryo",
		"mysql://toryo:" + password + "@host/toryo",
		"password=" + password + " port=x",
		"postgres://toryo:" + password + "@host/toryo?sslmode=perhaps",
	} {
		refused(t, address, task.BadConfig)
	}
}

func TestNoSuchDatabase(t *testing.T) {
	t.Parallel()
	refused(t, changed(t, testkit.Postgres(t), func(u *url.URL) { u.Path = "/no_such_database" }), task.DatabaseDown)
}

func TestNoSuchUser(t *testing.T) {
	t.Parallel()
	refused(t, changed(t, testkit.Postgres(t), func(u *url.URL) { u.User = url.UserPassword("nobody_at_all", password) }), task.DatabaseDown)
}

func TestWrongEncoding(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	name := strings.TrimPrefix(changedPath(t, address), "/") + "_ascii"
	execute(t, address, "CREATE DATABASE "+name+" ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
	defer execute(t, address, "DROP DATABASE "+name+" WITH (FORCE)")
	refused(t, changed(t, address, func(u *url.URL) { u.Path = "/" + name }), task.BadConfig)
}

func changedPath(t testing.TB, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Path
}

func TestNewerDatabase(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	closed(t, opened(t, address))
	execute(t, address, "INSERT INTO toryo_schema (version_id, is_applied) VALUES (9999, true)")
	refused(t, address, task.DatabaseNewer)
}

func closed(t testing.TB, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLookChangesNothing(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	for range 2 {
		found, err := Look(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if found.Schema != 0 || found.Newest == 0 || !strings.HasPrefix(found.Engine, "PostgreSQL ") {
			t.Errorf("found %+v", found)
		}
	}
	closed(t, opened(t, address))
	found, err := Look(t.Context(), address)
	if err != nil || found.Schema != found.Newest {
		t.Errorf("found %+v: %v", found, err)
	}
}

// TestOpenTogether: any number of servers may start on an empty database at once.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := Open(t.Context(), address)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.AddQuestion(t.Context(), store.Question{}); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestDurable: a server whose default is to answer before it has written is told
// not to.
func TestDurable(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	execute(t, address, "ALTER DATABASE "+strings.TrimPrefix(changedPath(t, address), "/")+" SET synchronous_commit = off")
	db, _, err := connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var is string
	if err := db.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&is); err != nil || is != "on" {
		t.Errorf("synchronous_commit is %q: %v", is, err)
	}
}

func TestOpenBrokenOff(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, address); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
}
