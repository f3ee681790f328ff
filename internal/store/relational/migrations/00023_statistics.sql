-- +goose Up

-- Since when nothing blocks the task, if something did.
ALTER TABLE tasks ADD COLUMN free_since BIGINT NOT NULL DEFAULT -62135596800000000;

-- What statistics are made of. It is kept for longer than journals and calls.
CREATE TABLE runs (
    task       TEXT   NOT NULL REFERENCES tasks (id),
    generation BIGINT NOT NULL,
    forge      TEXT   NOT NULL,
    repository TEXT   NOT NULL,
    type       TEXT   NOT NULL,
    queued_at  BIGINT NOT NULL,
    began_at   BIGINT NOT NULL,
    ended_at   BIGINT NOT NULL,
    result     TEXT   NOT NULL,
    attempt    TEXT   NOT NULL,
    PRIMARY KEY (task, generation)
);
CREATE INDEX runs_by_end ON runs (ended_at);

CREATE TABLE opened_pulls (
    task        TEXT   NOT NULL PRIMARY KEY REFERENCES tasks (id),
    forge       TEXT   NOT NULL,
    repository  TEXT   NOT NULL,
    branch      TEXT   NOT NULL,
    assigned_at BIGINT NOT NULL,
    opened_at   BIGINT NOT NULL,
    rounds      BIGINT NOT NULL
);
CREATE INDEX opened_pulls_by_time ON opened_pulls (opened_at);
CREATE INDEX opened_pulls_of_branch ON opened_pulls (forge, repository, branch);

-- Sums of days. Days count from 1970, in UTC. The repository is empty for all together.
CREATE TABLE counted_days (
    forge      TEXT   NOT NULL,
    repository TEXT   NOT NULL,
    day        BIGINT NOT NULL,
    name       TEXT   NOT NULL,
    bucket     BIGINT NOT NULL,
    value      BIGINT NOT NULL,
    PRIMARY KEY (forge, repository, day, name, bucket)
);
CREATE INDEX counted_days_by_time ON counted_days (day);

CREATE TABLE spent_days (
    day        BIGINT NOT NULL,
    forge      TEXT   NOT NULL,
    repository TEXT   NOT NULL,
    tokens     BIGINT NOT NULL,
    money      BIGINT NOT NULL,
    PRIMARY KEY (day, forge, repository)
);

-- What happened before is in the moves of the tasks, which are kept. An entry begins with its trigger.
INSERT INTO runs (task, generation, forge, repository, type, queued_at, began_at, ended_at, result, attempt)
SELECT claimed.task, claimed.generation, tasks.forge, tasks.repository, tasks.type,
    (SELECT MIN(at) FROM events WHERE events.task = claimed.task AND events.generation = claimed.generation AND source = 'server' AND kind = 'state'),
    claimed.at,
    COALESCE(ended.at, -62135596800000000),
    CASE WHEN ended.data IS NULL THEN ''
        WHEN ended.data LIKE '{"trigger":"finished"%' THEN 'done'
        WHEN ended.data LIKE '{"trigger":"gave_up"%' THEN 'failed'
        WHEN ended.data LIKE '{"trigger":"withdrawn"%' THEN 'stopped'
        WHEN ended.data LIKE '{"trigger":"paused"%' THEN 'paused'
        ELSE 'returned' END,
    ''
FROM events AS claimed
JOIN tasks ON tasks.id = claimed.task
LEFT JOIN events AS ended ON ended.task = claimed.task AND ended.position =
    (SELECT MIN(position) FROM events WHERE events.task = claimed.task AND events.position > claimed.position AND kind = 'state' AND source = 'server')
WHERE claimed.kind = 'state' AND claimed.source = 'server' AND claimed.data LIKE '{"trigger":"claimed"%';

UPDATE runs SET attempt = CASE WHEN result = 'done' THEN 'right' ELSE 'failed' END
WHERE result IN ('done', 'failed') AND type = 'development'
    AND task IN (SELECT id FROM tasks WHERE item_kind = 'issue')
    AND NOT EXISTS (SELECT 1 FROM runs AS earlier WHERE earlier.task = runs.task AND earlier.generation < runs.generation AND earlier.result IN ('done', 'failed'));

-- When a pull request was opened is not known, but soon after it the run was done.
INSERT INTO opened_pulls (task, forge, repository, branch, assigned_at, opened_at, rounds)
SELECT tasks.id, tasks.forge, tasks.repository, tasks.branch,
    COALESCE((SELECT MAX(at) FROM events WHERE events.task = tasks.id AND events.generation <= runs.generation
        AND kind = 'state' AND source = 'server' AND data LIKE '{"trigger":"assigned"%'), tasks.created_at),
    runs.ended_at,
    (SELECT COUNT(*) FROM tasks AS fix JOIN events ON events.task = fix.id
        WHERE fix.forge = tasks.forge AND fix.repository = tasks.repository AND fix.branch = tasks.branch AND fix.branch <> '' AND fix.item_kind = 'pull'
        AND kind = 'state' AND source = 'server' AND data LIKE '{"trigger":"assigned"%' AND data LIKE '%"reason":"changes_requested"}')
