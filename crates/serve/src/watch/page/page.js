// The page itself: what comes from the stream goes into the two sights, and these are shown.

const $ = (id) => document.getElementById(id);
// Of a volume that hides writes, only what is written is drawn.
const hidesWrites = document.body.dataset.engine === "sequential";
const left = hidesWrites ? new Written() : new Oblivious();
const right = new Ordinary(!hidesWrites);
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
const panels = { left: $("left"), right: $("right") };
// What arrived while the page was paused; with more than this the oldest are left out.
const held = [];
const MOST_HELD = 4096;
const state = { paused: false, pausedAt: 0, tables: false, leftOut: 0, status: null, facts: null, live: null, colour: colours() };

// ---- what arrives

function take(event) {
  switch (event.kind) {
    case "shown": left.add(event); learnDepth(event.depth); break;
    case "written": left.add(event); break;
    case "ordinary": right.add(event); break;
    case "facts": learn(event); break;
    case "dropped": state.leftOut += event.count; break;
    case "status":
      state.status = event;
      if (!hidesWrites) left.end = Math.max(left.end, event.slab);
      break;
    case "live": state.live = true; break;
  }
}

function learn(facts) {
  state.facts = facts;
  document.body.dataset.holds = facts.holds;
  if (facts.holds === "disk") right.disk ??= 0;
  if (hidesWrites) left.learn(facts.parts);
  else left.bucket = facts.bucket_bytes;
}

function learnDepth(depth) {
  if (state.facts) state.facts.depth = depth;
  else state.facts = { depth };
}

function arrive(message) {
  let event;
  try { event = JSON.parse(message.data); } catch { return; }
  const isWork = ["shown", "written", "ordinary", "dropped"].includes(event.kind);
  if (state.paused && isWork) {
    held.push(event);
    if (held.length > MOST_HELD) { held.shift(); state.leftOut += 1; }
  } else {
    take(event);
  }
  changed = true;
}

function connect() {
  const stream = new EventSource("events");
  let first = true;
  stream.onmessage = (message) => {
    // After a break the server tells the last events once more; they were shown already.
    if (!first && !state.live) {
      const kind = message.data.slice(0, 16);
      if (!kind.includes("status") && !kind.includes("live") && !kind.includes("facts")) return;
    }
    arrive(message);
    if (state.live) first = false;
  };
  stream.onerror = () => {
    state.live = false;
    changed = true;
  };
}

// ---- the words

function showStatus() {
  const box = $("status");
  const users = (state.status?.users ?? []).map((user) => user.command).filter(Boolean);
  let words = left.batches ? "Waiting: no command uses the volume now" : "Waiting for a command to use the volume";
  if (state.live === null) words = "Connecting";
  else if (!state.live) words = "No connection; is oblivio watch still running?";
  else if (users.length) words = `In use by ${users.map((name) => `oblivio ${name}`).join(", ")}`;
  if (state.paused) words = held.length ? `Paused, ${count(held.length, "event")} waiting` : "Paused";
  put($("status-text"), words);
  box.classList.toggle("busy", Boolean(state.live) && users.length > 0);
  box.classList.toggle("lost", state.live === false);
}

function showFacts() {
  const facts = state.facts ?? {};
  if (facts.size_class_bytes) {
    put($("fact-class"), size(facts.size_class_bytes));
    put($("class-now"), ` (${size(facts.size_class_bytes)} now)`);
  }
  if (facts.depth) put($("fact-depth"), `${facts.depth} levels`);
  if (facts.capacity_bytes) put($("fact-capacity"), size(facts.capacity_bytes));
  if (facts.parts) put($("fact-levels"), grouped(facts.parts.filter((part) => part.name.includes("level")).length));
  if (hidesWrites && left.flushes !== null) put($("fact-flushes"), grouped(left.flushes));
  if (state.status) put($("fact-stored"), size(state.status.stored));
}

const within = (panel, is) => panel.querySelector(`[data-is="${is}"]`);

function showCounters(panel, sight, last) {
  put(within(panel, "requests"), grouped(sight.requests));
  put(within(panel, "read"), size(sight.read));
  put(within(panel, "written"), size(sight.written));
  put(within(panel, "last"), last);
}

function lastBatch(now) {
  const batch = left.last[0];
  if (!batch) return "none";
  if (hidesWrites) return `${size(batch.bytes)} to ${left.partsOf(batch.places).join(", ")}, ${ago(batch.at, now)}`;
  const bytes = size(batch.bytes_read + batch.bytes_written);
  const buckets = count(batch.reads + batch.writes, "bucket");
  return `${count(batch.paths, "path")}, ${buckets}, ${bytes}, ${ago(batch.at, now)}`;
}

