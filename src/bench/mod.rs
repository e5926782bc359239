//! Roots, warm-up, timed searches, records.
