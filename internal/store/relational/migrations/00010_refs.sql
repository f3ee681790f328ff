-- +goose Up

-- What tasks have in git, for the servers that were not there when it was pushed.
CREATE TABLE kept_refs (
    task       TEXT   NOT NULL REFERENCES tasks (id),
    position   BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    head       TEXT   NOT NULL,
    base       TEXT   NOT NULL,
    refs       TEXT   NOT NULL,
    size       BIGINT NOT NULL,
    pack       BYTEA  NOT NULL,
    PRIMARY KEY (task, position)
);
