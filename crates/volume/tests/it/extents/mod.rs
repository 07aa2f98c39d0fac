//! Volumes in folders that a sync client copies: durable at every crash, the same files for every
//! workload of the same length, and two computers that meet, or part.

pub mod common;
mod computers;
mod crashes;
mod damage;
mod fixture;
mod health;
mod incomplete;
mod inspected;
mod late;
mod newcomer;
mod one;
mod traces;

use common::{Computer, contents, write};