const WORK = { read: "read", write: "written", create: "created", delete: "deleted" };

function lastRequest(now) {
  const event = right.last[0];
  if (!event) return "none";
  const what = event.len ? `${size(event.len)} ${WORK[event.what]} at ${size(event.offset)}` : WORK[event.what];
  return `${right.disk === null ? `file ${event.file}` : "the disk"}: ${what}, ${ago(event.at, now)}`;
}

function leftSays(shares) {
  if (hidesWrites) {
    if (!left.requests) return "So far nothing was written.";
    return `${count(left.requests, "write")} of ${size(left.written)}. The same would be written to the same places if it were other data for other ${right.disk === null ? "files" : "places of the disk"}.`;
  }
  if (!left.requests) return left.paths ? "All paths were in memory: the storage was not even asked." : "So far nothing was asked for.";
  const most = Math.max(...shares);
  return `The busiest of ${STRETCHES} equal stretches has ${percent(most)} of all requests; ${percent(1 / STRETCHES)} each would be perfectly even.`;
}

function rightSays(shares) {
  const file = right.busiest();
  if (!file) return hidesWrites ? "So far nothing was written." : "So far nothing was asked for.";
  if (right.disk !== null) return `The busiest of ${STRETCHES} equal stretches of the disk has ${percent(Math.max(...shares))} of all requests. Anybody can see where on the disk you work.`;
  const share = percent(file.times / right.requests);
  if (right.files.size === 1) return `Only one file was touched, file ${file.number}, ${count(file.times, "time")}: anybody can see that.`;
  return `File ${file.number} has ${share} of all requests. Anybody can see which file you keep coming back to.`;
}

function learned() {
  if (!left.batches) return "Once the volume is used, this says what its storage has learned.";
  if (hidesWrites) return `So far: that ${size(left.written)} were written, and when. Not which ${right.disk === null ? "files" : "part of the disk"} they were for.`;
  const work = `${count(left.paths, "block operation")} in ${count(left.batches, "batch", "batches")}`;
  return `So far: that there were ${work}, and when. Not which ${right.files.size === 1 ? "file" : count(right.files.size, "file")} they were for.`;
}

// ---- tables

function rows(body, list, none) {
  const made = list.map((cells) => {
    const row = make("tr");
    cells.forEach((cell) => row.append(make("td", cell)));
    return row;
  });
  if (!made.length) {
    const row = make("tr");
    row.append(make("td", none, { colspan: "5", class: "none" }));
    made.push(row);
  }
  body.replaceChildren(...made);
}

function showLast() {
  rows($("last-left").tBodies[0], left.last.map((batch) => hidesWrites ? [
    clock(batch.at), grouped(batch.writes), left.partsOf(batch.places).join(", "), size(batch.bytes), grouped(batch.flushes ?? 0),
  ] : [
    clock(batch.at), grouped(batch.paths), grouped(batch.reads), grouped(batch.writes), size(batch.bytes_read + batch.bytes_written),
  ]), "Nothing yet.");
  rows($("last-right").tBodies[0], right.last.map((event) => [
    clock(event.at), WORK[event.what], right.disk === null ? String(event.file) : "the disk", event.len ? size(event.offset) : "–", event.len ? size(event.len) : "–",
  ]), "Nothing yet.");
}

function table(caption, heads, list) {
  const made = make("table");
  made.append(make("caption", caption));
  const head = make("tr");
  heads.forEach((text) => head.append(make("th", text, { scope: "col" })));
  const thead = make("thead"), body = make("tbody");
  thead.append(head);
  rows(body, list, "Nothing yet.");
  made.append(thead, body);
  return made;
}

// The last minute in steps of ten seconds.
function bySteps(points, now) {
  return [0, 1, 2, 3, 4, 5].map((step) => {
    const inside = points.filter((point) => Math.min(5, Math.floor((now - point.at) / 10_000)) === step);
    const writes = inside.filter((point) => point.write).length;
    return [`${10 * step} to ${10 * step + 10} s ago`, grouped(inside.length - writes), grouped(writes)];
  });
}

// The stretches that were most asked for, each as a range of bytes.
function busiestStretches(shares, end) {
  const most = shares.map((share, at) => [share, at]).filter(([share]) => share > 0).sort((a, b) => b[0] - a[0]).slice(0, 8);
  const stretch = end / STRETCHES;
  return most.map(([share, at]) => [range(at * stretch, (at + 1) * stretch, stretch), percent(share)]);
}

