//! One file per family of sensors.
