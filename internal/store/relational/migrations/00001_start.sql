-- Both engines read this file, so it keeps to what they share. Moments are
-- microseconds since 1970, JSON is text, and a truth value is 0 or 1.

-- +goose Up
CREATE TABLE counters (
    name  TEXT   NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE tasks (
    id            TEXT   NOT NULL PRIMARY KEY,
    forge         TEXT   NOT NULL,
    repository    TEXT   NOT NULL,
    item_kind     TEXT   NOT NULL,
    number        BIGINT NOT NULL,
    type          TEXT   NOT NULL,
    role          TEXT   NOT NULL,
    title         TEXT   NOT NULL,
    url           TEXT   NOT NULL,
    state         TEXT   NOT NULL,
    generation    BIGINT NOT NULL,
    phase         TEXT   NOT NULL,
    reason        TEXT   NOT NULL,
    priority      BIGINT NOT NULL,
    attempts      BIGINT NOT NULL,
    ready_at      BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    lease_agent   TEXT   NOT NULL,
    lease_token   TEXT   NOT NULL,
    lease_expires BIGINT NOT NULL,
    UNIQUE (forge, repository, item_kind, number, type)
);
CREATE INDEX tasks_queued ON tasks (priority DESC, id) WHERE state = 'queued';
CREATE INDEX tasks_running ON tasks (lease_expires) WHERE state = 'running';

CREATE TABLE events (
    task       TEXT   NOT NULL REFERENCES tasks (id),
    generation BIGINT NOT NULL,
    source     TEXT   NOT NULL,
    sequence   BIGINT NOT NULL,
    position   BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    at         BIGINT NOT NULL,
    data       TEXT   NOT NULL,
    PRIMARY KEY (task, generation, source, sequence),
    UNIQUE (task, position)
);

CREATE TABLE actions (
    id              TEXT   NOT NULL PRIMARY KEY,
    item            TEXT   NOT NULL,
    sequence        BIGINT NOT NULL,
    task            TEXT   REFERENCES tasks (id),
    generation      BIGINT NOT NULL,
    idempotency_key TEXT   NOT NULL UNIQUE,
    coalesce_name   TEXT   NOT NULL,
    kind            TEXT   NOT NULL,
    payload         TEXT   NOT NULL,
    due_at          BIGINT NOT NULL,
    held_until      BIGINT NOT NULL,
    status          TEXT   NOT NULL,
    attempts        BIGINT NOT NULL,
    last_error      TEXT   NOT NULL,
    reason          TEXT   NOT NULL,
    result          TEXT   NOT NULL,
    UNIQUE (item, sequence)
);
CREATE INDEX actions_due ON actions (due_at) WHERE status = 'pending';
CREATE INDEX actions_of_item ON actions (item, sequence) WHERE status = 'pending';
CREATE INDEX actions_of_task ON actions (task) WHERE status = 'pending';

CREATE TABLE forge_answers (
    name          TEXT   NOT NULL PRIMARY KEY,
    etag          TEXT   NOT NULL,
    last_modified TEXT   NOT NULL,
    status        BIGINT NOT NULL,
    header        TEXT   NOT NULL,
    body          BYTEA  NOT NULL,
    stored_at     BIGINT NOT NULL
);
CREATE INDEX forge_answers_stored ON forge_answers (stored_at);

CREATE TABLE questions (
    id                 TEXT   NOT NULL PRIMARY KEY,
    body               TEXT   NOT NULL,
    purpose            TEXT   NOT NULL,
    grading_impression TEXT   NOT NULL,
    created_at         BIGINT NOT NULL
);

CREATE TABLE reviews (
    id              TEXT   NOT NULL PRIMARY KEY,
    owner           TEXT   NOT NULL,
    question        TEXT   REFERENCES questions (id),
    custom_question TEXT   NOT NULL,
    answer          TEXT   NOT NULL,
    judgement       TEXT   NOT NULL,
    pull            TEXT   NOT NULL,
    head_commit     TEXT   NOT NULL,
    created_at      BIGINT NOT NULL
);
CREATE INDEX reviews_of_owner ON reviews (owner, id);
CREATE UNIQUE INDEX reviews_of_commit ON reviews (pull, head_commit) WHERE pull <> '';

CREATE TABLE threads (
    id                   TEXT   NOT NULL PRIMARY KEY,
    review               TEXT   NOT NULL REFERENCES reviews (id) ON DELETE CASCADE,
    owner                TEXT   NOT NULL,
    conversation_summary TEXT   NOT NULL,
    summary_up_to_turn   BIGINT NOT NULL,
    last_section_turn    BIGINT NOT NULL,
    last_section_numbers TEXT   NOT NULL,
    created_at           BIGINT NOT NULL
);
CREATE INDEX threads_of_review ON threads (review, id);

CREATE TABLE messages (
    id         TEXT   NOT NULL PRIMARY KEY,
    thread     TEXT   NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    turn       BIGINT NOT NULL,
    role       TEXT   NOT NULL,
    content    TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (thread, turn, role)
);

CREATE TABLE board_repositories (
    id             TEXT   NOT NULL PRIMARY KEY,
    name           TEXT   NOT NULL UNIQUE,
    default_branch TEXT   NOT NULL,
    created_at     BIGINT NOT NULL
);

CREATE TABLE board_items (
    id          TEXT   NOT NULL UNIQUE,
    repository  TEXT   NOT NULL REFERENCES board_repositories (name),
    number      BIGINT NOT NULL,
    kind        TEXT   NOT NULL,
    title       TEXT   NOT NULL,
    body        TEXT   NOT NULL,
    author      TEXT   NOT NULL,
    state       TEXT   NOT NULL,
    head        TEXT   NOT NULL,
    base        TEXT   NOT NULL,
    draft       BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (repository, number)
);

-- A mark is a label or an assignee. Two marks with the same folded name are one.
CREATE TABLE board_marks (
    repository TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    folded     TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    place      BIGINT NOT NULL,
    PRIMARY KEY (repository, number, kind, folded),
    FOREIGN KEY (repository, number) REFERENCES board_items (repository, number)
);
CREATE INDEX board_marks_by_name ON board_marks (kind, folded);

CREATE TABLE board_timeline (
    repository TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    place      BIGINT NOT NULL,
    actor      TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    subject    TEXT   NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (repository, number, place),
    FOREIGN KEY (repository, number) REFERENCES board_items (repository, number)
);

CREATE TABLE board_comments (
    id         TEXT   NOT NULL PRIMARY KEY,
    repository TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    author     TEXT   NOT NULL,
    body       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    FOREIGN KEY (repository, number) REFERENCES board_items (repository, number)
);
CREATE INDEX board_comments_of_item ON board_comments (repository, number, id);

CREATE TABLE board_reviews (
    id         TEXT   NOT NULL PRIMARY KEY,
    repository TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    author     TEXT   NOT NULL,
    verdict    TEXT   NOT NULL,
    body       TEXT   NOT NULL,
    commit_id  TEXT   NOT NULL,
    comments   TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    FOREIGN KEY (repository, number) REFERENCES board_items (repository, number)
);
CREATE INDEX board_reviews_of_item ON board_reviews (repository, number, id);

CREATE TABLE tokens (
    id         TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    role       TEXT   NOT NULL,
    hash       BYTEA  NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL
);
