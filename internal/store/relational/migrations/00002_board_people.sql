-- +goose Up
CREATE TABLE board_users (
    id         TEXT   NOT NULL PRIMARY KEY,
    folded     TEXT   NOT NULL UNIQUE,
    login      TEXT   NOT NULL,
    access     TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    removed_at BIGINT NOT NULL
);

-- The comment is empty for a reaction to the item itself, so it refers to nothing.
CREATE TABLE board_reactions (
    id         TEXT   NOT NULL UNIQUE,
    repository TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    comment    TEXT   NOT NULL,
    folded     TEXT   NOT NULL,
    login      TEXT   NOT NULL,
    reaction   TEXT   NOT NULL,
    PRIMARY KEY (repository, number, comment, folded, reaction),
    FOREIGN KEY (repository, number) REFERENCES board_items (repository, number)
);

CREATE TABLE board_statuses (
    repository  TEXT   NOT NULL REFERENCES board_repositories (name),
    commit_id   TEXT   NOT NULL,
    context     TEXT   NOT NULL,
    state       TEXT   NOT NULL,
    description TEXT   NOT NULL,
    url         TEXT   NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (repository, commit_id, context)
);
