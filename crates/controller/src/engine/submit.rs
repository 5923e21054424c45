//! New jobs: everything is checked, everything that is wrong is said at once.

use std::collections::{BTreeMap, BTreeSet};

use klab_model::{
    Arch, Board, BoardName, BoardSelector, BoardSlot, Job, KernelName, Owner, Plan, TagSelector,
    Variant, VariantName,
};
use klab_store::{JobRecord, PageRequest};

use super::{Engine, EngineError, Wanted};

/// The most rounds of a job.
const MAX_ROUNDS: u32 = 1000;
/// The most runs of a job.
const MAX_RUNS: u64 = 100_000;

/// A submission as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    pub(crate) owner: String,
    /// Name and kernel of each variant.
    pub(crate) variants: Vec<(String, String)>,
    pub(crate) boards: String,
    pub(crate) rounds: u32,
    pub(crate) plan_file: String,
    pub(crate) plan_text: String,
}

/// What is wrong with a submission.
#[derive(Default)]
struct Violations(Vec<(String, String)>);

impl Violations {
    fn add(&mut self, field: impl Into<String>, problem: impl ToString) {
        self.0.push((field.into(), problem.to_string()));
    }

    fn keep<T, E: ToString>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(field, error)).ok()
    }
}

impl Engine {
    /// Accepts a job or says everything that is wrong with it.
    pub(crate) async fn submit(&self, submission: Submission) -> Result<JobRecord, EngineError> {
        let mut wrong = Violations::default();
        let owner = wrong.keep("owner", Owner::parse(&submission.owner));
        let plan = check_plan(&submission, &mut wrong);
        check_rounds(submission.rounds, &mut wrong);
        let variants = self
            .check_variants(&submission.variants, &mut wrong)
            .await?;
        let arch = common_arch(&variants, &mut wrong);
        let boards = self.check_boards(&submission, arch, &mut wrong).await?;
        check_size(
            &submission,
            boards.as_deref().unwrap_or_default(),
            &mut wrong,
        );
        let (Some(owner), Some(plan), Some(boards), true) =
            (owner, plan, boards, wrong.0.is_empty())
        else {
            return Err(EngineError::BadRequest(wrong.0));
        };
        let job = Job {
            id: self.new_id(),
            owner,
            variants: variants.into_iter().map(|(variant, _)| variant).collect(),
            boards,
            rounds: submission.rounds,
            plan,
            created_at: self.now(),
        };
        let runs = klab_sched::expand(&job, || self.new_id());
        self.store.create_job(&job, &runs).await?;
        self.feed_changed();
        self.assignable.notify_one();
        Ok(self.store.job(job.id).await?)
    }

    /// The variants whose name and kernel are right.
    async fn check_variants(
        &self,
        variants: &[(String, String)],
        wrong: &mut Violations,
    ) -> Result<Vec<(Variant, Arch)>, EngineError> {
        if variants.is_empty() {
            wrong.add("variants", "at least one NAME=KERNEL is needed");
        }
        let mut good = Vec::new();
        let mut names = BTreeSet::new();
        for (index, (name, kernel)) in variants.iter().enumerate() {
            let field = format!("variants[{index}].name");
            let name = wrong.keep(&field, VariantName::parse(name));
            let repeated = name
                .as_ref()
                .is_some_and(|name| !names.insert(name.clone()));
            if let (true, Some(name)) = (repeated, &name) {
                wrong.add(field, format!("variant {name} is given twice"));
            }
            let field = format!("variants[{index}].kernel");
            let kernel = self.check_kernel(kernel, &field, wrong).await?;
            if let (Some(name), Some((kernel, arch))) = (name, kernel) {
                good.push((Variant { name, kernel }, arch));
            }
        }
        Ok(good)
    }

    /// A kernel that the lab has or will have, and its architecture.
    async fn check_kernel(
        &self,
        name: &str,
        field: &str,
        wrong: &mut Violations,
    ) -> Result<Option<(KernelName, Arch)>, EngineError> {
        let Some(name) = wrong.keep(field, KernelName::parse(name)) else {
            return Ok(None);
        };
        match self.wanted(&name).await? {
            Some(Wanted::Ready(arch) | Wanted::Building(arch, _)) => Ok(Some((name, arch))),
            Some(Wanted::Never(failure)) => {
                let why = failure.reason;
                wrong.add(field, format!("kernel {name} was not built: {why}"));
                Ok(None)
            }
            None => {
                let known = self.kernel_names().await?;
                wrong.add(field, unknown("kernel", name.as_str(), &known, ADD_KERNEL));
                Ok(None)
            }
        }
    }

    async fn kernel_names(&self) -> Result<Vec<String>, EngineError> {
        let page = PageRequest::first(PageRequest::MAX_SIZE);
        let kernels = self.store.list_kernels(&page).await?;
        Ok(kernels.items.into_iter().map(|k| k.name.into()).collect())
    }

    async fn check_boards(
        &self,
        submission: &Submission,
        arch: Option<(Arch, KernelName)>,
        wrong: &mut Violations,
    ) -> Result<Option<Vec<BoardSlot>>, EngineError> {
        let Some(selector) = wrong.keep("boards", BoardSelector::parse(&submission.boards)) else {
            return Ok(None);
        };
        let known: BTreeMap<BoardName, Board> = self
            .store
            .list_boards()
            .await?
            .into_iter()
            .map(|board| (board.value.name.clone(), board.value))
            .collect();
        match &selector {
            BoardSelector::Named(names) => {
                for name in names {
                    check_named(name, &known, arch.as_ref(), wrong);
                }
            }
            BoardSelector::Tagged(tags) => check_tagged(tags, &known, arch.as_ref(), wrong),
        }
        Ok(Some(BoardSlot::of(&selector)))
    }
}

