//! The hardware controller of Freecursive (section 7.2): its specification as a program, and the
//! comparison of the circuit with it.

mod backend;
mod backlog;
mod frontend;
mod memory;
mod secrets;
mod shape;

#[cfg(test)]
mod engine;
