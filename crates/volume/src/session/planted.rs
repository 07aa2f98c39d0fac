//! Faults that tests plant in sessions, each of which the simulation must find.

/// What a session does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// It does not look after an entry.
    NoLook,
    /// It looks before it stores an entry.
    EarlyLook,
    /// It reads the history before it takes its number.
    EarlyRead,
    /// It deletes without a look.
    BlindDelete,
    /// A delete does not wait for the pointer to the commit.
    EarlyDelete,
    /// It writes each pointer over the one before.
    PointerInPlace,
    /// It starts from the last checkpoint, whether its objects are stored or not.
    AnyCheckpoint,
    /// Its volume confirms a checkpoint before the objects are stored.
    #[cfg(test)]
    EarlyConfirm,
}

/// The fault of a session. Outside of tests there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted(#[cfg(test)] pub Option<PlantedFault>);

impl Planted {
    #[cfg(test)]
    pub fn is(self, fault: PlantedFault) -> bool {
        self.0 == Some(fault)
    }

    #[cfg(not(test))]
    pub fn is(self, _: PlantedFault) -> bool {
        false
    }
}
