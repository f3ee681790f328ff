-- +goose Up

-- The keys that receipts are signed with. The one with the greatest number signs; of the
-- others only the public part is left.
CREATE TABLE receipt_keys (
    id         TEXT   NOT NULL PRIMARY KEY,
    number     BIGINT NOT NULL UNIQUE,
    public     BYTEA  NOT NULL,
    private    BYTEA  NOT NULL,
    created_at BIGINT NOT NULL
);

-- What was signed about commits that runs have published.
CREATE TABLE receipts (
    id          TEXT   NOT NULL PRIMARY KEY,
    task        TEXT   NOT NULL REFERENCES tasks (id),
    generation  BIGINT NOT NULL,
    commit_hash TEXT   NOT NULL,
    key         TEXT   NOT NULL REFERENCES receipt_keys (id),
    envelope    BYTEA  NOT NULL,
    created_at  BIGINT NOT NULL,
    UNIQUE (task, generation, commit_hash)
);
