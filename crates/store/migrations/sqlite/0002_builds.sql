-- Trees, and the kernels that are built of them.

CREATE TABLE trees (
    name     TEXT NOT NULL PRIMARY KEY,
    source   TEXT NOT NULL,
    added_at INTEGER NOT NULL
) STRICT;

CREATE TABLE builds (
    id         TEXT NOT NULL PRIMARY KEY,
    tree       TEXT NOT NULL,
    spec       TEXT NOT NULL,
    state      TEXT NOT NULL,
    live       INTEGER NOT NULL CHECK (live IN (0, 1)),
    version    INTEGER NOT NULL CHECK (version >= 1),
    created_at INTEGER NOT NULL,
    -- The number of events in the build's feed; the next one gets this plus one.
    events     INTEGER NOT NULL CHECK (events >= 0),
    -- The log, once the build has ended.
    log        TEXT,
    log_size   INTEGER,
    CHECK ((log IS NULL) = (log_size IS NULL))
) STRICT;

CREATE INDEX builds_live ON builds (id) WHERE live = 1;

-- The names of kernels that a build will add: known before there is a kernel.
CREATE TABLE build_targets (
    kernel TEXT NOT NULL PRIMARY KEY,
    build  TEXT NOT NULL REFERENCES builds (id),
    idx    INTEGER NOT NULL CHECK (idx >= 0),
    UNIQUE (build, idx)
) STRICT;

CREATE TABLE build_events (
    build TEXT NOT NULL REFERENCES builds (id),
    seq   INTEGER NOT NULL CHECK (seq >= 1),
    at    INTEGER NOT NULL,
    body  TEXT NOT NULL,
    PRIMARY KEY (build, seq)
) STRICT;

-- What was built from which inputs: the same inputs are never built twice.
CREATE TABLE kernel_keys (
    build_key TEXT NOT NULL PRIMARY KEY,
    kernel    TEXT NOT NULL REFERENCES kernels (name)
) STRICT;
