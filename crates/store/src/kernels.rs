//! Kernels of the lab.

use klab_model::{Kernel, KernelName, KernelOffer, to_micros};
use sqlx::any::AnyRow;

use crate::row::{Cells, big};
use crate::{Page, PageRequest, Store, StoreError, sql};

impl Store {
    /// Adds a kernel whose package is among the objects. Adding the same one again gives
    /// the kernel as it was added first.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] if the name stands for another digest,
    /// [`StoreError::NotFound`] if the package is not stored.
    pub async fn add_kernel(&self, kernel: &Kernel) -> Result<Kernel, StoreError> {
        let offer = &kernel.offer;
        self.objects().require(&offer.digest, offer.size).await?;
        sqlx::query(sql::KERNEL_ADD)
            .bind(kernel.name.as_str())
            .bind(offer.digest.to_string())
            .bind(big(offer.size))
            .bind(offer.arch.as_str())
            .bind(offer.release.as_str())
            .bind(offer.build_id.as_ref().map(ToString::to_string))
            .bind(offer.image_digest.to_string())
            .bind(to_micros(kernel.added_at))
            .execute(self.writers())
            .await
            .map_err(StoreError::database("add a kernel"))?;
        let stored = self.kernel(&kernel.name).await?;
        if stored.offer.digest == offer.digest {
            Ok(stored)
        } else {
            Err(StoreError::AlreadyExists {
                what: "kernel",
                name: kernel.name.to_string(),
                existing: Some(stored.offer.digest),
            })
        }
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn kernel(&self, name: &KernelName) -> Result<Kernel, StoreError> {
        let row = sqlx::query(sql::KERNEL_GET)
            .bind(name.as_str())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read a kernel"))?
            .ok_or_else(|| StoreError::not_found("kernel", name))?;
        read_kernel(&row)
    }

    /// Kernels by name.
    ///
    /// # Errors
    /// [`StoreError::BadPageToken`].
    pub async fn list_kernels(&self, page: &PageRequest) -> Result<Page<Kernel>, StoreError> {
        let after = page.after.clone().unwrap_or_default();
        if !after.is_empty() && KernelName::parse(&after).is_err() {
            return Err(StoreError::BadPageToken { found: after });
        }
        let rows = sqlx::query(sql::KERNELS_PAGE)
            .bind(after)
            .bind(page.fetch())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list kernels"))?;
        let kernels = rows.iter().map(read_kernel).collect::<Result<_, _>>()?;
        Ok(Page::cut(kernels, page.limit(), |k| k.name.to_string()))
    }
}

fn read_kernel(row: &AnyRow) -> Result<Kernel, StoreError> {
    let cells = Cells::new(row, "kernels", &["name"]);
    Ok(Kernel {
        name: cells.parsed("name")?,
        offer: KernelOffer {
            digest: cells.parsed("digest")?,
            size: cells.int("size")?,
            arch: cells.parsed("arch")?,
            release: cells.text("release")?,
            build_id: cells.maybe_parsed("build_id")?,
            image_digest: cells.parsed("image_digest")?,
        },
        added_at: cells.time("added_at")?,
    })
}
