-- +goose Up

-- What reviewers asked for, as short notes for later tasks of the repository. Source is the hash of the
-- comment whose words a note has; empty if that is gone, or if a person wrote the note.
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

-- The hashes of the comments from which something was learned, so that this happens once, with the note
-- that each asked for. They stay when the note is forgotten.
CREATE TABLE memory_sources (
    source     TEXT   NOT NULL PRIMARY KEY,
    note       TEXT   NOT NULL,
    forge      TEXT   NOT NULL,
    repository TEXT   NOT NULL,
    pull       BIGINT NOT NULL
);
CREATE INDEX memory_sources_of_note ON memory_sources (note);
CREATE INDEX memory_sources_of_pull ON memory_sources (forge, repository, pull);

-- Pull requests of ours from which nothing was learned since they were opened.
CREATE TABLE memory_pulls (
    forge      TEXT   NOT NULL,
    repository TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    PRIMARY KEY (forge, repository, number)
);
