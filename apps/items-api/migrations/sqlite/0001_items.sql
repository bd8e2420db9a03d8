-- AUTOINCREMENT: the id of a deleted item never names another one.
CREATE TABLE items (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    value BOOLEAN NOT NULL DEFAULT FALSE CHECK (value IN (FALSE, TRUE))
);
