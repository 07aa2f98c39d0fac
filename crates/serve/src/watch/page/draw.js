// The canvases. Colours come from the style, so that light and dark need nothing here.

const EDGE = { left: 64, right: 10, top: 8, bottom: 24 };

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(
    ["text", "soft", "grid", "line", "read", "write", "even", "accent"].map((name) => [name, of(name)]),
  );
}

// A canvas at the screen's own resolution, and the rectangle to draw in.
function begin(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  pen.textBaseline = "middle";
  const box = { x: EDGE.left, y: EDGE.top, w: width - EDGE.left - EDGE.right, h: height - EDGE.top - EDGE.bottom };
  return { pen, box };
}

function label(pen, text, x, y, align, colour) {
  pen.fillStyle = colour;
  pen.textAlign = align;
  pen.fillText(text, x, y);
}

function seconds(pen, box, colour) {
  for (const back of box.w > 360 ? [60, 45, 30, 15, 0] : [60, 30, 0]) {
    const x = box.x + box.w * (1 - back / 60);
    pen.fillStyle = colour.grid;
    pen.fillRect(Math.round(x), box.y, 1, box.h);
    const align = back === 0 ? "right" : back === 60 ? "left" : "center";
    label(pen, back ? `−${back} s` : "now", x, box.y + box.h + 14, align, colour.soft);
  }
}

// Reads are dots; writes are open diamonds, or lines where they are longer than that.
function mark(pen, x, y, write, radius) {
  if (!write && radius < 1.5) {
    // Too small to be round, and many.
    pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    return;
  }
  pen.beginPath();
  if (write) {
    const reach = radius * 1.45;
    pen.moveTo(x, y - reach);
    pen.lineTo(x + reach, y);
    pen.lineTo(x, y + reach);
    pen.lineTo(x - reach, y);
    pen.closePath();
    pen.stroke();
  } else {
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fill();
  }
}

function marks(pen, box, now, points, y, colour, radius) {
  if (radius < 1.5) radius *= Math.max(0.7, Math.min(1, box.w / 480));
  pen.save();
  pen.beginPath();
  pen.rect(box.x, box.y - 3, box.w + 3, box.h + 6);
  pen.clip();
  pen.fillStyle = colour.read;
  pen.strokeStyle = colour.write;
  pen.lineWidth = radius < 1.5 ? 1.1 : 1.6;
  for (const point of points) {
    const x = box.x + box.w * (1 - (now - point.at) / WINDOW);
    const [from, to] = y(point).map((part) => box.y + box.h * part);
    if (point.write && to - from > 3 * radius) {
      pen.beginPath();
      pen.moveTo(x, from);
      pen.lineTo(x, to);
      pen.stroke();
    } else {
      mark(pen, x, (from + to) / 2, point.write, radius);
    }
  }
  pen.restore();
}

// The names of the store's parts, and where one ends and the next begins. A part that is too thin
// for its name has none.
function partNames(pen, box, sight, colour) {
  let free = -Infinity;
  for (const part of sight.parts) {
    const [from, to] = [part.from, part.end].map((place) => box.y + (box.h * place) / sight.end);
    pen.fillStyle = colour.grid;
    pen.fillRect(box.x, Math.round(to), box.w, 1);
    const middle = (from + to) / 2;
    if (to - from < 3 || middle - 8 < free) continue;
    label(pen, part.name, box.x - 8, middle, "right", colour.soft);
    free = middle + 8;
  }
}

function sizes(pen, box, end, colour) {
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const y = box.y + box.h * part;
    pen.fillStyle = colour.grid;
    pen.fillRect(box.x, Math.round(y), box.w, 1);
    const text = end ? size(Math.round(end * part)) : part === 0 ? "start" : part === 1 ? "end" : "";
    label(pen, text, box.x - 8, y, "right", colour.soft);
  }
}

// Time against the place in the store, or in the disk.
function drawPlaces(canvas, sight, end, now, colour) {
  const { pen, box } = begin(canvas);
  seconds(pen, box, colour);
  if (sight.parts?.length) partNames(pen, box, sight, colour);
  else sizes(pen, box, end, colour);
  const radius = sight.points.length > 6000 ? 0.9 : sight.points.length > 1200 ? 1.2 : 2;
  const reach = (point) => [point.place / end, (point.place + (point.len ?? 0)) / end];
  marks(pen, box, now, sight.points, reach, colour, radius);
}

// Time against files, each a row with its own offsets.
function drawFiles(canvas, sight, now, colour) {
  const { pen, box } = begin(canvas);
  seconds(pen, box, colour);
  const files = sight.inOrder();
  const rows = Math.max(files.length, 4);
  const height = box.h / rows;
  const row = new Map(files.map((file, at) => [file, at]));
  const every = Math.ceil(18 / height);
  const busiest = files.length > 1 ? sight.busiest() : null;
  files.forEach((file, at) => {
    const y = box.y + at * height;
    if (height > 5) {
      pen.fillStyle = colour.grid;
      pen.fillRect(box.x, Math.round(y), box.w, 1);
    }
    const near = busiest && Math.abs(row.get(busiest) - at) < every && file !== busiest;
    if (file === busiest || (at % every === 0 && !near)) {
      label(pen, `file ${file.number}`, box.x - 8, y + height / 2, "right", file === busiest ? colour.text : colour.soft);
    }
  });
  pen.fillStyle = colour.grid;
  pen.fillRect(box.x, box.y + box.h, box.w, 1);
  const inRow = (point) => {
    const middle = (point.place + point.len / 2) / point.file.size;
    const y = (row.get(point.file) + 0.15 + 0.7 * Math.min(1, middle)) / rows;
    return [y, y];
  };
  marks(pen, box, now, sight.points, inRow, colour, sight.points.length > 1500 ? 1.5 : 2.8);
}

// Shares as bars, on one scale for both sides; a dashed line is where all would be equal.
function drawBars(canvas, shares, most, ends, colour) {
  const { pen, box } = begin(canvas);
  const y = (share) => box.y + box.h * (1 - share / most);
  for (const part of [0, 1]) {
    pen.fillStyle = part ? colour.grid : colour.line;
    pen.fillRect(box.x, Math.round(y(part * most)), box.w, 1);
    label(pen, percent(part * most).replace(/^0\.0/, "0"), box.x - 8, y(part * most), "right", colour.soft);
  }
  const step = box.w / shares.length;
  const width = Math.min(Math.max(step - 2, 1), 40);
  pen.fillStyle = colour.accent;
  shares.forEach((share, at) => {
    const top = y(share);
    const height = share > 0 ? Math.max(box.y + box.h - top, 1) : 0;
    pen.fillRect(box.x + (at + 0.5) * step - width / 2, box.y + box.h - height, width, height);
  });
  if (shares.some((share) => share > 0)) {
    pen.strokeStyle = colour.even;
    pen.setLineDash([4, 4]);
    pen.beginPath();
    pen.moveTo(box.x, y(1 / shares.length));
    pen.lineTo(box.x + box.w, y(1 / shares.length));
    pen.stroke();
    pen.setLineDash([]);
  }
  label(pen, ends[0], box.x, box.y + box.h + 14, "left", colour.soft);
  label(pen, ends[1], box.x + box.w, box.y + box.h + 14, "right", colour.soft);
}
