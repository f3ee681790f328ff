-- +goose Up

-- What a task and a day have spent in all is in counters.
CREATE TABLE calls (
    id         TEXT   NOT NULL PRIMARY KEY,
    task       TEXT   REFERENCES tasks (id),
    generation BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    tokens     BIGINT NOT NULL,
    money      BIGINT NOT NULL
);
CREATE INDEX calls_by_time ON calls (at);
