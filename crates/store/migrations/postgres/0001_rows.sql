-- Ids and digests are text, times are microseconds since 1970, documents are JSON in text.

CREATE TABLE counters (
    name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL CHECK (value >= 0)
);

INSERT INTO counters (name, value) VALUES ('fence', 0);

CREATE TABLE kernels (
    name         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    digest       TEXT COLLATE "C" NOT NULL,
    size         BIGINT NOT NULL CHECK (size >= 0),
    arch         TEXT COLLATE "C" NOT NULL,
    release      TEXT COLLATE "C" NOT NULL,
    build_id     TEXT COLLATE "C",
    image_digest TEXT COLLATE "C" NOT NULL,
    added_at     BIGINT NOT NULL
);

CREATE TABLE boards (
    name    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    arch    TEXT COLLATE "C" NOT NULL,
    tags    TEXT COLLATE "C" NOT NULL,
    facts   TEXT COLLATE "C" NOT NULL,
    holder  TEXT COLLATE "C",
    state   TEXT COLLATE "C" NOT NULL,
    seen_at BIGINT NOT NULL,
    version BIGINT NOT NULL CHECK (version >= 1)
);

CREATE TABLE jobs (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner      TEXT COLLATE "C" NOT NULL,
    variants   TEXT COLLATE "C" NOT NULL,
    rounds     BIGINT NOT NULL CHECK (rounds >= 1),
    plan       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    -- The number of events in the job's feed; the next one gets this plus one.
    events     BIGINT NOT NULL CHECK (events >= 0)
);

CREATE TABLE job_slots (
    job    TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
    slot   BIGINT NOT NULL CHECK (slot >= 0),
    -- What was asked for; stays as it was when a board is bound.
    wanted TEXT COLLATE "C" NOT NULL,
    board  TEXT COLLATE "C",
    PRIMARY KEY (job, slot)
);

CREATE TABLE runs (
    id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    job      TEXT COLLATE "C" NOT NULL,
    slot     BIGINT NOT NULL,
    round    BIGINT NOT NULL CHECK (round >= 0),
    position BIGINT NOT NULL CHECK (position >= 0),
    variant  TEXT COLLATE "C" NOT NULL,
    state    TEXT COLLATE "C" NOT NULL,
    live     BIGINT NOT NULL CHECK (live IN (0, 1)),
    version  BIGINT NOT NULL CHECK (version >= 1),
    FOREIGN KEY (job, slot) REFERENCES job_slots (job, slot),
    UNIQUE (job, slot, position)
);

CREATE INDEX runs_live ON runs (job) WHERE live = 1;

CREATE TABLE attempts (
    run           TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    attempt       BIGINT NOT NULL CHECK (attempt >= 1),
    board         TEXT COLLATE "C" NOT NULL REFERENCES boards (name),
    fence         BIGINT NOT NULL UNIQUE,
    identity      TEXT COLLATE "C",
    started_at    BIGINT NOT NULL,
    ended_at      BIGINT,
    outcome       TEXT COLLATE "C",
    failure_class TEXT COLLATE "C",
    PRIMARY KEY (run, attempt),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);

CREATE TABLE agent_events (
    run         TEXT COLLATE "C" NOT NULL,
    attempt     BIGINT NOT NULL,
    seq         BIGINT NOT NULL CHECK (seq >= 1),
    fence       BIGINT NOT NULL,
    board_time  BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    body        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run, attempt, seq),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, attempt)
);

CREATE TABLE job_events (
    job   TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
    seq   BIGINT NOT NULL CHECK (seq >= 1),
    at    BIGINT NOT NULL,
    run   TEXT COLLATE "C" REFERENCES runs (id),
    board TEXT COLLATE "C",
    body  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (job, seq)
);

CREATE TABLE trials (
    run     TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    idx     BIGINT NOT NULL CHECK (idx >= 0),
    result  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run, attempt, idx),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, attempt)
);

CREATE TABLE artifacts (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    run        TEXT COLLATE "C" NOT NULL,
    attempt    BIGINT NOT NULL,
    -- -1 for artifacts of the whole run, because NULLs are never equal in a UNIQUE.
    trial      BIGINT NOT NULL CHECK (trial >= -1),
    name       TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    size       BIGINT NOT NULL CHECK (size >= 0),
    created_at BIGINT NOT NULL,
    UNIQUE (run, attempt, trial, name),
    FOREIGN KEY (run, attempt) REFERENCES attempts (run, attempt)
);

CREATE INDEX artifacts_kind ON artifacts (kind);

CREATE TABLE parses (
    artifact TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES artifacts (id),
    parser   TEXT COLLATE "C" NOT NULL,
    version  BIGINT NOT NULL CHECK (version >= 0),
    problem  TEXT COLLATE "C"
);

CREATE TABLE samples (
    artifact  TEXT COLLATE "C" NOT NULL REFERENCES parses (artifact),
    idx       BIGINT NOT NULL CHECK (idx >= 0),
    metric    TEXT COLLATE "C" NOT NULL,
    value     DOUBLE PRECISION NOT NULL,
    unit      TEXT COLLATE "C" NOT NULL,
    direction TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (artifact, idx)
);
