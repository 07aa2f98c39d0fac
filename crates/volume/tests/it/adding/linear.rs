//! An engine added to the product: the linear ORAM, which reads and writes everything. It writes
//! two copies of its buckets by turns: the older one stays whole until the next state is stored.

use oblivio_crypto::{KdfParams, Kind, Passphrase, Place, Sealer, VolumeId};
use oblivio_engine::linear::Linear;
use oblivio_engine::memory::Batches;
use oblivio_engine::{BlockOp, BlockOutcome, Carrier, Extent, Read, Write, WritePiece, carry_out};
use oblivio_store::{PutMode, ReadAt, Store, WriteAt};
use oblivio_volume::{
    BlockSpace, ComputerId, EngineEntry, EngineVolume, Error, Header, Inspected, Inspection, Known,
    OpenOptions, Opening, Parameters, ROOT_BYTES, Result, Volume, VolumeInfo, make,
};
use std::sync::Arc;

pub static LINEAR: EngineEntry = EngineEntry {
    number: 0xffff,
    name: "linear",
    hides_reads: true,
    resizes: false,
    repairs: false,
    check: |it| if it.flags == 0 { Ok(()) } else { Err(Parameters::unknown()) },
    capacity_blocks: |parameters| u64::from(parameters.own[0]),
    lanes: None,
    open: |opening| Ok(Box::new(LinearVolume::open(opening)?)),
    making: None,
};

pub struct LinearVolume {
    store: Arc<dyn Store>,
    header: Header,
    engine: Linear,
    sealer: Sealer,
    /// The copy of the last batch.
    newest: u8,
    root: Vec<u8>,
}

impl LinearVolume {
    pub fn create(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        parameters: (&Parameters, KdfParams),
        options: OpenOptions,
    ) -> Result<Volume> {
        let made = make(&LINEAR, store, passphrase, parameters, options, |opening| {
            let mut volume = Self::assemble(opening.over()?);
            volume.commit().map(|()| volume)
        });
        made.map(Volume::from)
    }

    fn assemble(opening: Opening<'_, Arc<dyn Store>>) -> Self {
        let Opening { store, header, master, options, .. } = opening;
        let (volume, bytes) = (header.volume(), header.parameters().block_bytes as usize);
        let sealer = |root| Sealer::new(root, Box::new(options.environment.randomness.clone()));
        let blocks = (LINEAR.capacity_blocks)(&header.parameters());
        let engine = Linear::new(bytes, blocks, volume, sealer(master.bucket_root(volume)));
        let sealer = sealer(master.state_root(volume));
        Self { store, header: header.clone(), engine, sealer, newest: 0, root: Vec::new() }
    }

    fn open(opening: Opening<'_>) -> Result<Self> {
        let mut volume = Self::assemble(opening.over()?);
        let mut sealed = vec![0; volume.store.len("state")?.unwrap_or(0) as usize];
        volume.store.read(&mut [ReadAt { object: "state", offset: 0, buf: &mut sealed }])?;
        let plain = volume.sealer.open(&state_of(volume.header.volume()), &mut sealed);
        let plain = plain.map_err(|_| Error::Tampered("the state".into()))?;
        let root = usize::from(u16::from_le_bytes([plain[1], plain[2]]));
        (volume.newest, volume.root) = (plain[0], plain[3..3 + root].to_vec());
        volume.engine.restore(&plain[3 + ROOT_BYTES..]);
        Ok(volume)
    }
}

fn state_of(volume: VolumeId) -> Place {
    Place { volume, kind: Kind::State, index: 0, version: 0 }
}

/// The newest copy, which is read, and the other one, which is written.
struct Copies<'a>(&'a dyn Store, [&'static str; 2]);

impl Carrier for Copies<'_> {
    type Error = Error;

    fn read(&mut self, mut read: Read<'_>) -> Result<()> {
        let (object, at) = (self.1[0], |it: Extent| (it.offset - 1) * it.bytes);
        let reads = read.parts().map(|(it, buf)| ReadAt { object, offset: at(it), buf });
        Ok(self.0.read(&mut reads.collect::<Vec<_>>())?)
    }

    fn write(&mut self, write: Write<'_>) -> Result<()> {
        let offset = |it: &WritePiece<'_>| (it.extent.offset - 1) * it.extent.bytes;
        let writes = write.parts().map(|it| WriteAt::new(self.1[1], offset(&it), it.data));
        self.0.write(&writes.collect::<Vec<_>>())?;
        Ok(self.0.sync(&[self.1[1]])?)
    }
}

impl BlockSpace for LinearVolume {
    oblivio_volume::lacks!(resizing, deferring, absence, padding, idling, ending, readers);
    fn block_bytes(&self) -> usize {
        self.header.parameters().block_bytes as usize
    }
    fn capacity_blocks(&self) -> u64 {
        self.engine.blocks()
    }
    fn reserve(&mut self, blocks: u64) -> Result<()> {
        if blocks <= self.engine.blocks() { Ok(()) } else { Err(Error::Full("all in use".into())) }
    }
    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        let mut batch = self.engine.begin(ops)?;
        let copies = if self.newest == 0 { ["copy-0", "copy-1"] } else { ["copy-1", "copy-0"] };
        carry_out(&mut batch, &mut self.engine, &mut Copies(&*self.store, copies))?;
        self.newest ^= 1;
        self.commit()?;
        Ok(Linear::answers(batch)?.into_iter().map(Ok).collect())
    }
    fn root(&self) -> &[u8] {
        &self.root
    }
    fn set_root(&mut self, root: &[u8]) {
        self.root = root.to_vec();
    }
    fn commit(&mut self) -> Result<()> {
        let mut plain = [&[self.newest][..], &(self.root.len() as u16).to_le_bytes()].concat();
        plain.extend_from_slice(&self.root);
        plain.resize(3 + ROOT_BYTES, 0);
        plain.extend(self.engine.state());
        let sealed = self.sealer.seal_vec(&state_of(self.header.volume()), &plain);
        let sealed = sealed.map_err(|error| Error::Closed(error.to_string()))?;
        Ok(self.store.put("state", &sealed, PutMode::Replace)?)
    }
    fn cache_budget(&self) -> usize {
        1 << 20
    }
}

impl EngineVolume for LinearVolume {
    fn known(&self) -> Known {
        Known::nothing(self.header.volume(), ComputerId::default())
    }
    fn inspect(&mut self, inspection: Inspection<'_>) -> Result<Inspected> {
        self.access(Vec::new())?;
        Ok(inspection.all_at_once(self.engine.blocks()))
    }
    fn info(&self) -> Result<VolumeInfo> {
        VolumeInfo::of(&self.header, &LINEAR, &*self.store)
    }
}
