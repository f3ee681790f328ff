package relational

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// notices passes notices on within the process, and sends them to the others.
type notices struct {
	self string // tells what this process sent from what others did

	mu        sync.RWMutex
	listeners map[*listener]struct{}
}

type listener struct{ hear func(store.Notice) }

var sentTexts = newTable(`sent`, `text TEXT`)

// travelling is a notice on its way to other processes.
type travelling struct {
	From    string      `json:"from"`
	Topic   store.Topic `json:"topic"`
	Subject string      `json:"subject"`
}

// send puts notices into the transaction: they go out when it is committed.
func (n *notices) send(ctx context.Context, q session, all []store.Notice) error {
	if q.dialect.Notify == "" {
		return nil
	}
	texts, err := n.packed(all)
	if err != nil {
		return err
	}
	_, err = listRows(ctx, q, func(row) (struct{}, error) { return struct{}{}, nil }, sentTexts, texts,
		func(text string) []any { return []any{text} }, `WITH {rows} SELECT `+q.dialect.Notify+` FROM sent`)
	return err
}

// mostPacked is how many bytes of notices go together. PostgreSQL carries less than 8,000.
const mostPacked = 7500

// packed makes texts of notices: of one as it is, and of several a list. Each text costs every server that
// listens, and the database, about as much as a small query. A server of an older version cannot read a
// list, and takes it for anything.
func (n *notices) packed(all []store.Notice) (texts []string, err error) {
	var some []string
	size := 0
	end := func() {
		if len(some) == 1 {
			texts = append(texts, some[0])
		} else if len(some) > 1 {
			texts = append(texts, `[`+strings.Join(some, `,`)+`]`)
		}
		some, size = nil, 0
	}
	for _, one := range all {
		text, err := json.Marshal(travelling{n.self, one.Topic, one.Subject})
		if err != nil {
			return nil, err
		}
		if size+len(text) > mostPacked {
			end()
		}
		some, size = append(some, string(text)), size+len(text)+1
	}
	end()
	return texts, nil
}

// publish passes notices to all listeners in the process.
func (n *notices) publish(all ...store.Notice) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, one := range all {
		for l := range n.listeners {
			l.hear(one)
		}
	}
}

// Received passes on what another process sent. The adapter calls it, with
// nothing for what may have been missed.
func (s *Store) Received(text string) {
	if text == "" {
		s.notices.publish(store.Notice{})
		return
	}
	if !strings.HasPrefix(text, `[`) {
		text = `[` + text + `]`
	}
	var all []travelling
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		s.notices.publish(store.Notice{}) // of a newer program: it may be anything
		return
	}
	for _, one := range all {
		if one.From != s.notices.self {
			s.notices.publish(store.Notice{Topic: one.Topic, Subject: one.Subject})
		}
	}
}

// maxSubject keeps a notice within what PostgreSQL carries, 8,000 bytes, also if each byte takes six in JSON.
const maxSubject = 1200

// Notify implements store.Notices.
func (s *Store) Notify(ctx context.Context, notice store.Notice) error {
	if len(notice.Subject) > maxSubject {
		return task.Errorf(task.TooLarge, "the subject of a notice has %d bytes; %d are the limit", len(notice.Subject), maxSubject)
	}
	if err := checkText(notice.Subject); err != nil {
		return err
	}
	return s.write(ctx, func(q session) error {
		q.notify(notice.Topic, notice.Subject)
		return nil
	})
}

// Listen implements store.Notices.
func (s *Store) Listen(hear func(store.Notice)) (stop func()) {
	l := &listener{hear}
	s.notices.mu.Lock()
	if s.notices.listeners == nil {
		s.notices.listeners = map[*listener]struct{}{}
	}
	s.notices.listeners[l] = struct{}{}
	s.notices.mu.Unlock()
	hear(store.Notice{})
	if s.dialect.Version != "" {
		s.others.Start(context.Background(), s.followOthers)
	}
	return func() {
		s.notices.mu.Lock()
		defer s.notices.mu.Unlock()
		delete(s.notices.listeners, l)
	}
}

// Lead implements store.Elections.
func (s *Store) Lead(ctx context.Context, election, server string, lasting time.Duration) (leads bool, err error) {
	if err := requireName("election", election); err != nil {
		return false, err
	}
	if err := requireName("server", server); err != nil {
		return false, err
	}
	err = s.write(ctx, func(q session) error {
		now := q.dialect.Now
		taken, err := q.exec(ctx, `INSERT INTO offices (name, holder, held_until) VALUES (?, ?, `+now+` + ?)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
			WHERE offices.holder = excluded.holder OR offices.held_until <= `+now, election, server, lasting.Microseconds())
		leads = taken > 0
		return err
	})
	return leads && err == nil, err
}

// Resign implements store.Elections.
func (s *Store) Resign(ctx context.Context, election, server string) error {
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `DELETE FROM offices WHERE name = ? AND holder = ?`, election, server)
		return err
	})
}

// Time implements store.Clock.
func (s *Store) Time(ctx context.Context) (at time.Time, err error) {
	err = s.read(ctx, func(q session) error {
		micros, _, err := first(ctx, q, scanNumber, `SELECT `+q.dialect.Now)
		at = time.UnixMicro(micros).UTC()
		return err
	})
	return at, err
}
