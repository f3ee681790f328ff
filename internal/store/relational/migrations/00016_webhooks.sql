-- +goose Up

-- What a delivery was about, and the event for which the webhook is enabled.
ALTER TABLE deliveries ADD COLUMN subject TEXT NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN event TEXT NOT NULL DEFAULT '';
CREATE INDEX deliveries_by_subject ON deliveries (subject, at);

-- The repositories that are worked on, and which events each of them delivers.
CREATE TABLE webhook_repositories (
    forge      TEXT NOT NULL,
    repository TEXT NOT NULL,
    PRIMARY KEY (forge, repository)
);
CREATE TABLE webhook_events (
    forge      TEXT   NOT NULL,
    repository TEXT   NOT NULL,
    event      TEXT   NOT NULL,
    delivered  BIGINT NOT NULL,
    trusted    BIGINT NOT NULL,
    last_at    BIGINT NOT NULL,
    missed_at  BIGINT NOT NULL,
    missed     TEXT   NOT NULL,
    PRIMARY KEY (forge, repository, event),
    FOREIGN KEY (forge, repository) REFERENCES webhook_repositories (forge, repository) ON DELETE CASCADE
);
