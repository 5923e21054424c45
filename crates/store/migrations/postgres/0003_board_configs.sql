-- The configuration files of the boards' known-good kernels.

CREATE TABLE board_configs (
    board   TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES boards (name),
    release TEXT COLLATE "C" NOT NULL,
    digest  TEXT COLLATE "C" NOT NULL,
    content BYTEA NOT NULL
);
