//! Memory: pages, huge pages.