function showTables(now, shares) {
  const steps = ["When", "Read", "Written"];
  const files = [...right.files.values()].sort((a, b) => b.times - a.times).slice(0, 8);
  const named = files.map((file) => [`file ${file.number}, ${size(file.size)}`, grouped(file.times), percent(file.times / right.requests)]);
  panels.left.querySelector(".as-table").replaceChildren(
    table("Places drawn, in the last 60 seconds", steps, bySteps(left.points, now)),
    table("The busiest stretches of the store", ["Stretch", "Share"], busiestStretches(shares[0], left.end)),
  );
  panels.right.querySelector(".as-table").replaceChildren(
    table("Requests in the last 60 seconds", steps, bySteps(right.points, now)),
    right.disk === null
      ? table("The busiest files", ["File", "Requests", "Share"], named)
      : table("The busiest stretches of the disk", ["Stretch", "Share"], busiestStretches(shares[1], right.disk)),
  );
}

// ---- the pictures

function showCharts(now) {
  for (const [panel, sight] of [[panels.left, left], [panels.right, right]]) {
    panel.querySelector(".empty").hidden = sight.points.length > 0;
  }
  drawPlaces(panels.left.querySelector(".time"), left, left.end, now, state.colour);
  const ordinary = panels.right.querySelector(".time");
  if (right.disk === null) drawFiles(ordinary, right, now, state.colour);
  else drawPlaces(ordinary, right, right.disk, now, state.colour);
}

function showBars(leftShares, rightShares) {
  const most = Math.min(1, Math.max(0.1, ...leftShares, ...rightShares) * 1.05);
  const files = right.inOrder();
  const ends = right.disk !== null ? ["start of the disk", "end"] : files.length ? [`file ${files[0].number}`, files.length > 1 ? `file ${files.at(-1).number}` : ""] : ["", ""];
  drawBars(panels.left.querySelector(".bars"), leftShares, most, ["start of the store", "end"], state.colour);
  drawBars(panels.right.querySelector(".bars"), rightShares, most, ends, state.colour);
}

// What a canvas shows, in words; not more often than somebody could listen.
function describe(leftWords, rightWords) {
  const drawn = (sight) => count(sight.points.length, "request");
  const words = [
    [panels.left, `Places in the store over the last 60 seconds: ${drawn(left)}${hidesWrites ? "" : ", all over the store"}`, leftWords],
    [panels.right, `${right.disk === null ? "Files" : "Places in the disk"} over the last 60 seconds: ${drawn(right)}`, rightWords],
  ];
  for (const [panel, time, bars] of words) {
    panel.querySelector(".time").setAttribute("aria-label", time);
    panel.querySelector(".bars").setAttribute("aria-label", bars);
  }
}

// ---- when

let changed = true, drawnAt = 0, toldAt = 0, describedAt = 0;

function tell(now) {
  left.prune(now);
  right.prune(now);
  const shares = [left.shares(), right.shares()];
  const says = [leftSays(shares[0]), rightSays(shares[1])];
  showCounters(panels.left, left, lastBatch(now));
  showCounters(panels.right, right, lastRequest(now));
  put(within(panels.left, "says"), says[0]);
  put(within(panels.right, "says"), says[1]);
  put($("learned"), learned());
  put($("left-out"), state.leftOut ? ` ${count(state.leftOut, "event was", "events were")} left out, because this page was slower than the work.` : "");
  showLast();
  if (state.tables) showTables(now, shares);
  else showBars(...shares);
  if (now - describedAt > 5000) { describe(...says); describedAt = now; }
}

function frame() {
  const now = state.paused ? state.pausedAt : Date.now();
  const clockNow = performance.now();
  // The picture moves nine pixels a second: more often would be seen by nobody. Who wants less
  // motion gets one step a second.
  const pace = calm.matches ? 1000 : 50;
  if (clockNow - toldAt >= 250 && (changed || clockNow - toldAt >= 1000)) {
    showStatus();
    showFacts();
    if (!state.paused || changed === "all") tell(now);
    changed = false;
    toldAt = clockNow;
  }
  if (!state.tables && clockNow - drawnAt >= pace && (!state.paused || drawnAt === 0)) {
    showCharts(now);
    drawnAt = clockNow;
  }
  window.requestAnimationFrame(frame);
}

function redraw() {
  state.colour = colours();
  changed = "all";
  drawnAt = 0;
  toldAt = -1000;
}

const press = (button, on) => button.setAttribute("aria-pressed", String(on));

$("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  state.pausedAt = Date.now();
  if (!state.paused) held.splice(0).forEach(take);
  press($("pause"), state.paused);
  redraw();
});

$("tables").addEventListener("click", () => {
  state.tables = !state.tables;
  for (const element of document.querySelectorAll(".picture")) element.hidden = state.tables;
  for (const element of document.querySelectorAll(".as-table")) element.hidden = !state.tables;
  press($("tables"), state.tables);
  redraw();
});

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
window.addEventListener("resize", redraw);
connect();
window.requestAnimationFrame(frame);
