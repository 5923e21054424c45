//! Long lists in pages.

/// Which part of a list is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// [`Page::next`] of the page before; `None` for the first page.
    pub after: Option<String>,
    /// How many items, cut to 1 ..= [`PageRequest::MAX_SIZE`].
    pub size: u32,
}

impl PageRequest {
    /// The most items that one page has.
    pub const MAX_SIZE: u32 = 500;

    /// The first page.
    pub const fn first(size: u32) -> Self {
        Self { after: None, size }
    }

    /// The legal number of items.
    pub(crate) fn limit(&self) -> usize {
        self.size.clamp(1, Self::MAX_SIZE) as usize
    }

    /// One more than the limit: the extra row tells whether there is another page.
    pub(crate) fn fetch(&self) -> i64 {
        i64::from(self.size.clamp(1, Self::MAX_SIZE)) + 1
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The token for the next page; `None` at the end.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Cuts the extra row off; `token` names an item.
    pub(crate) fn cut(mut items: Vec<T>, limit: usize, token: impl Fn(&T) -> String) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(token) } else { None };
        Self { items, next }
    }
}
