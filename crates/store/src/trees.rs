//! Git trees of the lab.

use klab_model::{Tree, TreeName, to_micros};
use sqlx::any::AnyRow;

use crate::row::Cells;
use crate::{Store, StoreError, sql};

impl Store {
    /// Adds a tree. Adding the same one again gives the tree as it was added first.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] if the name stands for another source.
    pub async fn add_tree(&self, tree: &Tree) -> Result<Tree, StoreError> {
        sqlx::query(sql::TREE_ADD)
            .bind(tree.name.as_str())
            .bind(tree.source.as_str())
            .bind(to_micros(tree.added_at))
            .execute(self.writers())
            .await
            .map_err(StoreError::database("add a tree"))?;
        let stored = self.tree(&tree.name).await?;
        if stored.source == tree.source {
            Ok(stored)
        } else {
            Err(StoreError::AlreadyExists {
                what: "tree",
                name: tree.name.to_string(),
                existing: None,
            })
        }
    }

    /// The tree of that name.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn tree(&self, name: &TreeName) -> Result<Tree, StoreError> {
        let row = sqlx::query(sql::TREE_GET)
            .bind(name.as_str())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read a tree"))?
            .ok_or_else(|| StoreError::not_found("tree", name))?;
        read_tree(&row)
    }

    /// Every tree, by name.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn list_trees(&self) -> Result<Vec<Tree>, StoreError> {
        let rows = sqlx::query(sql::TREES_ALL)
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list trees"))?;
        rows.iter().map(read_tree).collect()
    }

    /// Forgets a tree; what was built of it stays.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn remove_tree(&self, name: &TreeName) -> Result<(), StoreError> {
        let done = sqlx::query(sql::TREE_REMOVE)
            .bind(name.as_str())
            .execute(self.writers())
            .await
            .map_err(StoreError::database("remove a tree"))?;
        match done.rows_affected() {
            0 => Err(StoreError::not_found("tree", name)),
            _ => Ok(()),
        }
    }
}

fn read_tree(row: &AnyRow) -> Result<Tree, StoreError> {
    let cells = Cells::new(row, "trees", &["name"]);
    Ok(Tree {
        name: cells.parsed("name")?,
        source: cells.parsed("source")?,
        added_at: cells.time("added_at")?,
    })
}
