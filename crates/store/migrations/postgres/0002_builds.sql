-- Trees, and the kernels that are built of them.

CREATE TABLE trees (
    name     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    source   TEXT COLLATE "C" NOT NULL,
    added_at BIGINT NOT NULL
);

CREATE TABLE builds (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tree       TEXT COLLATE "C" NOT NULL,
    spec       TEXT COLLATE "C" NOT NULL,
    state      TEXT COLLATE "C" NOT NULL,
    live       BIGINT NOT NULL CHECK (live IN (0, 1)),
    version    BIGINT NOT NULL CHECK (version >= 1),
    created_at BIGINT NOT NULL,
    -- The number of events in the build's feed; the next one gets this plus one.
    events     BIGINT NOT NULL CHECK (events >= 0),
    -- The log, once the build has ended.
    log        TEXT COLLATE "C",
    log_size   BIGINT,
    CHECK ((log IS NULL) = (log_size IS NULL))
);

CREATE INDEX builds_live ON builds (id) WHERE live = 1;

-- The names of kernels that a build will add: known before there is a kernel.
CREATE TABLE build_targets (
    kernel TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    build  TEXT COLLATE "C" NOT NULL REFERENCES builds (id),
    idx    BIGINT NOT NULL CHECK (idx >= 0),
    UNIQUE (build, idx)
);

CREATE TABLE build_events (
    build TEXT COLLATE "C" NOT NULL REFERENCES builds (id),
    seq   BIGINT NOT NULL CHECK (seq >= 1),
    at    BIGINT NOT NULL,
    body  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (build, seq)
);

-- What was built from which inputs: the same inputs are never built twice.
CREATE TABLE kernel_keys (
    build_key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kernel    TEXT COLLATE "C" NOT NULL REFERENCES kernels (name)
);