const ADD_KERNEL: &str = "add it with `klab kernel add NAME PATH`";
const CONNECT_BOARD: &str = "a board is known once its agent has connected";

fn check_plan(submission: &Submission, wrong: &mut Violations) -> Option<Plan> {
    let file = match submission.plan_file.as_str() {
        "" => "plan",
        file => file,
    };
    match klab_config::parse_plan(file, &submission.plan_text) {
        Ok(plan) => Some(plan),
        Err(diagnostics) => {
            for diagnostic in &diagnostics {
                wrong.add("plan", diagnostic);
            }
            if diagnostics.left_out() > 0 {
                wrong.add("plan", format!("and {} more", diagnostics.left_out()));
            }
            None
        }
    }
}

fn check_rounds(rounds: u32, wrong: &mut Violations) {
    if !(1..=MAX_ROUNDS).contains(&rounds) {
        let problem = format!("found {rounds}; expected 1 to {MAX_ROUNDS}");
        wrong.add("rounds", problem);
    }
}

fn check_size(submission: &Submission, boards: &[BoardSlot], wrong: &mut Violations) {
    let variants = submission.variants.len() as u64;
    let slots = boards.len() as u64;
    let runs = variants
        .saturating_mul(slots)
        .saturating_mul(u64::from(submission.rounds));
    if runs > MAX_RUNS {
        let problem = format!(
            "{variants} variants on {slots} boards in {} rounds are {runs} runs; a job has at \
             most {MAX_RUNS}: ask for fewer rounds, or split it",
            submission.rounds
        );
        wrong.add("rounds", problem);
    }
}

/// The architecture that all kernels share, and the first kernel.
fn common_arch(variants: &[(Variant, Arch)], wrong: &mut Violations) -> Option<(Arch, KernelName)> {
    let (first, arch) = variants.first()?;
    if variants.iter().all(|(_, other)| other == arch) {
        return Some((*arch, first.kernel.clone()));
    }
    let each: Vec<String> = variants
        .iter()
        .map(|(variant, arch)| format!("{} is {arch}", variant.kernel))
        .collect();
    let problem = format!(
        "kernels of one job must share an architecture, or no board could run them all: {}",
        each.join(", ")
    );
    wrong.add("variants", problem);
    None
}

fn check_named(
    name: &BoardName,
    known: &BTreeMap<BoardName, Board>,
    arch: Option<&(Arch, KernelName)>,
    wrong: &mut Violations,
) {
    match (known.get(name), arch) {
        (None, _) => {
            let names: Vec<String> = known.keys().map(ToString::to_string).collect();
            wrong.add(
                "boards",
                unknown("board", name.as_str(), &names, CONNECT_BOARD),
            );
        }
        (Some(board), Some((arch, kernel))) if board.arch != *arch => {
            let problem = format!("kernel {kernel} is {arch}, board {name} is {}", board.arch);
            wrong.add("boards", problem);
        }
        (Some(_), _) => {}
    }
}

fn check_tagged(
    tags: &TagSelector,
    known: &BTreeMap<BoardName, Board>,
    arch: Option<&(Arch, KernelName)>,
    wrong: &mut Violations,
) {
    let right_arch = |board: &Board| arch.is_none_or(|(arch, _)| board.arch == *arch);
    let fitting: Vec<&Board> = known
        .values()
        .filter(|board| tags.matches(board.arch, &board.tags))
        .collect();
    if fitting.iter().any(|board| right_arch(board)) {
        return;
    }
    let wanted = BoardSelector::Tagged(tags.clone());
    let problem = match (arch, fitting.first()) {
        (Some((arch, kernel)), Some(board)) => format!(
            "kernel {kernel} is {arch}, but of the boards with {wanted} none is: board {} is {}",
            board.name, board.arch
        ),
        _ => {
            let boards: Vec<String> = known.values().map(describe).collect();
            format!(
                "no known board has {wanted}; {}",
                listed("boards", &boards, CONNECT_BOARD)
            )
        }
    };
    wrong.add("boards", problem);
}

fn describe(board: &Board) -> String {
    let tags = board
        .tags
        .iter()
        .map(|(key, value)| format!(" {key}={value}"));
    format!(
        "{} (arch={}{})",
        board.name,
        board.arch,
        tags.collect::<String>()
    )
}

/// `there is no kernel rt; did you mean rt-6.1? known kernels: ...`
fn unknown(what: &str, name: &str, known: &[String], mend: &str) -> String {
    let guess =
        nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!(
        "there is no {what} {name}{guess}; {}",
        listed(&format!("{what}s"), known, mend)
    )
}

fn listed(what: &str, known: &[String], mend: &str) -> String {
    const SHOWN: usize = 20;
    if known.is_empty() {
        return format!("no {what} are known yet: {mend}");
    }
    let shown = known.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    let more = match known.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("known {what}: {}{more} ({mend})", shown.join(", "))
}

/// The known name that was probably meant.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known.as_str()))
        .filter(|(distance, known)| *distance <= known.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}
