//! DDR3 memory behind a controller for each channel (Freecursive, Table 1).
//!
//! Open rows, and first-ready first-come scheduling over a window of requests: of the oldest
//! requests, the first whose data can come now; else the first whose row can be opened or closed.
//! One command in a cycle. All times are cycles of the memory's clock.

use std::collections::VecDeque;

/// Times of a memory, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From a read to its data.
    pub cl: u64,
    /// From a write to its data.
    pub cwl: u64,
    /// From opening a row to its first read or write.
    pub rcd: u64,
    /// From closing a row to opening another.
    pub rp: u64,
    /// From opening a row to closing it.
    pub ras: u64,
    /// Between rows opened in one rank.
    pub rrd: u64,
    /// Between five rows opened in one rank.
    pub faw: u64,
    /// Between reads or writes in one rank.
    pub ccd: u64,
    /// From a read to closing its row.
    pub rtp: u64,
    /// From the end of written data to a read in the rank.
    pub wtr: u64,
    /// From the end of written data to closing the row.
    pub wr: u64,
    /// Between data of two ranks or directions on the bus.
    pub rtrs: u64,
    /// Data of one request on the bus.
    pub burst: u64,
    /// Between refreshes of a rank.
    pub refi: u64,
    /// A refresh.
    pub rfc: u64,
}

impl Timing {
    /// DDR3-1333 with chips of 8 bits: Micron's data sheet, as in DRAMSim2's default.
    pub const DDR3_1333: Self = Self {
        cl: 10,
        cwl: 9,
        rcd: 10,
        rp: 10,
        ras: 24,
        rrd: 4,
        faw: 20,
        ccd: 4,
        rtp: 5,
        wtr: 5,
        wr: 10,
        rtrs: 1,
        burst: 4,
        refi: 5200,
        rfc: 107,
    };
    /// Nanoseconds of a cycle.
    pub const NANOSECONDS: f64 = 1.5;
}

/// What there is of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Channels with a controller and a bus each.
    pub channels: usize,
    /// Ranks of a channel.
    pub ranks: usize,
    /// Banks of a rank.
    pub banks: usize,
    /// Rows of a bank.
    pub rows: u64,
    /// Lines of 64 bytes in a row of a channel.
    pub lines_in_row: u64,
}

impl Shape {
    /// The paper's: 8 GB over these channels, banks of 16,384 rows of 8 KiB.
    pub fn paper(channels: usize) -> Self {
        Self { channels, ranks: (8 / channels).max(1), banks: 8, rows: 16_384, lines_in_row: 128 }
    }

    /// Where a line is: neighbours on different channels, then in one row, then in another bank.
    pub fn place(&self, line: u64) -> Place {
        let (line, channel) = split(line, self.channels as u64);
        let (line, _) = split(line, self.lines_in_row);
        let (line, bank) = split(line, self.banks as u64);
        let (line, rank) = split(line, self.ranks as u64);
        let row = line % self.rows;
        Place { channel: channel as usize, rank: rank as usize, bank: bank as usize, row }
    }
}

fn split(number: u64, by: u64) -> (u64, u64) {
    (number / by, number % by)
}

/// A line's place, without its column: no time depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The channel.
    pub channel: usize,
    /// The rank in it.
    pub rank: usize,
    /// The bank in that.
    pub bank: usize,
    /// The row in that.
    pub row: u64,
}

/// A direction on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From memory.
    Read,
    /// To memory.
    Write,
}

/// Requests that a controller chooses among.
pub const WINDOW: usize = 32;

/// A bank: its open row, and the earliest cycle for each command.
#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    open: Option<u64>,
    activate: u64,
    precharge: u64,
    access: u64,
}

#[derive(Clone, Debug, Default)]
struct Rank {
    banks: Vec<Bank>,
    /// When the last four rows were opened.
    opened: VecDeque<u64>,
    /// The earliest cycle for the next row, the next read or write, and the next read.
    activate: u64,
    access: u64,
    read: u64,
    refresh: u64,
}

impl Rank {
    fn may_open(&self, bank: usize, now: u64, timing: &Timing) -> bool {
        let four = match self.opened.len() {
            4 => self.opened[0] + timing.faw,
            _ => 0,
        };
        now >= self.activate.max(four).max(self.banks[bank].activate)
    }

    fn open(&mut self, bank: usize, row: u64, now: u64, timing: &Timing) {
        if self.opened.len() == 4 {
            self.opened.pop_front();
        }
        self.opened.push_back(now);
        self.activate = now + timing.rrd;
        self.banks[bank] = Bank {
            open: Some(row),
            activate: now + timing.ras + timing.rp,
            precharge: now + timing.ras,
            access: now + timing.rcd,
        };
    }

