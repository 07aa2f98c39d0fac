//! The pyramid: an oblivious RAM that several clients share, made of levels that double in size.
//!
//! [`paper`] is PD-ORAM as its paper describes it (PrivateFS, CCS 2012), with its errors corrected.
//! It is the ground for the paper's figures.

pub mod paper;
