//! Files and directories over oblivious blocks.
