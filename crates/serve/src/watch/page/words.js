"use strict";
// Numbers and times as people read them; the same words as the command's.

const grouped = (n) => Math.round(n).toLocaleString("en-US");

// A number stays with its unit at the end of a line.
const SPACE = "\u00a0";

function size(bytes) {
  if (bytes < 1024) return `${bytes}${SPACE}B`;
  let value = bytes, unit = "";
  for (const next of ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]) {
    if (value < 1023.5) break;
    value /= 1024;
    unit = next;
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${SPACE}${unit}`;
}

// From here to there, exact enough to tell neighbours apart.
function range(from, to, step) {
  const power = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(to, 1)) / 10)));
  const scale = 1024 ** power;
  const digits = Math.max(0, Math.ceil(-Math.log10(Math.max(step, 1) / scale)));
  const [a, b] = [from, to].map((bytes) => (bytes / scale).toFixed(digits));
  return `${a} to ${b}${SPACE}${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

function count(n, what, several) {
  return `${grouped(n)} ${n === 1 ? what : several ?? `${what}s`}`;
}

function percent(share) {
  const value = share * 100;
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${SPACE}%`;
}

const clock = (at) => new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 1 });

function ago(at, now) {
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 1.5) return "just now";
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  return `at ${clock(at)}`;
}

// An element with text and attributes; never markup.
function make(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
