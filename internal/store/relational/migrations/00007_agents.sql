-- +goose Up

-- One-time leave to enrol as an agent.
CREATE TABLE enrolments (
    hash       BYTEA  NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL
);

-- Which agent has a name; a revoked one loses it to whoever enrols next.
CREATE TABLE agent_names (
    name  TEXT NOT NULL PRIMARY KEY,
    token TEXT NOT NULL REFERENCES tokens (id)
);

CREATE TABLE sightings (
    token TEXT   NOT NULL PRIMARY KEY REFERENCES tokens (id),
    at    BIGINT NOT NULL
);
