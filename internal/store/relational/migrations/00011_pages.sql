-- +goose Up

-- Who somebody is at a provider of OpenID Connect.
ALTER TABLE users ADD COLUMN identity TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX users_of_identity ON users (identity) WHERE identity <> '';

-- What a model was sent for an answer: for people to look at, never for a model.
CREATE TABLE sent (
    answer  TEXT NOT NULL PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    request TEXT NOT NULL
);

-- The last webhooks that came in.
CREATE TABLE received (
    id         TEXT   NOT NULL PRIMARY KEY,
    forge      TEXT   NOT NULL,
    at         BIGINT NOT NULL,
    event      TEXT   NOT NULL,
    repository TEXT   NOT NULL,
    status     BIGINT NOT NULL,
    problem    TEXT   NOT NULL,
    refused    BIGINT NOT NULL
);
CREATE INDEX received_of_forge ON received (forge, refused, id);
