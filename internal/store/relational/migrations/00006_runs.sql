-- +goose Up

-- How agents ended their runs, so that one that asks again is told the same.
CREATE TABLE ended_runs (
    task       TEXT   NOT NULL REFERENCES tasks (id),
    generation BIGINT NOT NULL,
    token      TEXT   NOT NULL,
    outcome    TEXT   NOT NULL,
    state      TEXT   NOT NULL,
    PRIMARY KEY (task, generation)
);

-- Stops and pauses that are wanted and have not come about.
CREATE TABLE halts (
    task   TEXT   NOT NULL REFERENCES tasks (id),
    signal TEXT   NOT NULL,
    reason TEXT   NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (task, signal)
);

CREATE TABLE general_pauses (
    source TEXT   NOT NULL PRIMARY KEY,
    at     BIGINT NOT NULL
);

CREATE TABLE comment_log (
    task       TEXT   NOT NULL REFERENCES tasks (id),
    position   BIGINT NOT NULL,
    change     TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    comment    TEXT   NOT NULL,
    author     TEXT   NOT NULL,
    body       TEXT   NOT NULL,
    access     TEXT   NOT NULL,
    refused    TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (task, position)
);

-- Up to where a task was told with its assignment.
CREATE TABLE comment_starts (
    task  TEXT   NOT NULL PRIMARY KEY REFERENCES tasks (id),
    start BIGINT NOT NULL
);

CREATE INDEX actions_of_run ON actions (task, generation, kind);
