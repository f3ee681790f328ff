-- +goose Up

-- A person is an account: a row of users. What a token does, its person does; one without
-- a person is known by its name, as all were before.
ALTER TABLE tokens ADD COLUMN person TEXT NOT NULL DEFAULT '';

-- Who the users of the machines are, for commands that work without a server.
CREATE TABLE machine_users (
    name       TEXT   NOT NULL PRIMARY KEY,
    folded     TEXT   NOT NULL REFERENCES users (folded) ON DELETE CASCADE,
    created_at BIGINT NOT NULL
);
CREATE INDEX machine_users_of ON machine_users (folded);

-- Who may read a review besides its owner. An empty name is everyone.
CREATE TABLE review_shares (
    review     TEXT   NOT NULL REFERENCES reviews (id) ON DELETE CASCADE,
    folded     TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (review, folded)
);
CREATE INDEX review_shares_with ON review_shares (folded, review);

-- Who may have a login that things belong to and that nobody has an account of: somebody
-- at a provider elsewhere, or * for whoever comes first.
CREATE TABLE expected_users (
    folded   TEXT NOT NULL PRIMARY KEY,
    identity TEXT NOT NULL
);

-- A question belongs to who keeps it. Those from before are everyone's, as they were made.
ALTER TABLE questions ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX questions_of_owner ON questions (owner, id);
CREATE INDEX reviews_of_question ON reviews (question) WHERE question IS NOT NULL;

-- What became of a review that a model makes: empty when it is there. Until held_until
-- somebody works on it, who has the claim.
ALTER TABLE reviews ADD COLUMN state TEXT NOT NULL DEFAULT '';
ALTER TABLE reviews ADD COLUMN cause TEXT NOT NULL DEFAULT '';
ALTER TABLE reviews ADD COLUMN held_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE reviews ADD COLUMN claim TEXT NOT NULL DEFAULT '';

-- The language in which people last spoke in a conversation; empty if that does not tell.
ALTER TABLE threads ADD COLUMN spoken TEXT NOT NULL DEFAULT '';

-- What belongs to an account has its login as the account has it. Before, it had the name of
-- a token, which may differ in the case of letters.
UPDATE reviews SET owner = (SELECT login FROM users WHERE folded = replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(reviews.owner, 'a', 'A'), 'b', 'B'), 'c', 'C'), 'd', 'D'), 'e', 'E'), 'f', 'F'), 'g', 'G'), 'h', 'H'), 'i', 'I'), 'j', 'J'), 'k', 'K'), 'l', 'L'), 'm', 'M'), 'n', 'N'), 'o', 'O'), 'p', 'P'), 'q', 'Q'), 'r', 'R'), 's', 'S'), 't', 'T'), 'u', 'U'), 'v', 'V'), 'w', 'W'), 'x', 'X'), 'y', 'Y'), 'z', 'Z'))
    WHERE owner <> '' AND EXISTS (SELECT 1 FROM users WHERE login <> reviews.owner AND folded = replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(reviews.owner, 'a', 'A'), 'b', 'B'), 'c', 'C'), 'd', 'D'), 'e', 'E'), 'f', 'F'), 'g', 'G'), 'h', 'H'), 'i', 'I'), 'j', 'J'), 'k', 'K'), 'l', 'L'), 'm', 'M'), 'n', 'N'), 'o', 'O'), 'p', 'P'), 'q', 'Q'), 'r', 'R'), 's', 'S'), 't', 'T'), 'u', 'U'), 'v', 'V'), 'w', 'W'), 'x', 'X'), 'y', 'Y'), 'z', 'Z'));
UPDATE threads SET owner = (SELECT login FROM users WHERE folded = replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(threads.owner, 'a', 'A'), 'b', 'B'), 'c', 'C'), 'd', 'D'), 'e', 'E'), 'f', 'F'), 'g', 'G'), 'h', 'H'), 'i', 'I'), 'j', 'J'), 'k', 'K'), 'l', 'L'), 'm', 'M'), 'n', 'N'), 'o', 'O'), 'p', 'P'), 'q', 'Q'), 'r', 'R'), 's', 'S'), 't', 'T'), 'u', 'U'), 'v', 'V'), 'w', 'W'), 'x', 'X'), 'y', 'Y'), 'z', 'Z'))
    WHERE owner <> '' AND EXISTS (SELECT 1 FROM users WHERE login <> threads.owner AND folded = replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(threads.owner, 'a', 'A'), 'b', 'B'), 'c', 'C'), 'd', 'D'), 'e', 'E'), 'f', 'F'), 'g', 'G'), 'h', 'H'), 'i', 'I'), 'j', 'J'), 'k', 'K'), 'l', 'L'), 'm', 'M'), 'n', 'N'), 'o', 'O'), 'p', 'P'), 'q', 'Q'), 'r', 'R'), 's', 'S'), 't', 'T'), 'u', 'U'), 'v', 'V'), 'w', 'W'), 'x', 'X'), 'y', 'Y'), 'z', 'Z'));
