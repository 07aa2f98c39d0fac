//! The hardware controller of Freecursive (section 7.2): its specification as a program, and the
//! comparison of the circuit with it.

mod backend;
mod backlog;
mod bench;
mod cosim;
#[cfg(test)]
mod engine;
mod frontend;
mod memory;
mod scheme;
mod secrets;
mod shape;
#[cfg(test)]
mod tests;
