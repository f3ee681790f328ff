-- +goose Up

-- What reviewers asked for, as short notes for later tasks of the repository.
CREATE TABLE memory_notes (
    id         TEXT   NOT NULL PRIMARY KEY,
    forge      TEXT   NOT NULL,
    repository TEXT   NOT NULL,
    body       TEXT   NOT NULL,
    path       TEXT   NOT NULL,
    ending     TEXT   NOT NULL,
    author     TEXT   NOT NULL,
    url        TEXT   NOT NULL,
    pull       BIGINT NOT NULL,
    source     TEXT   NOT NULL,
    asked      BIGINT NOT NULL,
    asked_at   BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    edited_by  TEXT   NOT NULL,
    edited_at  BIGINT NOT NULL,
    used_at    BIGINT NOT NULL
);
CREATE INDEX memory_notes_of_repository ON memory_notes (forge, repository, id);

-- The hashes of the comments from which something was learned, so that this happens once. They stay
-- when the note is forgotten.
CREATE TABLE memory_sources (
    source TEXT NOT NULL PRIMARY KEY
);

-- Pull requests of ours that were seen open, and from which nothing was learned since.
CREATE TABLE memory_pulls (
    forge      TEXT   NOT NULL,
    repository TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    PRIMARY KEY (forge, repository, number)
);
