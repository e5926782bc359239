//! Power sensors of boards and chips, and the energy of a window of time. Knows nothing of graphs.
