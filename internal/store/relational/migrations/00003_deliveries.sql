-- +goose Up

CREATE TABLE deliveries (
    forge TEXT   NOT NULL,
    id    TEXT   NOT NULL,
    at    BIGINT NOT NULL,
    PRIMARY KEY (forge, id)
);
CREATE INDEX deliveries_by_time ON deliveries (at);
