//! The promises of the rows, on SQLite and on PostgreSQL.

mod common;
mod scenarios;

use std::collections::BTreeSet;

use common::{Lab, postgres::Server};
use sqlx::{AnyConnection, Executor, Row, SqlSafeStr};

/// One test per scenario on SQLite, and one test that runs all of them on PostgreSQL, for
/// which starting a server is the long part.
macro_rules! scenarios {
    ($($module:ident :: $name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                crate::scenarios::$module::$name(&crate::Lab::sqlite()).await;
            })*
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn postgres() {
            let Some(mut server) = Server::start().await else {
                klab_testkit::skip("postgres", "PostgreSQL is not installed");
                return;
            };
            $(
                println!("{}", stringify!($name));
                scenarios::$module::$name(&Lab::postgres(server.database().await)).await;
            )*
            same_schema(&mut server).await;
        }
    };
}

scenarios! {
    things::every_statement_is_understood,
    things::kernels_keep_their_name,
    things::kernels_come_in_pages,
    things::boards_are_swapped_by_version,
    things::fences_only_grow,
    things::broken_rows_are_named,
    things::tables_of_a_newer_version_are_refused,
    jobs::a_job_comes_back_as_it_was_submitted,
    jobs::jobs_are_listed_newest_first,
    jobs::only_jobs_with_live_runs_are_live,
    jobs::a_slot_is_bound_once,
    jobs::feeds_have_no_gaps,
    jobs::everything_survives_a_restart,
    runs::a_transition_happens_whole_or_not_at_all,
    runs::an_ended_run_stays_ended,
    runs::one_of_many_assignments_wins,
    runs::events_are_recorded_once,
    runs::a_refused_event_can_come_again,
    runs::events_of_unknown_attempts_are_refused,
    results::the_last_attempt_counts,
    results::infrastructure_failures_give_no_samples,
    results::an_attempt_without_an_end_is_replaced_too,
    results::artifacts_are_recorded_once,
    results::samples_are_replaced_by_a_newer_parser,
    results::unread_artifacts_are_found,
    results::kernel_reports_come_back_as_they_were_read,
    things::the_newest_configuration_of_a_board_is_kept,
    builds::trees_keep_their_source,
    builds::a_build_comes_back_as_it_was_asked_for,
    builds::builds_are_changed_by_version,
    builds::builds_are_listed_newest_first,
    builds::inputs_are_remembered_with_their_kernel,
    builds::the_log_of_a_build_is_an_object,
}

/// Every column as `table.column type [not null] [key n]`, every reference and every
/// uniqueness, in the words of the SQLite migration.
async fn rows_of(connection: &mut AnyConnection, sql: &'static str) -> BTreeSet<String> {
    let rows = connection
        .fetch_all(sqlx::query(sql.into_sql_str()))
        .await
        .expect("the catalogue can be read");
    rows.iter()
        .map(|row| row.get::<String, _>(0).to_lowercase().replace('"', ""))
        .collect()
}

const SQLITE_COLUMNS: &str = "SELECT m.name || '.' || c.name || ' ' || c.type
    || CASE WHEN c.\"notnull\" = 1 THEN ' not null' ELSE '' END
    || CASE WHEN c.pk > 0 THEN ' key ' || c.pk ELSE '' END
    FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND m.name NOT LIKE '%sqlx%'";
const POSTGRES_COLUMNS: &str = "SELECT CAST(c.table_name || '.' || c.column_name || ' '
    || CASE c.data_type WHEN 'bigint' THEN 'integer' WHEN 'bytea' THEN 'blob'
        WHEN 'double precision' THEN 'real'
        ELSE c.data_type END
    || CASE WHEN c.is_nullable = 'NO' THEN ' not null' ELSE '' END
    || COALESCE((SELECT ' key ' || k.ordinal_position
        FROM information_schema.key_column_usage k
        JOIN information_schema.table_constraints t ON t.constraint_name = k.constraint_name
        WHERE t.constraint_type = 'PRIMARY KEY' AND k.table_name = c.table_name
        AND k.column_name = c.column_name), '') AS TEXT)
    FROM information_schema.columns c
    WHERE c.table_schema = 'public' AND c.table_name NOT LIKE '%sqlx%'";
const SQLITE_REFERENCES: &str = "SELECT m.name || '(' || group_concat(f.\"from\", ', ')
    || ') -> ' || f.\"table\" || '(' || group_concat(f.\"to\", ', ') || ')'
    FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
    WHERE m.type = 'table' GROUP BY m.name, f.id";
const POSTGRES_REFERENCES: &str = "SELECT CAST(conrelid::regclass || regexp_replace(
    regexp_replace(pg_get_constraintdef(oid), 'FOREIGN KEY ', ''), ' REFERENCES ', ' -> ') AS TEXT)
    FROM pg_constraint WHERE contype = 'f'";
const SQLITE_UNIQUE: &str = "SELECT m.name || '(' || group_concat(x.name, ', ') || ')'
    FROM sqlite_master m JOIN pragma_index_list(m.name) i JOIN pragma_index_info(i.name) x
    WHERE m.type = 'table' AND i.origin = 'u' GROUP BY m.name, i.name";
const POSTGRES_UNIQUE: &str = "SELECT CAST(conrelid::regclass ||
    regexp_replace(pg_get_constraintdef(oid), 'UNIQUE ', '') AS TEXT)
    FROM pg_constraint WHERE contype = 'u' AND connamespace = 'public'::regnamespace";
const SQLITE_INDEXES: &str = "SELECT m.name || ' ' || i.name || ' ' || i.\"unique\" || ' '
    || i.partial FROM sqlite_master m JOIN pragma_index_list(m.name) i
    WHERE m.type = 'table' AND i.origin = 'c'";
const POSTGRES_INDEXES: &str = "SELECT CAST(indrelid::regclass || ' ' || indexrelid::regclass
    || ' ' || CASE WHEN indisunique THEN 1 ELSE 0 END
    || ' ' || CASE WHEN indpred IS NULL THEN 0 ELSE 1 END AS TEXT)
    FROM pg_index WHERE indrelid::regclass::text IN
        (SELECT CAST(table_name AS TEXT) FROM information_schema.tables
         WHERE table_schema = 'public' AND table_name NOT LIKE '%sqlx%')
    AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = indexrelid)";

async fn same_schema(server: &mut Server) {
    let (lite, big) = (Lab::sqlite(), Lab::postgres(server.database().await));
    let _stores = (lite.open().await, big.open().await);
    let mut lite = lite.connection().await;
    let mut big = big.connection().await;
    for (on_sqlite, on_postgres, at_least) in [
        (SQLITE_COLUMNS, POSTGRES_COLUMNS, 80),
        (SQLITE_REFERENCES, POSTGRES_REFERENCES, 10),
        (SQLITE_UNIQUE, POSTGRES_UNIQUE, 3),
        (SQLITE_INDEXES, POSTGRES_INDEXES, 2),
    ] {
        let left = rows_of(&mut lite, on_sqlite).await;
        let right = rows_of(&mut big, on_postgres).await;
        let differences: Vec<_> = left.symmetric_difference(&right).collect();
        assert!(differences.is_empty(), "{differences:#?}");
        assert!(left.len() >= at_least, "only {}: {left:#?}", left.len());
    }
}

#[tokio::test]
async fn a_folder_has_one_controller() {
    let lab = Lab::sqlite();
    let first = lab.open().await;
    let error = klab_store::Store::open(&lab.location)
        .await
        .expect_err("it is open");
    assert!(error.to_string().contains("another controller"), "{error}");
    drop(first);
    lab.open().await;
}
