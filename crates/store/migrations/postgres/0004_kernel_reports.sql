-- What kernels reported in their logs.

CREATE TABLE kernel_reports (
    artifact   TEXT COLLATE "C" NOT NULL REFERENCES parses (artifact),
    idx        BIGINT NOT NULL CHECK (idx >= 0),
    -- Whether the run's own kernel said it, and not another one whose boot is in the log.
    candidate  BIGINT NOT NULL CHECK (candidate IN (0, 1)),
    release    TEXT COLLATE "C",
    kind       TEXT COLLATE "C" NOT NULL,
    title      TEXT COLLATE "C" NOT NULL,
    function   TEXT COLLATE "C",
    first_line BIGINT NOT NULL CHECK (first_line >= 1),
    last_line  BIGINT NOT NULL CHECK (last_line >= first_line),
    times      BIGINT NOT NULL CHECK (times >= 1),
    quote      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (artifact, idx)
);