FROM tasks JOIN runs ON runs.task = tasks.id
WHERE tasks.type = 'development' AND tasks.item_kind = 'issue' AND runs.result = 'done'
    AND runs.generation = (SELECT MIN(done.generation) FROM runs AS done
        JOIN actions ON actions.task = done.task AND actions.generation = done.generation AND actions.kind = 'open_pull' AND actions.status = 'delivered'
        WHERE done.task = tasks.id AND done.result = 'done');

UPDATE runs SET attempt = 'corrected'
WHERE attempt = 'right' AND EXISTS (SELECT 1 FROM tasks AS origin
    JOIN tasks AS fix ON fix.forge = origin.forge AND fix.repository = origin.repository AND fix.branch = origin.branch AND fix.branch <> '' AND fix.item_kind = 'pull'
    JOIN events ON events.task = fix.id AND kind = 'state' AND source = 'server' AND data LIKE '{"trigger":"assigned"%'
        AND (data LIKE '%"reason":"changes_requested"}' OR data LIKE '%"reason":"checks_failed"}')
    WHERE origin.id = runs.task);

INSERT INTO spent_days (day, forge, repository, tokens, money)
SELECT calls.at / 86400000000, COALESCE(tasks.forge, ''), COALESCE(tasks.repository, ''), SUM(calls.tokens), SUM(calls.money)
FROM calls LEFT JOIN tasks ON tasks.id = calls.task
GROUP BY 1, 2, 3;

-- The sums of days of what is in the tables above.
INSERT INTO counted_days (forge, repository, day, name, bucket, value)
SELECT forge, repository, ended_at / 86400000000, 'run ' || result, 0, COUNT(*) FROM runs WHERE result <> '' GROUP BY 1, 2, 3, 4;

INSERT INTO counted_days (forge, repository, day, name, bucket, value)
SELECT forge, repository, ended_at / 86400000000, 'attempt ' || attempt, 0, COUNT(*) FROM runs WHERE attempt <> '' GROUP BY 1, 2, 3, 4;

INSERT INTO counted_days (forge, repository, day, name, bucket, value)
SELECT forge, repository, day, 'wait', CASE WHEN tenths < 0 THEN 0 WHEN tenths < 100 THEN tenths WHEN tenths < 1000 THEN tenths / 5 * 5 WHEN tenths < 10000 THEN tenths / 50 * 50
        WHEN tenths < 100000 THEN tenths / 500 * 500 WHEN tenths < 1000000 THEN tenths / 5000 * 5000 ELSE tenths / 50000 * 50000 END, COUNT(*)
FROM (SELECT forge, repository, began_at / 86400000000 AS day, (began_at - queued_at) / 100000 AS tenths FROM runs) AS waits GROUP BY 1, 2, 3, 4, 5;

INSERT INTO counted_days (forge, repository, day, name, bucket, value)
SELECT forge, repository, day, 'pull', CASE WHEN tenths < 0 THEN 0 WHEN tenths < 100 THEN tenths WHEN tenths < 1000 THEN tenths / 5 * 5 WHEN tenths < 10000 THEN tenths / 50 * 50
        WHEN tenths < 100000 THEN tenths / 500 * 500 WHEN tenths < 1000000 THEN tenths / 5000 * 5000 ELSE tenths / 50000 * 50000 END, COUNT(*)
FROM (SELECT forge, repository, opened_at / 86400000000 AS day, (opened_at - assigned_at) / 100000 AS tenths FROM opened_pulls) AS pulls GROUP BY 1, 2, 3, 4, 5;

INSERT INTO counted_days (forge, repository, day, name, bucket, value)
SELECT forge, repository, opened_at / 86400000000, 'rounds', CASE WHEN rounds > 3 THEN 3 ELSE rounds END, COUNT(*) FROM opened_pulls GROUP BY 1, 2, 3, 4, 5;

INSERT INTO counted_days (forge, repository, day, name, bucket, value)
SELECT forge, repository, opened_at / 86400000000, 'rounds sum', 0, SUM(rounds) FROM opened_pulls WHERE rounds > 0 GROUP BY 1, 2, 3;

-- A run over midnight is busy on several days.
INSERT INTO counted_days (forge, repository, day, name, bucket, value)
SELECT forge, repository, day, 'busy', 0, SUM(taken) FROM (
    SELECT forge, repository, ended_at / 86400000000 AS day, ended_at - began_at AS taken FROM runs
        WHERE ended_at > began_at AND ended_at / 86400000000 = began_at / 86400000000
    UNION ALL SELECT forge, repository, began_at / 86400000000, (began_at / 86400000000 + 1) * 86400000000 - began_at FROM runs
        WHERE ended_at / 86400000000 > began_at / 86400000000
    UNION ALL SELECT forge, repository, ended_at / 86400000000, ended_at - ended_at / 86400000000 * 86400000000 FROM runs
        WHERE ended_at / 86400000000 > began_at / 86400000000
    UNION ALL SELECT runs.forge, runs.repository, days.day, 86400000000 FROM runs
        JOIN (SELECT DISTINCT began_at / 86400000000 AS day FROM runs) AS days
        ON days.day > runs.began_at / 86400000000 AND days.day < runs.ended_at / 86400000000
        WHERE runs.ended_at / 86400000000 > runs.began_at / 86400000000 + 1
) AS parts WHERE taken > 0 GROUP BY 1, 2, 3;

INSERT INTO counted_days (forge, repository, day, name, bucket, value)
SELECT '', '', day, name, bucket, SUM(value) FROM counted_days GROUP BY 3, 4, 5;
