-- The configuration files of the boards' known-good kernels.

CREATE TABLE board_configs (
    board   TEXT NOT NULL PRIMARY KEY REFERENCES boards (name),
    release TEXT NOT NULL,
    digest  TEXT NOT NULL,
    content BLOB NOT NULL
) STRICT;
