//! `klab tree`.

use std::path::Path;

use klab_model::TreeSource;
use klab_proto::v1;
use klab_report::Table;
use serde_json::{Value, json};

use crate::args::{Global, TreeCommand};
use crate::client::{Client, every_page};
use crate::exit::{CliError, ExitCode};
use crate::{json as j, output};

pub(crate) async fn run(global: &Global, command: TreeCommand) -> Result<ExitCode, CliError> {
    let client = Client::connect(global).await?;
    match command {
        TreeCommand::Add { name, source } => {
            let tree = add(&client, name.as_str(), source_of(&source)?).await?;
            if global.json {
                output::json(&json(&tree))?;
            } else {
                output::line(format!("{}: {}", tree.name, tree.source))?;
            }
        }
        TreeCommand::List => list(global, &client).await?,
        TreeCommand::Remove { name } => {
            let name = name.to_string();
            client
                .trees()
                .delete_tree(v1::DeleteTreeRequest { name })
                .await?;
        }
    }
    Ok(ExitCode::Done)
}

/// A URL as it is, a folder as its absolute path.
fn source_of(text: &str) -> Result<TreeSource, CliError> {
    let bad = |error| CliError::usage(format!("{error}"));
    if text.contains("://") {
        return TreeSource::parse(text).map_err(bad);
    }
    let path = Path::new(text);
    let absolute = path.canonicalize().map_err(|error| {
        CliError::usage(format!(
            "{text}: {error}; expected a folder of a git tree, or a URL"
        ))
    })?;
    if !(absolute.join(".git").exists() || absolute.join("objects").is_dir()) {
        return Err(CliError::usage(format!(
            "{}: no git tree: expected the folder that holds .git, or a bare repository",
            absolute.display()
        )));
    }
    TreeSource::parse(&absolute.to_string_lossy()).map_err(bad)
}

/// Adds a tree, or gives it as it was added before.
pub(crate) async fn add(
    client: &Client,
    name: &str,
    source: TreeSource,
) -> Result<v1::Tree, CliError> {
    let request = v1::CreateTreeRequest {
        name: name.to_owned(),
        source: source.into(),
    };
    let answer = client.trees().create_tree(request).await?.into_inner();
    answer
        .tree
        .ok_or_else(|| CliError::infrastructure("the controller did not describe the tree"))
}

/// Every tree.
pub(crate) async fn all(client: &Client) -> Result<Vec<v1::Tree>, CliError> {
    every_page(async |page_token| {
        let request = v1::ListTreesRequest {
            page_size: 200,
            page_token,
        };
        let page = client.trees().list_trees(request).await?.into_inner();
        Ok((page.trees, page.next_page_token))
    })
    .await
}

async fn list(global: &Global, client: &Client) -> Result<(), CliError> {
    let trees = all(client).await?;
    if global.json {
        return output::json(&trees.iter().map(json).collect());
    }
    let mut table = Table::new(["NAME", "SOURCE"]);
    for tree in &trees {
        table.row([tree.name.clone(), tree.source.clone()]);
    }
    output::line(table.to_string())
}

fn json(tree: &v1::Tree) -> Value {
    json!({
        "name": tree.name,
        "source": tree.source,
        "added_at": j::time(tree.added_at.as_ref()),
    })
}
