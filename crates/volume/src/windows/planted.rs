//! Leaks that tests plant in volumes, each of which the audit must find. Outside of tests there are
//! none.

/// What a volume does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leak {
    /// It opens without showing again what the session before showed.
    NoReplay,
    /// It reads on after a long sleep, without a look.
    SleepsOn,
}

#[cfg(test)]
thread_local! {
    /// The leak of this thread's volumes.
    pub static PLANTED: std::cell::Cell<Option<Leak>> = const { std::cell::Cell::new(None) };
}

/// Whether this leak is planted.
#[cfg(test)]
pub fn planted(leak: Leak) -> bool {
    PLANTED.get() == Some(leak)
}

/// Whether this leak is planted: never.
#[cfg(not(test))]
pub fn planted(_: Leak) -> bool {
    false
}
