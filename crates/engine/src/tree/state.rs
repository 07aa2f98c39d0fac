//! The engine as bytes at rest.
