-- +goose Up

-- Of what each target of notifications has to be told, and was.
CREATE TABLE notifications (
    target   TEXT   NOT NULL,
    name     TEXT   NOT NULL,
    noted_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at   BIGINT NOT NULL,
    sent_at  BIGINT NOT NULL,
    over_at  BIGINT NOT NULL,
    problem  TEXT   NOT NULL,
    PRIMARY KEY (target, name)
);