    fn close(&mut self, bank: usize, now: u64, timing: &Timing) {
        let bank = &mut self.banks[bank];
        bank.open = None;
        bank.activate = bank.activate.max(now + timing.rp);
    }

    /// All rows are closed for a refresh that is due.
    fn refresh_if_due(&mut self, now: u64, timing: &Timing) {
        while now >= self.refresh {
            let ready = |bank: &Bank| match bank.open {
                Some(_) => bank.precharge.max(self.refresh) + timing.rp,
                None => bank.activate.max(self.refresh),
            };
            let begin = self.banks.iter().map(ready).max().unwrap_or(self.refresh);
            for bank in &mut self.banks {
                (bank.open, bank.activate) = (None, begin + timing.rfc);
            }
            self.refresh += timing.refi;
        }
    }
}

/// A channel: its ranks, and its bus for data.
struct Channel {
    ranks: Vec<Rank>,
    /// The end of the last data, and whose they were.
    bus: u64,
    last: Option<(usize, Way)>,
}

/// The memory. Time goes on from one batch of requests to the next.
pub struct Dram {
    timing: Timing,
    shape: Shape,
    channels: Vec<Channel>,
}

impl Dram {
    /// Memory with all rows closed.
    pub fn new(timing: Timing, shape: Shape) -> Self {
        let channels = (0..shape.channels).map(|_| Channel::new(&timing, &shape)).collect();
        Self { timing, shape, channels }
    }

    /// Serves lines that are asked for from this cycle on, one in a cycle and channel, in order.
    /// The cycle after the last data.
    pub fn serve(&mut self, lines: impl IntoIterator<Item = u64>, way: Way, start: u64) -> u64 {
        let mut queues = vec![VecDeque::new(); self.shape.channels];
        for line in lines {
            let place = self.shape.place(line);
            queues[place.channel].push_back(place);
        }
        let timing = &self.timing;
        let ends = self.channels.iter_mut().zip(queues);
        ends.map(|(channel, queue)| channel.serve(queue, way, start, timing)).max().unwrap_or(start)
    }
}

impl Channel {
    fn new(timing: &Timing, shape: &Shape) -> Self {
        let ranks = (0..shape.ranks as u64).map(|rank| Rank {
            banks: vec![Bank::default(); shape.banks],
            // Not all at once.
            refresh: timing.refi * (rank + 1) / shape.ranks as u64,
            ..Rank::default()
        });
        Self { ranks: ranks.collect(), bus: 0, last: None }
    }

    fn serve(&mut self, queue: VecDeque<Place>, way: Way, start: u64, timing: &Timing) -> u64 {
        let (mut queue, mut window) = (queue, VecDeque::with_capacity(WINDOW));
        let mut now = start;
        let mut end = start;
        while !queue.is_empty() || !window.is_empty() {
            if window.len() < WINDOW {
                window.extend(queue.pop_front());
            }
            self.ranks.iter_mut().for_each(|rank| rank.refresh_if_due(now, timing));
            if let Some(at) = window.iter().position(|it| self.may_access(it, way, now, timing)) {
                end = self.access(&window[at], way, now, timing);
                window.remove(at);
            } else {
                self.prepare(&window, now, timing);
            }
            now += 1;
        }
        end
    }

    fn may_access(&self, place: &Place, way: Way, now: u64, timing: &Timing) -> bool {
        let rank = &self.ranks[place.rank];
        let bank = &rank.banks[place.bank];
        let after_write = if way == Way::Read { rank.read } else { 0 };
        let gap = match self.last {
            Some(last) if last != (place.rank, way) => timing.rtrs,
            _ => 0,
        };
        bank.open == Some(place.row)
            && now >= bank.access.max(rank.access).max(after_write)
            && now + timing.delay(way) >= self.bus + gap
    }

    /// The cycle after its data.
    fn access(&mut self, place: &Place, way: Way, now: u64, timing: &Timing) -> u64 {
        let rank = &mut self.ranks[place.rank];
        let bank = &mut rank.banks[place.bank];
        let end = now + timing.delay(way) + timing.burst;
        let close = match way {
            Way::Read => now + timing.rtp,
            Way::Write => end + timing.wr,
        };
        bank.precharge = bank.precharge.max(close);
        rank.access = now + timing.ccd;
        if way == Way::Write {
            rank.read = end + timing.wtr;
        }
        (self.bus, self.last) = (end, Some((place.rank, way)));
        end
    }

