-- What kernels reported in their logs.

CREATE TABLE kernel_reports (
    artifact   TEXT NOT NULL REFERENCES parses (artifact),
    idx        INTEGER NOT NULL CHECK (idx >= 0),
    -- Whether the run's own kernel said it, and not another one whose boot is in the log.
    candidate  INTEGER NOT NULL CHECK (candidate IN (0, 1)),
    release    TEXT,
    kind       TEXT NOT NULL,
    title      TEXT NOT NULL,
    function   TEXT,
    first_line INTEGER NOT NULL CHECK (first_line >= 1),
    last_line  INTEGER NOT NULL CHECK (last_line >= first_line),
    times      INTEGER NOT NULL CHECK (times >= 1),
    quote      TEXT NOT NULL,
    PRIMARY KEY (artifact, idx)
) STRICT;
