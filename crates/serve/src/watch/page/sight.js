// What was seen so far: two sights, one as the storage has it with Oblivio, one without.

const WINDOW = 60_000;
const STRETCHES = 48;
const MOST_POINTS = 24_000;
const LAST = 20;

// How often each part of a range was asked for, in fine parts that pair up when the range doubles.
class Bins {
  constructor() {
    this.width = 4096;
    this.counts = new Float64Array(4096);
    this.total = 0;
  }

  add(place, weight) {
    while (place >= this.width * this.counts.length) this.double();
    this.counts[Math.floor(place / this.width)] += weight;
    this.total += weight;
  }

  // The weight spread evenly over a range.
  addRange(from, len, weight) {
    if (len <= this.width) return this.add(from, weight);
    while (from + len > this.width * this.counts.length) this.double();
    const step = this.width;
    for (let at = from; at < from + len; at += step - (at % step)) {
      const part = Math.min(step - (at % step), from + len - at);
      this.add(at, (weight * part) / len);
    }
  }

  double() {
    const half = this.counts.length / 2;
    for (let at = 0; at < half; at++) this.counts[at] = this.counts[2 * at] + this.counts[2 * at + 1];
    this.counts.fill(0, half);
    this.width *= 2;
  }

  // Shares of equal stretches of 0..end. A fine part is shared out over those that it lies in, so
  // that their borders make no pattern.
  shares(end) {
    const shares = new Array(STRETCHES).fill(0);
    if (!this.total || !end) return shares;
    const scale = STRETCHES / end;
    this.counts.forEach((weight, at) => {
      if (!weight) return;
      const from = Math.min(at * this.width * scale, STRETCHES - 1e-9);
      const to = Math.min((at + 1) * this.width * scale, STRETCHES);
      const span = Math.max(to - from, 1e-9);
      for (let bin = Math.floor(from); bin < to && bin < STRETCHES; bin++) {
        const part = (Math.min(to, bin + 1) - Math.max(from, bin)) / span;
        shares[bin] += (weight * part) / this.total;
      }
    });
    return shares;
  }
}

class Sight {
  constructor() {
    this.requests = 0;
    this.read = 0;
    this.written = 0;
    this.points = [];
    this.last = [];
  }

  note(entry) {
    this.last.unshift(entry);
    this.last.length = Math.min(this.last.length, LAST);
  }

  // A page in the background is not drawn, and so not pruned.
  bound() {
    if (this.points.length > 2 * MOST_POINTS) this.points.splice(0, this.points.length - MOST_POINTS);
  }

  prune(now) {
    let old = 0;
    while (old < this.points.length && this.points[old].at < now - WINDOW) old++;
    old = Math.max(old, this.points.length - MOST_POINTS);
    if (old > 0) this.points.splice(0, old);
  }
}

// The left side: buckets at places of the slab.
class Oblivious extends Sight {
  constructor() {
    super();
    this.bins = new Bins();
    this.end = 0;
    this.bucket = 4096;
    this.paths = 0;
    this.batches = 0;
  }

  add(batch) {
    this.requests += batch.reads + batch.writes;
    this.read += batch.bytes_read;
    this.written += batch.bytes_written;
    this.paths += batch.paths;
    this.batches += 1;
    const places = (list, all, write) => {
      for (const place of list) {
        this.points.push({ at: batch.at, place, write });
        this.bins.add(place, all / list.length);
        this.end = Math.max(this.end, place + this.bucket);
      }
    };
    places(batch.places_read, batch.reads, false);
    places(batch.places_written, batch.writes, true);
    this.note(batch);
    this.bound();
  }

  shares() {
    return this.bins.shares(this.end);
  }
}

// The left side of a volume that hides writes: writes to parts of the store, laid end to end.
class Written extends Sight {
  constructor() {
    super();
    this.bins = new Bins();
    this.end = 0;
    this.parts = [];
    this.batches = 0;
    this.flushes = null;
  }

  learn(parts) {
    let end = 0;
    this.parts = parts.map(({ name, bytes }) => ({ name, from: end, end: (end += bytes) }));
    this.end = Math.max(this.end, end);
  }

  add(event) {
    this.requests += event.writes;
    this.written += event.bytes;
    this.batches += 1;
    this.flushes = event.flushes ?? this.flushes;
    for (const [place, len] of event.places) {
      this.points.push({ at: event.at, place, len, write: true });
      this.bins.addRange(place, len, len);
      this.end = Math.max(this.end, place + len);
    }
    this.note(event);
    this.bound();
  }

  // The parts in which these places are, each once, in their order.
  partsOf(places) {
    const inside = (part) => places.some(([place]) => place >= part.from && place < part.end);
    return this.parts.filter(inside).map((part) => part.name);
  }

  shares() {
    return this.bins.shares(this.end);
  }
}

// The right side: requests for files, or for one disk. Of a volume that hides writes only what is
// written: who sees no reads sees none here either.
class Ordinary extends Sight {
  constructor(withReads) {
    super();
    this.withReads = withReads;
    this.disk = null;
    this.bins = new Bins();
    this.files = new Map();
    this.sorted = [];
  }

  add(event) {
    if (event.what === "read" && !this.withReads) return;
    this.requests += 1;
    if (event.what === "read") this.read += event.len;
    if (event.what === "write") this.written += event.len;
    const file = this.files.get(event.file) ?? { number: event.file, size: 1, times: 0, reads: 0 };
    file.size = Math.max(file.size, event.size, event.offset + event.len);
    file.times += 1;
    if (event.what === "read") file.reads += 1;
    this.files.set(event.file, file);
    const write = event.what !== "read";
    this.points.push({ at: event.at, file, place: event.offset, len: event.len, write });
    if (this.disk !== null) this.disk = Math.max(this.disk, event.size);
    this.bins.addRange(event.offset, event.len, 1);
    this.note(event);
    this.bound();
  }

  // All files in the order of their numbers, as a storage could line them up.
  inOrder() {
    if (this.sorted.length !== this.files.size) {
      this.sorted = [...this.files.values()].sort((a, b) => a.number - b.number);
    }
    return this.sorted;
  }

  busiest() {
    let most = null;
    for (const file of this.files.values()) if (!most || file.times > most.times) most = file;
    return most;
  }

  // One bar for each file, or for neighbours together when there are more files than bars; of a
  // disk one for each stretch.
  shares() {
    if (this.disk !== null) return this.bins.shares(this.disk);
    const files = this.inOrder();
    const shares = new Array(Math.max(1, Math.min(files.length, STRETCHES))).fill(0);
    files.forEach((file, at) => {
      const bin = Math.floor((at * shares.length) / files.length);
      shares[bin] += file.times / Math.max(1, this.requests);
    });
    return shares;
  }
}
