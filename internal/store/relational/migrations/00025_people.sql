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
