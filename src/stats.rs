//! Order statistics and means of samples.
