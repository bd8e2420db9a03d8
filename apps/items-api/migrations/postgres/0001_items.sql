-- An identity: the id of a deleted item never names another one.
CREATE TABLE items (
    id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    value BOOLEAN NOT NULL DEFAULT FALSE
);
