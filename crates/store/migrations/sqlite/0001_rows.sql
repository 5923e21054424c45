-- Ids and digests are text, times are microseconds since 1970, documents are JSON in text.

CREATE TABLE counters (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL CHECK (value >= 0)
) STRICT;

INSERT INTO counters (name, value) VALUES ('fence', 0);

CREATE TABLE kernels (
    name         TEXT NOT NULL PRIMARY KEY,
    digest       TEXT NOT NULL,
    size         INTEGER NOT NULL CHECK (size >= 0),
    arch         TEXT NOT NULL,
    release      TEXT NOT NULL,
    build_id     TEXT,
    image_digest TEXT NOT NULL,
    added_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE boards (
    name    TEXT NOT NULL PRIMARY KEY,
    arch    TEXT NOT NULL,
    tags    TEXT NOT NULL,
    facts   TEXT NOT NULL,
    holder  TEXT,
    state   TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1)
) STRICT;

CREATE TABLE jobs (
    id         TEXT NOT NULL PRIMARY KEY,
    owner      TEXT NOT NULL,
    variants   TEXT NOT NULL,
    rounds     INTEGER NOT NULL CHECK (rounds >= 1),
    plan       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- The number of events in the job's feed; the next one gets this plus one.
    events     INTEGER NOT NULL CHECK (events >= 0)
) STRICT;

CREATE TABLE job_slots (
    job    TEXT NOT NULL REFERENCES jobs (id),
    slot   INTEGER NOT NULL CHECK (slot >= 0),
    -- What was asked for; stays as it was when a board is bound.
    wanted TEXT NOT NULL,
    board  TEXT,
    PRIMARY KEY (job, slot)
) STRICT;

CREATE TABLE runs (
    id       TEXT NOT NULL PRIMARY KEY,
    job      TEXT NOT NULL,
    slot     INTEGER NOT NULL,
    round    INTEGER NOT NULL CHECK (round >= 0),
    position INTEGER NOT NULL CHECK (position >= 0),
    variant  TEXT NOT NULL,
    state    TEXT NOT NULL,
    live     INTEGER NOT NULL CHECK (live IN (0, 1)),
    version  INTEGER NOT NULL CHECK (version >= 1),
    FOREIGN KEY (job, slot) REFERENCES job_slots (job, slot),
    UNIQUE (job, slot, position)
) STRICT;

CREATE INDEX runs_live ON runs (job) WHERE live = 1;

CREATE TABLE attempts (
    run           TEXT NOT NULL REFERENCES runs (id),
    attempt       INTEGER NOT NULL CHECK (attempt >= 1),
    board         TEXT NOT NULL REFERENCES boards (name),
    fence         INTEGER NOT NULL UNIQUE,
    identity      TEXT,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    outcome       TEXT,
    failure_class TEXT,
    PRIMARY KEY (run, attempt),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT;

CREATE TABLE agent_events (
    run         TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    seq         INTEGER NOT NULL CHECK (seq >= 1),
    fence       INTEGER NOT NULL,
    board_time  INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    body        TEXT NOT NULL,
    PRIMARY KEY (run, attempt, seq),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, attempt)
) STRICT;

CREATE TABLE job_events (
    job   TEXT NOT NULL REFERENCES jobs (id),
    seq   INTEGER NOT NULL CHECK (seq >= 1),
    at    INTEGER NOT NULL,
    run   TEXT REFERENCES runs (id),
    board TEXT,
    body  TEXT NOT NULL,
    PRIMARY KEY (job, seq)
) STRICT;

CREATE TABLE trials (
    run     TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    idx     INTEGER NOT NULL CHECK (idx >= 0),
    result  TEXT NOT NULL,
    PRIMARY KEY (run, attempt, idx),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, attempt)
) STRICT;

CREATE TABLE artifacts (
    id         TEXT NOT NULL PRIMARY KEY,
    run        TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    -- -1 for artifacts of the whole run, because NULLs are never equal in a UNIQUE.
    trial      INTEGER NOT NULL CHECK (trial >= -1),
    name       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    digest     TEXT NOT NULL,
    size       INTEGER NOT NULL CHECK (size >= 0),
    created_at INTEGER NOT NULL,
    UNIQUE (run, attempt, trial, name),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, attempt)
) STRICT;

CREATE INDEX artifacts_kind ON artifacts (kind);

CREATE TABLE parses (
    artifact TEXT NOT NULL PRIMARY KEY REFERENCES artifacts (id),
    parser   TEXT NOT NULL,
    version  INTEGER NOT NULL CHECK (version >= 0),
    problem  TEXT
) STRICT;

CREATE TABLE samples (
    artifact  TEXT NOT NULL REFERENCES parses (artifact),
    idx       INTEGER NOT NULL CHECK (idx >= 0),
    metric    TEXT NOT NULL,
    value     REAL NOT NULL,
    unit      TEXT NOT NULL,
    direction TEXT NOT NULL,
    PRIMARY KEY (artifact, idx)
) STRICT;
