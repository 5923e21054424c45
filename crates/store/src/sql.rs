//! Every SQL statement, once: the same text for SQLite and PostgreSQL.
//!
//! Common ground of both: `$1` parameters, `ON CONFLICT`, `RETURNING`, partial indexes.
//! A test prepares all of [`ALL`] on both engines.

/// Defines the constants and the list of them.
macro_rules! statements {
    ($($name:ident = $sql:literal;)*) => {
        $(pub(crate) const $name: &str = $sql;)*

        /// Name and text of every statement.
        pub const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

statements! {
    FENCE_NEXT = "UPDATE counters SET value = value + 1 WHERE name = 'fence' RETURNING value";

    KERNEL_ADD = "INSERT INTO kernels
        (name, digest, size, arch, release, build_id, image_digest, added_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO NOTHING";
    KERNEL_GET = "SELECT name, digest, size, arch, release, build_id, image_digest, added_at
        FROM kernels WHERE name = $1";
    KERNELS_PAGE = "SELECT name, digest, size, arch, release, build_id, image_digest, added_at
        FROM kernels WHERE name > $1 ORDER BY name LIMIT $2";

    BOARD_ADD = "INSERT INTO boards (name, arch, tags, facts, holder, state, seen_at, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 1) ON CONFLICT (name) DO NOTHING";
    BOARD_UPDATE = "UPDATE boards SET arch = $2, tags = $3, facts = $4, holder = $5, state = $6,
        seen_at = CASE WHEN seen_at > $7 THEN seen_at ELSE $7 END, version = version + 1 WHERE name = $1 AND version = $8";
    BOARD_SEEN = "UPDATE boards SET seen_at = $2 WHERE name = $1 AND seen_at < $2";
    BOARD_GET = "SELECT name, arch, tags, facts, holder, state, seen_at, version
        FROM boards WHERE name = $1";
    BOARDS_ALL = "SELECT name, arch, tags, facts, holder, state, seen_at, version
        FROM boards ORDER BY name";

    BOARD_CONFIG_SET = "INSERT INTO board_configs (board, release, digest, content)
        VALUES ($1, $2, $3, $4) ON CONFLICT (board) DO UPDATE
        SET release = excluded.release, digest = excluded.digest, content = excluded.content";
    BOARD_CONFIG_DIGEST = "SELECT board, digest FROM board_configs WHERE board = $1";
    BOARD_CONFIG_GET = "SELECT board, release, content FROM board_configs WHERE board = $1";

    JOB_ADD = "INSERT INTO jobs (id, owner, variants, rounds, plan, created_at, events)
        VALUES ($1, $2, $3, $4, $5, $6, 0) ON CONFLICT (id) DO NOTHING";
    JOB_GET = "SELECT id, owner, variants, rounds, plan, created_at FROM jobs WHERE id = $1";
    JOBS_PAGE = "SELECT id, owner, variants, rounds, plan, created_at
        FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT $2";
    JOBS_LIVE = "SELECT id, owner, variants, rounds, plan, created_at FROM jobs
        WHERE id IN (SELECT job FROM runs WHERE live = 1) ORDER BY id";
    SLOT_ADD = "INSERT INTO job_slots (job, slot, wanted, board) VALUES ($1, $2, $3, $4)";
    SLOTS_OF_JOB = "SELECT job, slot, wanted, board FROM job_slots
        WHERE job = $1 ORDER BY slot";
    SLOT_BIND = "UPDATE job_slots SET board = $3
        WHERE job = $1 AND slot = $2 AND (board IS NULL OR board = $3)";

    RUN_ADD = "INSERT INTO runs (id, job, slot, round, position, variant, state, live, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1)";
    RUN_GET = "SELECT id, job, slot, round, position, variant, state, version
        FROM runs WHERE id = $1";
    RUNS_OF_JOB = "SELECT id, job, slot, round, position, variant, state, version
        FROM runs WHERE job = $1 ORDER BY slot, position";
    RUN_UPDATE = "UPDATE runs SET state = $3, live = $4, version = version + 1
        WHERE id = $1 AND version = $2 AND live = 1";

    ATTEMPT_ADD = "INSERT INTO attempts (run, attempt, board, fence, started_at)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run, attempt) DO NOTHING";
    ATTEMPT_PROVED = "UPDATE attempts SET identity = $3 WHERE run = $1 AND attempt = $2";
    ATTEMPT_END = "UPDATE attempts SET ended_at = $3, outcome = $4, failure_class = $5
        WHERE run = $1 AND attempt = $2 AND ended_at IS NULL";
    ATTEMPT_GET = "SELECT run, attempt, board, fence, identity, started_at, ended_at, outcome
        FROM attempts WHERE run = $1 AND attempt = $2";
    ATTEMPTS_OF_JOB = "SELECT a.run, a.attempt, a.board, a.fence, a.identity, a.started_at,
        a.ended_at, a.outcome FROM attempts a JOIN runs r ON r.id = a.run
        WHERE r.job = $1 ORDER BY r.slot, r.position, a.attempt";

    AGENT_EVENT_ADD = "INSERT INTO agent_events
        (run, attempt, seq, fence, board_time, recorded_at, body)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (run, attempt, seq) DO NOTHING";
    AGENT_EVENT_LAST = "SELECT COALESCE(MAX(seq), 0) AS seq FROM agent_events
        WHERE run = $1 AND attempt = $2";

    EVENT_SEQ = "UPDATE jobs SET events = events + 1 WHERE id = $1 RETURNING events";
    EVENT_ADD = "INSERT INTO job_events (job, seq, at, run, board, body)
        VALUES ($1, $2, $3, $4, $5, $6)";
    EVENTS_AFTER = "SELECT job, seq, at, run, board, body FROM job_events
        WHERE job = $1 AND seq > $2 ORDER BY seq LIMIT $3";

    TRIAL_ADD = "INSERT INTO trials (run, attempt, idx, result)
        VALUES ($1, $2, $3, $4) ON CONFLICT (run, attempt, idx) DO NOTHING";
    TRIALS_OF_JOB = "SELECT t.run, t.attempt, t.idx, t.result, r.variant, r.round, r.slot, a.board
        FROM trials t JOIN runs r ON r.id = t.run
        JOIN attempts a ON a.run = t.run AND a.attempt = t.attempt
        WHERE r.job = $1
        AND t.attempt = (SELECT MAX(l.attempt) FROM attempts l WHERE l.run = t.run)
        ORDER BY r.slot, r.position, t.idx";

    ARTIFACT_ADD = "INSERT INTO artifacts
        (id, run, attempt, trial, name, kind, digest, size, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (run, attempt, trial, name) DO NOTHING";
    ARTIFACT_GET = "SELECT id, run, attempt, trial, name, kind, digest, size, created_at
        FROM artifacts WHERE id = $1";
    ARTIFACT_FIND = "SELECT id, run, attempt, trial, name, kind, digest, size, created_at
        FROM artifacts WHERE run = $1 AND attempt = $2 AND trial = $3 AND name = $4";
    ARTIFACTS_OF_RUN = "SELECT id, run, attempt, trial, name, kind, digest, size, created_at
        FROM artifacts WHERE run = $1 ORDER BY attempt, trial, name";
    ARTIFACTS_OF_JOB = "SELECT a.id, a.run, a.attempt, a.trial, a.name, a.kind, a.digest, a.size,
        a.created_at FROM artifacts a JOIN runs r ON r.id = a.run
        WHERE r.job = $1 ORDER BY r.slot, r.position, a.attempt, a.trial, a.name";
    ARTIFACTS_UNPARSED = "SELECT a.id, a.run, a.attempt, a.trial, a.name, a.kind, a.digest, a.size,
        a.created_at FROM artifacts a
        WHERE a.kind = $1 AND NOT EXISTS (SELECT 1 FROM parses p
            WHERE p.artifact = a.id AND p.parser = $2 AND p.version = $3)
        ORDER BY a.id LIMIT $4";
    ATTEMPT_CONTEXT = "SELECT r.job, a.board FROM attempts a JOIN runs r ON r.id = a.run
        WHERE a.run = $1 AND a.attempt = $2";

    PARSE_SET = "INSERT INTO parses (artifact, parser, version, problem)
        VALUES ($1, $2, $3, $4) ON CONFLICT (artifact) DO UPDATE SET
        parser = excluded.parser, version = excluded.version, problem = excluded.problem";
    PARSE_PROBLEMS_OF_JOB = "SELECT p.artifact, p.parser, p.version, p.problem
        FROM parses p JOIN artifacts a ON a.id = p.artifact JOIN runs r ON r.id = a.run
        WHERE r.job = $1 AND p.problem IS NOT NULL
        ORDER BY r.slot, r.position, a.attempt, a.trial, a.name";
    SAMPLES_DELETE = "DELETE FROM samples WHERE artifact = $1";
    SAMPLE_ADD = "INSERT INTO samples (artifact, idx, metric, value, unit, direction)
        VALUES ($1, $2, $3, $4, $5, $6)";
    SAMPLES_OF_JOB = "SELECT s.artifact, s.idx, s.metric, s.value, s.unit, s.direction,
        f.run, f.attempt, f.trial, r.variant, r.round, r.slot, a.board, p.parser, p.version
        FROM samples s JOIN parses p ON p.artifact = s.artifact
        JOIN artifacts f ON f.id = s.artifact JOIN runs r ON r.id = f.run
        JOIN attempts a ON a.run = f.run AND a.attempt = f.attempt
        WHERE r.job = $1
        AND f.attempt = (SELECT MAX(l.attempt) FROM attempts l WHERE l.run = f.run)
        AND (a.failure_class IS NULL OR a.failure_class <> 'infrastructure')
        ORDER BY r.slot, r.position, f.trial, f.name, s.idx";

    KERNEL_REPORTS_DELETE = "DELETE FROM kernel_reports WHERE artifact = $1";
    KERNEL_REPORT_ADD = "INSERT INTO kernel_reports (artifact, idx, candidate, release, kind,
        title, function, first_line, last_line, times, quote)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    KERNEL_REPORTS_OF_JOB = "SELECT k.artifact, k.idx, k.candidate, k.release, k.kind, k.title,
        k.function, k.first_line, k.last_line, k.times, k.quote,
        f.run, f.attempt, f.name, r.variant
        FROM kernel_reports k JOIN artifacts f ON f.id = k.artifact JOIN runs r ON r.id = f.run
        WHERE r.job = $1
        ORDER BY r.slot, r.position, f.attempt, f.trial, f.name, k.idx";

    TREE_ADD = "INSERT INTO trees (name, source, added_at)
        VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";
    TREE_GET = "SELECT name, source, added_at FROM trees WHERE name = $1";
    TREES_ALL = "SELECT name, source, added_at FROM trees ORDER BY name";
    TREE_REMOVE = "DELETE FROM trees WHERE name = $1";

    BUILD_ADD = "INSERT INTO builds (id, tree, spec, state, live, version, created_at, events)
        VALUES ($1, $2, $3, $4, 1, 1, $5, 0) ON CONFLICT (id) DO NOTHING";
    BUILD_GET = "SELECT id, spec, state, version, log, log_size FROM builds WHERE id = $1";
    BUILDS_PAGE = "SELECT id, spec, state, version, log, log_size
        FROM builds WHERE id < $1 ORDER BY id DESC LIMIT $2";
    BUILDS_LIVE = "SELECT id, spec, state, version, log, log_size
        FROM builds WHERE live = 1 ORDER BY id";
    BUILD_OF_KERNEL = "SELECT b.id, b.spec, b.state, b.version, b.log, b.log_size, t.kernel, t.idx
        FROM build_targets t JOIN builds b ON b.id = t.build WHERE t.kernel = $1";
    BUILD_UPDATE = "UPDATE builds SET state = $3, live = $4, version = version + 1
        WHERE id = $1 AND version = $2 AND live = 1";
    BUILD_LOG_SET = "UPDATE builds SET log = $2, log_size = $3 WHERE id = $1";
    BUILD_TARGET_ADD = "INSERT INTO build_targets (kernel, build, idx)
        VALUES ($1, $2, $3) ON CONFLICT (kernel) DO NOTHING";
    BUILD_EVENT_SEQ = "UPDATE builds SET events = events + 1 WHERE id = $1 RETURNING events";
    BUILD_EVENT_ADD = "INSERT INTO build_events (build, seq, at, body) VALUES ($1, $2, $3, $4)";
    BUILD_EVENTS_AFTER = "SELECT build, seq, at, body FROM build_events
        WHERE build = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    KERNEL_KEY_ADD = "INSERT INTO kernel_keys (build_key, kernel)
        VALUES ($1, $2) ON CONFLICT (build_key) DO NOTHING";
    KERNEL_KEY_GET = "SELECT build_key, kernel FROM kernel_keys WHERE build_key = $1";
}

/// What every connection to SQLite is set to. Readers do not wait for the writer in WAL
/// mode; FULL keeps an acknowledged transaction through a power cut.
pub(crate) const SQLITE_SETUP: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 10000;";

/// Takes the lock of the one controller of a database, "klab" in ASCII, for this session.
pub(crate) const POSTGRES_LOCK: &str = "SELECT pg_try_advisory_lock(1802264930) AS locked";
/// Gives it back.
pub(crate) const POSTGRES_UNLOCK: &str = "SELECT pg_advisory_unlock(1802264930) AS unlocked";
