//! Volumes in online stores: who has one, and what nothing needs.

use super::open::OpenArgs;
use clap::Args;
use std::path::PathBuf;

/// Say who has a volume in an online store, without disturbing anybody
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio status s3://bucket/vault           is it free, or in use, and where?
  oblivio status s3://bucket/vault --json

Six words stand for the whole history of the volume. While nobody uses it, two computers that see
the same history print the same words: read them out to each other. If they differ, the store
shows you different pasts of one volume.")]
pub struct StatusArgs {
    /// The volume's URL
    pub volume: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Delete what nothing needs any more from an online store
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio gc s3://bucket/vault --dry-run     what is there to delete?
  oblivio gc s3://bucket/vault

A volume deletes by itself what it replaced. What stays are small things of sessions that are
over, and what was left where two computers lost the volume one after the other. This lists all
objects, and is never needed for the volume to work. What is no object of a volume stays.")]
pub struct GcArgs {
    /// The volume's URL
    pub volume: PathBuf,
    /// Only say what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}
