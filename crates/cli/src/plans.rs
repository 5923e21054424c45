//! `klab plan`.

use klab_config::{MAX_FILE_BYTES, builtin_plan, builtin_plans, parse_plan_bytes};
use serde_json::json;

use crate::args::{Global, PlanCommand};
use crate::exit::{CliError, ExitCode};
use crate::{files, output};

pub(crate) fn run(global: &Global, command: PlanCommand) -> Result<ExitCode, CliError> {
    match command {
        PlanCommand::Check { file } => {
            let name = file.display().to_string();
            let bytes = files::read(&file, MAX_FILE_BYTES as u64)
                .map_err(|error| CliError::usage(format!("cannot read {name}: {error}")))?;
            let plan = parse_plan_bytes(&name, &bytes)
                .map_err(|problems| CliError::bad_plan(&name, &problems))?;
            if global.json {
                output::json(&json!({ "file": name, "plan": plan.name.as_str(), "ok": true }))?;
            } else {
                output::line(format!(
                    "{name}: plan {} is good: {} workload(s), {} trial(s) per run",
                    plan.name,
                    plan.workloads.len(),
                    plan.trial_count()
                ))?;
            }
        }
        PlanCommand::Show { name } => {
            let text = builtin_plan(&name).map_err(CliError::usage)?;
            if global.json {
                output::json(&json!({ "name": name, "text": text }))?;
            } else {
                output::line(text)?;
            }
        }
        PlanCommand::List if global.json => {
            let names: Vec<&str> = builtin_plans().iter().map(|(name, _)| *name).collect();
            output::json(&json!(names))?;
        }
        PlanCommand::List => {
            for (name, _) in builtin_plans() {
                output::line(name)?;
            }
        }
    }
    Ok(ExitCode::Done)
}
