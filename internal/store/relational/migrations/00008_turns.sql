-- +goose Up

ALTER TABLE threads ADD COLUMN language TEXT NOT NULL DEFAULT 'ja';
CREATE UNIQUE INDEX threads_shared ON threads (review) WHERE owner = '';
CREATE INDEX reviews_of_pull ON reviews (pull, id) WHERE pull <> '';

-- The rule that a turn has one message of each role holds for answers and what is
-- answered; messages without an answer may be any number. So the table is made
-- anew without the old constraint.
CREATE TABLE turn_messages (
    id         TEXT   NOT NULL PRIMARY KEY,
    thread     TEXT   NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    turn       BIGINT NOT NULL,
    role       TEXT   NOT NULL,
    content    TEXT   NOT NULL,
    author     TEXT   NOT NULL,
    origin     TEXT   NOT NULL,
    place      TEXT   NOT NULL,
    state      TEXT   NOT NULL,
    cause      TEXT   NOT NULL,
    attempts   BIGINT NOT NULL,
    claim      TEXT   NOT NULL,
    held_until BIGINT NOT NULL,
    citations  TEXT   NOT NULL,
    created_at BIGINT NOT NULL
);
INSERT INTO turn_messages (id, thread, turn, role, content, author, origin, place, state, cause, attempts, claim, held_until, citations, created_at)
SELECT id, thread, turn, role, content, '', '', '',
    CASE WHEN role = 'user' AND NOT EXISTS (
        SELECT 1 FROM messages AS answers WHERE answers.thread = messages.thread AND answers.turn = messages.turn AND answers.role = 'assistant'
    ) THEN 'unanswered' ELSE 'answered' END,
    '', 1, '', 0, '', created_at
FROM messages;
DROP TABLE messages;
ALTER TABLE turn_messages RENAME TO messages;
CREATE UNIQUE INDEX messages_of_turn ON messages (thread, turn, role) WHERE state <> 'unanswered';
CREATE INDEX messages_of_thread ON messages (thread, turn);
CREATE UNIQUE INDEX messages_of_origin ON messages (thread, origin) WHERE origin <> '';
