-- +goose Up

CREATE TABLE users (
    id         TEXT   NOT NULL PRIMARY KEY,
    folded     TEXT   NOT NULL UNIQUE,
    login      TEXT   NOT NULL,
    role       TEXT   NOT NULL,
    password   TEXT   NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE sessions (
    hash       BYTEA  NOT NULL PRIMARY KEY,
    folded     TEXT   NOT NULL REFERENCES users (folded) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_of_user ON sessions (folded);
CREATE INDEX sessions_by_end ON sessions (expires_at);

-- No entry refers to a user: it stays when the account goes.
CREATE TABLE audit (
    id      TEXT   NOT NULL PRIMARY KEY,
    at      BIGINT NOT NULL,
    actor   TEXT   NOT NULL,
    action  TEXT   NOT NULL,
    subject TEXT   NOT NULL,
    outcome TEXT   NOT NULL
);