    /// Opens the row of the oldest request that needs it, or closes the one in its way. A row that
    /// a request of the window wants stays open.
    fn prepare(&mut self, window: &VecDeque<Place>, now: u64, timing: &Timing) {
        for (at, place) in window.iter().enumerate() {
            let same = |other: &&Place| (other.rank, other.bank) == (place.rank, place.bank);
            if window.iter().take(at).any(|other| same(&other)) {
                continue;
            }
            let rank = &mut self.ranks[place.rank];
            match rank.banks[place.bank].open {
                Some(open) if open == place.row => {}
                Some(open) => {
                    let wanted = window.iter().filter(same).any(|other| other.row == open);
                    if !wanted && now >= rank.banks[place.bank].precharge {
                        return rank.close(place.bank, now, timing);
                    }
                }
                None if rank.may_open(place.bank, now, timing) => {
                    return rank.open(place.bank, place.row, now, timing);
                }
                None => {}
            }
        }
    }
}

impl Timing {
    fn delay(&self, way: Way) -> u64 {
        match way {
            Way::Read => self.cl,
            Way::Write => self.cwl,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Timing = Timing::DDR3_1333;

    fn memory(channels: usize) -> Dram {
        Dram::new(T, Shape::paper(channels))
    }

    /// Lines of other rows of the first bank of one channel.
    fn row(number: u64) -> u64 {
        128 * 8 * 8 * number
    }

    #[test]
    fn neighbours_share_a_row_and_rows_go_round_banks() {
        let shape = Shape::paper(2);
        let place = |channel, rank, bank, row| Place { channel, rank, bank, row };
        assert_eq!(shape.place(0), place(0, 0, 0, 0));
        assert_eq!(shape.place(1), place(1, 0, 0, 0));
        assert_eq!(shape.place(255), place(1, 0, 0, 0));
        assert_eq!(shape.place(256), place(0, 0, 1, 0));
        assert_eq!(shape.place(256 * 8), place(0, 1, 0, 0));
        assert_eq!(shape.place(256 * 8 * 4 * 5), place(0, 0, 0, 5));
    }

    #[test]
    fn one_request_takes_what_the_data_sheet_says() {
        // All before the first refresh of the rank.
        let mut dram = memory(1);
        // It enters, its row is opened, then read.
        assert_eq!(dram.serve([0], Way::Read, 0), T.rcd + T.cl + T.burst);
        // An open row.
        assert_eq!(dram.serve([1], Way::Read, 100), 100 + T.cl + T.burst);
        // Another row of the bank.
        assert_eq!(dram.serve([row(1)], Way::Read, 200), 200 + T.rp + T.rcd + T.cl + T.burst);
        assert_eq!(dram.serve([row(1)], Way::Write, 300), 300 + T.cwl + T.burst);
        // A read after it waits for the data to be in the array.
        let soon = 300 + T.cwl + T.burst;
        assert_eq!(dram.serve([row(1)], Way::Read, soon), soon + T.wtr + T.cl + T.burst);
    }

    #[test]
    fn a_row_is_read_at_the_speed_of_the_bus() {
        let (mut one, mut four) = (memory(1), memory(4));
        assert_eq!(one.serve(0..100, Way::Read, 0), T.rcd + T.cl + 100 * T.burst);
        assert_eq!(four.serve(0..100, Way::Read, 0), T.rcd + T.cl + 25 * T.burst);
    }

    #[test]
    fn rows_of_one_bank_come_one_after_the_other() {
        let rows = 5;
        let end = memory(1).serve((0..rows).map(row), Way::Read, 0);
        assert_eq!(end, (rows - 1) * (T.ras + T.rp) + T.rcd + T.cl + T.burst);
        // Of other banks, as fast as rows may be opened.
        let banks = memory(1).serve((0..8).map(|bank| 128 * bank), Way::Read, 0);
        assert_eq!(banks, T.faw + 3 * T.rrd + T.rcd + T.cl + T.burst);
    }

    #[test]
    fn what_is_ready_comes_first_and_a_wanted_row_stays_open() {
        let mut dram = memory(1);
        dram.serve([0], Way::Read, 0);
        // The third comes before the second: its row is open, and stays so until it is read.
        let end = dram.serve([1, row(1), 2, row(1) + 1], Way::Read, 100);
        let last_of_row = 100 + T.ccd;
        assert_eq!(end, last_of_row + T.rtp + T.rp + T.rcd + T.ccd + T.cl + T.burst);
    }

    #[test]
    fn a_refresh_holds_a_rank_up_and_no_other() {
        let mut dram = memory(8);
        assert_eq!(Shape::paper(8).ranks, 1);
        let begin = T.refi + 1;
        let took = dram.serve([0], Way::Read, begin) - begin;
        assert_eq!(took, T.rfc - 1 + T.rcd + T.cl + T.burst);
        let later = begin + 1000;
        assert_eq!(dram.serve([0], Way::Read, later) - later, T.cl + T.burst);
    }
}
