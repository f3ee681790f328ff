package relational

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// agentRole is the role of tokens that belong to agents.
const agentRole = "agent"

// AddEnrolment implements store.Agents.
func (s *Store) AddEnrolment(ctx context.Context, e store.Enrolment) error {
	if len(e.Hash) == 0 {
		return task.Errorf(task.Invalid, "the hash of an enrolment is empty")
	}
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO enrolments (hash, created_at, expires_at, used_at) VALUES (`+listOf(4)+`)`,
			e.Hash, made(e.CreatedAt).UnixMicro(), e.ExpiresAt.UnixMicro(), never)
		if q.dialect.Classify(err) == Duplicate {
			return task.Errorf(task.Conflict, "the enrolment is there already")
		}
		return err
	})
}

func noLeave() error {
	return task.Errorf(task.Unauthorized, "this is no enrolment token, or it was used or has run out").
		WithHint("make a new one with toryo agent token create")
}

// MayEnrol implements store.Agents.
func (s *Store) MayEnrol(ctx context.Context, hash []byte, at time.Time) error {
	_, err := find(ctx, s, noLeave(), scanNumber, `SELECT expires_at FROM enrolments WHERE hash = ? AND used_at = ? AND expires_at > ?`,
		blob(hash), never, at.UnixMicro())
	return err
}

// Enrol implements store.Agents.
func (s *Store) Enrol(ctx context.Context, hash []byte, agent store.Token, at time.Time) (store.Token, error) {
	if len(agent.Hash) == 0 {
		return store.Token{}, task.Errorf(task.Invalid, "the hash of a token is empty")
	}
	if err := requireName("name of an agent", agent.Name); err != nil {
		return store.Token{}, err
	}
	agent.ID, agent.Role, agent.CreatedAt, agent.RevokedAt = newID(), agentRole, made(at), moment(time.Time{})
	err := s.write(ctx, func(q session) error {
		used, err := q.exec(ctx, `UPDATE enrolments SET used_at = ? WHERE hash = ? AND used_at = ? AND expires_at > ?`,
			at.UnixMicro(), blob(hash), never, at.UnixMicro())
		if err != nil {
			return err
		}
		if used == 0 {
			return noLeave()
		}
		if _, err := q.exec(ctx, `INSERT INTO tokens (`+tokenColumns+`) VALUES (`+listOf(7)+`)`,
			agent.ID, agent.Name, agent.Person, agent.Role, agent.Hash, agent.CreatedAt.UnixMicro(), agent.RevokedAt.UnixMicro()); err != nil {
			return err
		}
		return nameAgent(ctx, q, agent)
	})
	return orNothing(agent, err)
}

// nameAgent gives the agent its name, unless a valid one has it.
func nameAgent(ctx context.Context, q session, agent store.Token) error {
	named, err := q.exec(ctx, `INSERT INTO agent_names (name, token) VALUES (?, ?)
		ON CONFLICT (name) DO UPDATE SET token = excluded.token
		WHERE EXISTS (SELECT 1 FROM tokens WHERE id = agent_names.token AND revoked_at <> ?)`, agent.Name, agent.ID, never)
	if err == nil && named == 0 {
		err = task.Errorf(task.Conflict, "there is an agent %q already", agent.Name).
			WithHint("choose another name with --name, or end the other with toryo agent revoke")
	}
	return err
}

// AgentsSeen implements store.Agents. Tokens come in a fixed order, so that two
// servers that note the same ones do not wait for each other in a circle.
func (s *Store) AgentsSeen(ctx context.Context, seen map[string]time.Time) error {
	return s.write(ctx, func(q session) error {
		for _, token := range slices.Sorted(maps.Keys(seen)) {
			_, err := q.exec(ctx, `INSERT INTO sightings (token, at) SELECT id, ? FROM tokens WHERE id = ?
				ON CONFLICT (token) DO UPDATE SET at = excluded.at WHERE excluded.at > sightings.at`, seen[token].UnixMicro(), token)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// AgentIs implements store.Agents.
func (s *Store) AgentIs(ctx context.Context, token string, condition store.Condition, at time.Time) error {
	is := string(condition.Unable) + " " + condition.Detail
	return s.write(ctx, func(q session) error {
		was, _, err := first(ctx, q, scanText, `SELECT unable || ' ' || detail FROM sightings WHERE token = ?`, token)
		if err != nil {
			return err
		}
		if is != was { // an agent says the same again and again
			q.notify(store.WaitsChanged, "")
		}
		_, err = q.exec(ctx, `INSERT INTO sightings (token, at, unable, detail) SELECT id, ?, ?, ? FROM tokens WHERE id = ?
			ON CONFLICT (token) DO UPDATE SET unable = excluded.unable, detail = excluded.detail,
				at = CASE WHEN excluded.at > sightings.at THEN excluded.at ELSE sightings.at END`,
			at.UnixMicro(), string(condition.Unable), condition.Detail, token)
		return err
	})
}

// ListAgents implements store.Agents.
func (s *Store) ListAgents(ctx context.Context) ([]store.Agent, error) {
	return all(ctx, s, func(r row) (a store.Agent, err error) {
		err = r.Scan(&a.Token, &a.Name, micros{&a.EnrolledAt}, micros{&a.RevokedAt}, micros{&a.SeenAt}, &a.Unable, &a.Detail)
		return a, err
	}, `SELECT tokens.id, tokens.name, tokens.created_at, tokens.revoked_at, COALESCE(sightings.at, ?),
			COALESCE(sightings.unable, ''), COALESCE(sightings.detail, '')
		FROM tokens LEFT JOIN sightings ON sightings.token = tokens.id WHERE tokens.role = ? ORDER BY tokens.id`, never, agentRole)
}
