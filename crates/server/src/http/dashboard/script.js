"use strict";
const LOOK_MS = 2000, HISTORY_MS = 5000;
// Samples that lie further apart are not joined; "now" is what the last minute shows.
const GAP_SECONDS = 45, NOW_SECONDS = 60;
const PLOT = { left: 58, right: 10, top: 8, bottom: 20 };

// What the server said last.
const known = { dictionaries: [], series: new Map(), failures: new Map(), memcached: null, volumes: null, first: Infinity, last: 0, silent: "" };
let span = 900, cursor = null, view = null;

const QUERY = "SELECT name, type, element_count, hit_rate, source, last_exception FROM system.dictionaries";

// Elements.

const byId = id => document.getElementById(id);
function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
function within(parent, ...children) { parent.append(...children); return parent; }
function link(text, to) { const made = element("a", text); made.href = to; return made; }
function svg(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Numbers as text.

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const count = n => n >= 10000 ? compact.format(n) : String(n < 10 ? Math.round(n * 100) / 100 : Math.round(n));
function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit++; }
  return `${n < 10 && unit ? Math.round(n * 10) / 10 : Math.round(n)} ${units[unit]}`;
}
const percent = part => `${Math.round(1000 * part) / 10} %`;
const micros = us => us < 1000 ? `${count(us)} µs` : us < 1e6 ? `${count(us / 1000)} ms` : `${count(us / 1e6)} s`;
function seconds(n) {
  if (n < 120) return `${n} s`;
  if (n < 7200) return `${Math.round(n / 60)} min`;
  return n < 172800 ? `${Math.round(n / 3600)} h` : `${Math.round(n / 86400)} d`;
}
const clock = (unix, exact) => new Date(1000 * unix)
  .toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: exact ? "2-digit" : undefined, hourCycle: "h23" });
const DATE = { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" };
const date = unix => unix > 0 ? new Date(1000 * unix).toLocaleString([], DATE) : "never";
const or = (value, text) => value === null || value === undefined || !Number.isFinite(value) ? "–" : text(value);

// Series: a track has the column `time` and others as long; counters may begin anew.

const nothing = { time: [] };
function rise(track, column, i, j) {
  const of = track[column];
  return of && i >= 0 && j < of.length && of[j] >= of[i] ? of[j] - of[i] : null;
}
const joined = (track, i) => i > 0 && track.time[i] > track.time[i - 1] && track.time[i] - track.time[i - 1] <= GAP_SECONDS;
const sum = values => values.some(value => value === null) ? null : values.reduce((total, value) => total + value, 0);
const gauge = column => track => track[column] || [];
// Per second, of one counter or of several together.
const rate = (...columns) => track => track.time.map((at, i) => {
  const total = joined(track, i) ? sum(columns.map(column => rise(track, column, i - 1, i))) : null;
  return total === null ? null : total / (at - track.time[i - 1]);
});
// A part of a whole, where there was any. Counters are not read at one moment: what is under way may be in one only.
const part = (some, all) => all && some !== null ? Math.min(1, some / all) : null;
const share = (some, all) => track => track.time.map((_, i) => {
  return joined(track, i) ? part(rise(track, some, i - 1, i), rise(track, all, i - 1, i)) : null;
});
const shareNow = (track, some, all) => overNow(track, (i, j) => part(rise(track, some, i, j), rise(track, all, i, j)));
const rateNow = (track, ...columns) => overNow(track, (i, j) => {
  const total = sum(columns.map(column => rise(track, column, i, j)));
  return total === null ? null : total / (track.time[j] - track.time[i]);
});
function overNow(track, look) {
  const last = track.time.length - 1;
  const first = track.time.findIndex(at => at >= track.time[last] - NOW_SECONDS);
  return first >= 0 && first < last ? look(first, last) : null;
}
const newest = (track, column) => track[column] ? track[column][track[column].length - 1] : undefined;
// Nobody asked: there is no latency.
const someLatency = column => track => (track[column] || []).map(us => us > 0 ? us : null);

// Units: how a value is written, and where an axis has its ticks.

function niceTicks(top, base) {
  const unit = base ** Math.max(0, Math.floor(Math.log(top / 4) / Math.log(base)));
  const steps = base === 1024 ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [0.1, 0.2, 0.5, 1, 2, 5, 10];
  const step = unit * steps.find(step => unit * step >= top / 4);
  return Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, i) => i * step);
}
const UNITS = {
  ratio: { text: percent, ticks: () => [0, 0.25, 0.5, 0.75, 1] },
  count: { text: count, ticks: top => niceTicks(Math.max(top, 3), 10) },
  rate: { text: n => `${count(n)}/s`, ticks: top => niceTicks(Math.max(top, 0.3), 10) },
  bytes: { text: bytes, ticks: top => niceTicks(Math.max(top, 1024), 1024) },
  byteRate: { text: n => `${bytes(n)}/s`, ticks: top => niceTicks(Math.max(top, 1024), 1024) },
  // Logarithmic: what lies between RAM and a slow source is six powers of ten.
  latency: { text: micros, log: true, ticks: (top, low) => {
    const first = Math.floor(Math.log10(low)), last = Math.max(first + 1, Math.ceil(Math.log10(top)));
    return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
  } },
};
function timeTicks(begin, end, room) {
  const step = [15, 30, 60, 120, 300, 600, 900, 1800].find(step => (end - begin) / step <= room) || 3600;
  const ticks = [];
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) ticks.push(at);
  return ticks;
}

// A chart. `lines` are [name, hue, values of a track]; with `stacked` each lies on those before it.
function chart(title, unitName, lines, { stacked = false } = {}) {
  const unit = UNITS[unitName];
  const root = element("figure", undefined, stacked ? "chart stacked" : "chart");
  const when = element("span"), legend = element("ul", undefined, "legend");
  const box = svg("svg", { tabindex: 0, role: "img" });
  const entries = lines.map(([name, hue]) => {
    const value = element("b");
    legend.append(within(element("li"), element("i", undefined, hue), `${name} `, value));
    return value;
  });
  within(root, within(element("figcaption"), title, when), legend, box);
  let time = [], values = [], tops = [], begin = 0, end = 1, x = () => 0, y = () => 0, marks = null;

  function update(track) {
    // All charts have one axis: from the first sample of any on, and a minute at least.
    end = known.last || Math.floor(Date.now() / 1000);
    begin = Math.max(end - span, Math.min(known.first, end - 60));
    const first = track.time.findIndex(at => at >= begin), from = first < 0 ? track.time.length : first;
    time = track.time.slice(from);
    values = lines.map(([, , of]) => of(track).slice(from));
    const upTo = (k, i) => sum(values.slice(0, k + 1).map(line => line[i] ?? null));
    tops = stacked ? values.map((line, k) => line.map((_, i) => upTo(k, i))) : values;
    draw();
  }

  function draw() {
    const width = box.clientWidth, height = box.clientHeight;
    if (!width) return;
    box.replaceChildren();
    box.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const shown = tops.flat().filter(value => value !== null && value !== undefined);
    const ticks = unit.ticks(Math.max(0, ...shown), Math.max(1, Math.min(...shown, 1000)));
    const low = ticks[0], high = ticks[ticks.length - 1], bottom = height - PLOT.bottom, right = width - PLOT.right;
    const part = value => unit.log ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : value / high;
    x = at => PLOT.left + (at - begin) / (end - begin) * (right - PLOT.left);
    y = value => bottom - part(value) * (bottom - PLOT.top);
    for (const tick of ticks) {
      box.append(svg("line", { class: "grid", x1: PLOT.left, x2: right, y1: y(tick), y2: y(tick) }));
      box.append(svg("text", { x: PLOT.left - 6, y: y(tick) + 4, "text-anchor": "end" }, unit.text(tick)));
    }
    box.append(svg("line", { class: "axis", x1: PLOT.left, x2: right, y1: bottom, y2: bottom }));
    for (const at of timeTicks(begin, end, (right - PLOT.left) / (end - begin < 180 ? 75 : 50))) {
      box.append(svg("line", { class: "axis", x1: x(at), x2: x(at), y1: bottom, y2: bottom + 4 }));
      const anchor = x(at) > right - 18 ? "end" : "middle";
      box.append(svg("text", { x: x(at), y: height - 5, "text-anchor": anchor }, clock(at, end - begin < 180)));
    }
    if (!shown.length) {
      const why = time.length < 2 ? "figures come in some seconds" : "nothing in this time";
      box.append(svg("text", { x: (PLOT.left + right) / 2, y: (PLOT.top + bottom) / 2, "text-anchor": "middle" }, why));
    }
    for (const k of [...lines.keys()].reverse()) curve(k);
    marks = svg("g", {});
    box.append(marks);
    const newestOf = k => values[k][time.length - 1];
    const says = lines.map(([name], k) => `${name} ${or(newestOf(k), unit.text)}`).join(", ");
    const times = `${clock(begin)} to ${clock(end)}`;
    box.setAttribute("aria-label", `${title}, ${times}. Last: ${says}. Arrow keys read older values.`);
    point();
  }

  function curve(k) {
    const runs = [[]];
    tops[k].forEach((value, i) => {
      if (value === null || value === undefined) return void runs.push([]);
      if (i > 0 && time[i] - time[i - 1] > GAP_SECONDS) runs.push([]);
      runs[runs.length - 1].push(i);
    });
    const place = (of, i) => `${x(time[i]).toFixed(1)},${y(of[i] ?? 0).toFixed(1)}`;
    for (const run of runs.filter(run => run.length)) {
      const path = `M${run.map(i => place(tops[k], i)).join("L")}`;
      const first = x(time[run[0]]).toFixed(1), last = x(time[run[run.length - 1]]).toFixed(1);
      const floor = stacked && k > 0
        ? [...run].reverse().map(i => place(tops[k - 1], i)).join("L")
        : `${last},${box.clientHeight - PLOT.bottom}L${first},${box.clientHeight - PLOT.bottom}`;
      if (stacked || k === 0) box.append(svg("path", { class: `area ${lines[k][1]}`, d: `${path}L${floor}Z` }));
      // One alone is a dot: its line has a length of nearly nothing, and round ends.
      box.append(svg("path", { class: `curve ${lines[k][1]}`, d: run.length > 1 ? path : `${path}h0.01` }));
    }
  }

  // The values at the cursor, or the last ones.
  function point() {
    if (!marks) return;
    marks.replaceChildren();
    const i = cursor === null ? time.length - 1 : nearest(time, cursor);
    when.textContent = cursor === null || i < 0 ? "" : clock(time[i], true);
    entries.forEach((entry, k) => { entry.textContent = or(i < 0 ? null : values[k][i], unit.text); });
    if (cursor === null || i < 0) return;
    const here = x(time[i]);
    marks.append(svg("line", { class: "hair", x1: here, x2: here, y1: PLOT.top, y2: box.clientHeight - PLOT.bottom }));
    lines.forEach(([, hue], k) => {
      const value = tops[k][i];
      if (value === null || value === undefined) return;
      marks.append(svg("circle", { class: `dot ${hue}`, cx: here, cy: y(value), r: 3.5 }));
    });
  }

  const at = event => begin + (event.clientX - box.getBoundingClientRect().left - PLOT.left)
    / (box.clientWidth - PLOT.left - PLOT.right) * (end - begin);
  box.addEventListener("pointermove", event => moveCursor(at(event)));
  box.addEventListener("pointerdown", event => moveCursor(at(event)));
  box.addEventListener("pointerleave", () => moveCursor(null));
  box.addEventListener("blur", () => moveCursor(null));
  box.addEventListener("keydown", event => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") moveCursor(null);
    if (steps === undefined || !time.length) return;
    event.preventDefault();
    const i = cursor === null ? time.length : nearest(time, cursor);
    moveCursor(time[Math.min(time.length - 1, Math.max(0, i + steps))]);
    const says = lines.map(([name], k) => `${name} ${entries[k].textContent}`).join(", ");
    byId("cursor").textContent = `${when.textContent}: ${says}`;
  });
  new ResizeObserver(draw).observe(box);
  return { root, update, point };
}

function nearest(time, at) {
  let best = time.length - 1;
  for (let i = best; i >= 0 && Math.abs(time[i] - at) <= Math.abs(time[best] - at); i--) best = i;
  return best;
}

// All charts of the page have one cursor.
function moveCursor(to) {
  cursor = to;
  for (const chart of view.charts) chart.point();
}

// Parts of pages.

function facts(list) {
  return within(element("dl"), ...list.map(([what, value]) => within(element("div"), element("dt", what), element("dd", value))));
}
function panel(title, ...children) {
  return within(element("section", undefined, "panel"), element("h3", title), ...children);
}
function grid(charts) { return within(element("div", undefined, "charts"), ...charts.map(chart => chart.root)); }

const nameOf = d => `${d.database || "default"}.${d.name}`;
const pageOf = name => `#/dictionary/${encodeURIComponent(name)}`;
const trackOf = name => known.series.get(name) || nothing;
const isCache = d => !/^(Direct|ComplexKeyDirect)$/.test(d.type);
function lifetime(d) {
  if (d.lifetime_max > 0) return `${seconds(d.lifetime_min)} to ${seconds(d.lifetime_max)}`;
  return isCache(d) ? "for ever" : "–";
}
const isOnFlash = d => d.type.startsWith("SSD");

// How a dictionary is, in a word, and why if it is not well: with all of it, or in short beside the text of the error.
function health(d) {
  if (d.status.startsWith("FAILED")) return { word: d.status, level: "bad", why: d.last_exception || "It could not be opened." };
  if (d.error_count > 0) {
    const short = `the source failed ${d.error_count > 1 ? `${count(d.error_count)} times in a row` : "once"}`;
    return { word: "source fails", level: "bad", short, why: `${short}: ${d.last_exception}` };
  }
  // Whoever looks for changes (UPDATE_FIELD) counts no failures.
  if (d.last_exception) return { word: `${d.status}, with an error`, level: "warn", why: d.last_exception };
  return { word: d.status, level: d.status.startsWith("LOADED") ? "good" : "idle", why: "" };
}
function pill({ word, level }) { return element("span", word, `pill ${level}`); }

const hitRatio = () => chart("Hit ratio", "ratio", [["keys that hit", "blue", share("keys_hit", "keys_requested")]]);
const keysAsked = () => chart("Keys", "rate", [["asked of the source", "blue", rate("keys_requested")]]);
const getRatio = () => chart("Hit ratio", "ratio", [["gets that hit", "blue", share("get_hits", "cmd_get")]]);

// A card is made once, and told what is new.
function card(name, to, ratio) {
  const root = element("article"), title = within(element("h2"), link(name, to));
  const head = within(element("div", undefined, "head"), title), about = element("p", "", "about");
  let state = null, facts = null;
  within(root, head, about, ratio.root);
  return { root, ratio, show(track, text, newState, newFacts) {
    about.textContent = text;
    for (const old of [state, facts]) if (old) old.remove();
    [state, facts] = [pill(newState), newFacts];
    within(head, state);
    within(root, facts);
    root.className = newState.level === "bad" ? "failing" : "";
    ratio.update(track);
  } };
}

function showDictionary(card, d) {
  const track = trackOf(nameOf(d)), state = health(d);
  card.show(track, `${d.type} over ${d.source}`, state, facts([
    ["hit ratio, 1 min", isCache(d) ? or(shareNow(track, "keys_hit", "keys_requested"), percent) : "–"],
    ["since start", isCache(d) && d.keys_requested > 0 ? percent(d.hit_rate) : "–"],
    ["keys", or(rateNow(track, "keys_requested"), UNITS.rate.text)],
    ["source, keys", or(rateNow(track, "source_keys"), UNITS.rate.text)],
    ["lookup, 99 %", or(latencyNow(track, "lookup_us_p99"), us => `≤ ${micros(us)}`)],
    ["entries", count(d.element_count)],
    ["RAM", bytes(d.bytes_allocated)],
    isOnFlash(d) ? ["flash written", or(rateNow(track, "flash_bytes_written"), UNITS.byteRate.text)] : ["lifetime", lifetime(d)],
    ["source failures", count(d.source_errors)],
  ]));
}
const latencyNow = (track, column) => {
  const last = newest(track, column);
  return last > 0 ? last : null;
};

function showMemcached(card) {
  const track = known.memcached.series, now = column => newest(track, column);
  card.show(track, `memcached's protocol on ${known.memcached.address}`, { word: "SERVING", level: "good" }, facts([
    ["hit ratio, 1 min", or(shareNow(track, "get_hits", "cmd_get"), percent)],
    ["since start", now("cmd_get") > 0 ? percent(now("get_hits") / now("cmd_get")) : "–"],
    ["gets", or(rateNow(track, "cmd_get"), UNITS.rate.text)],
    ["sets", or(rateNow(track, "cmd_set"), UNITS.rate.text)],
    ["evictions", or(rateNow(track, "evictions"), UNITS.rate.text)],
    ["items", or(now("items"), count)],
    ["RAM, items", or(now("ram_memory_bytes"), bytes)],
    ["flash written", or(rateNow(track, "flash_written_bytes"), UNITS.byteRate.text)],
    ["connections", or(now("connections"), count)],
  ]));
}

const volumeTrack = name => known.volumes?.series.get(name) || nothing;
const requests = () => chart("Requests", "rate", [
  ["reads", "blue", rate("reads")], ["writes", "amber", rate("writes")], ["flushes", "grey", rate("flushes")],
]);
const volumeLatency = (title, part) => chart(title, "latency", [
  ["reads ≤", "blue", someLatency(`read_us_${part}`)], ["writes ≤", "amber", someLatency(`write_us_${part}`)],
  ["flushes ≤", "grey", someLatency(`flush_us_${part}`)],
]);
// One counter for each of another.
const eachNow = (track, some, all) => overNow(track, (i, j) => {
  const [part, whole] = [rise(track, some, i, j), rise(track, all, i, j)];
  return whole > 0 && part !== null ? part / whole : null;
});
const live = track => (track.blocks_mapped || []).map((mapped, i) => part(mapped, track.log_blocks_used[i]));

function volumeFacts(track) {
  const now = column => newest(track, column);
  return [
    ["reads", or(rateNow(track, "reads"), UNITS.rate.text)],
    ["writes", or(rateNow(track, "writes"), UNITS.rate.text)],
    ["read, 99 %", or(latencyNow(track, "read_us_p99"), us => `≤ ${micros(us)}`)],
    ["write, 99 %", or(latencyNow(track, "write_us_p99"), us => `≤ ${micros(us)}`)],
    ["flush, 99 %", or(latencyNow(track, "flush_us_p99"), us => `≤ ${micros(us)}`)],
    ["blocks in use", or(part(now("blocks_mapped"), now("blocks")), percent)],
    ["live share of the log", or(live(track).at(-1), percent)],
    ["free segments", or(now("segments_free"), count)],
    ["written : asked for, 1 min", or(eachNow(track, "device_written_bytes", "written_bytes"), n => n.toFixed(2))],
    ["blocks damaged", or(now("blocks_damaged"), count)],
  ];
}

function showVolume(card, name) {
  const track = volumeTrack(name), damaged = newest(track, "blocks_damaged") > 0;
  const state = damaged ? { word: "DAMAGED", level: "bad" } : { word: "SERVING", level: "good" };
  card.show(track, `volume at ${known.volumes.address}`, state, facts(volumeFacts(track)));
}

// Pages: each has a root, its charts, and `update`.

function overview() {
  const root = element("div"), trouble = element("section", undefined, "trouble");
  const cards = element("section", undefined, "cards");
  const made = new Map(), charts = [];
  trouble.setAttribute("role", "alert");
  cards.setAttribute("aria-label", "Caches");
  let said = "";
  function cardOf(key, make) {
    if (!made.has(key)) {
      const one = make();
      made.set(key, one);
      charts.push(one.ratio);
    }
    return made.get(key);
  }
  function update() {
    const shown = [];
    if (known.memcached) {
      const one = cardOf("memcached", () => card("memcached", "#/memcached", getRatio()));
      shown.push([one, () => showMemcached(one)]);
    }
    for (const name of known.volumes?.series.keys() || []) {
      const one = cardOf(`volume ${name}`, () => card(name, `#/volume/${encodeURIComponent(name)}`, requests()));
      shown.push([one, () => showVolume(one, name)]);
    }
    // What needs somebody comes first.
    const order = [...known.dictionaries].sort((a, b) => (health(b).level === "bad") - (health(a).level === "bad"));
    for (const d of order) {
      const name = nameOf(d), one = cardOf(`${d.type} ${name}`, () => card(name, pageOf(name), isCache(d) ? hitRatio() : keysAsked()));
      shown.push([one, () => showDictionary(one, d)]);
    }
    const roots = shown.map(([one]) => one.root);
    const areSame = cards.children.length === roots.length && roots.every((root, i) => cards.children[i] === root);
    if (!areSame) cards.replaceChildren(...roots);
    shown.forEach(([, show]) => show());
    const troubled = order.filter(d => health(d).why);
    trouble.hidden = !troubled.length;
    // It is read aloud, once.
    const says = troubled.map(d => nameOf(d) + d.last_exception).join(" ");
    const line = d => within(element("p"), link(nameOf(d), pageOf(nameOf(d))), `: ${health(d).why}`);
    if (says !== said) trouble.replaceChildren(...troubled.map(line));
    said = says;
  }
  within(root, trouble, cards);
  return { title: "Granary", root, charts, update };
}

// What there is to draw of a layout: DIRECT keeps nothing, and CACHE has no flash.
function chartsOf(d) {
  const left = [["too large", "violet", rate("entries_too_large")]];
  if (isOnFlash(d)) left.unshift(["device too slow", "red", rate("entries_dropped")]);
  left.unshift([isOnFlash(d) ? "no room in the index" : "no room", "amber", rate("index_evictions")]);
  return [
    isCache(d) && hitRatio(),
    chart("Keys", "rate", [
      ["asked for", "blue", rate("keys_requested")], ["missed", "amber", rate("keys_missed")],
      ["expired", "violet", rate("keys_expired")], ["asked of the source", "green", rate("source_keys")],
    ]),
    chart("Lookup of a batch", "latency", [
      ["99 % ≤", "amber", someLatency("lookup_us_p99")], ["median ≤", "blue", someLatency("lookup_us_p50")],
    ]),
    chart("Source load", "rate", [
      ["requests", "blue", rate("source_requests")], ["failures", "red", rate("source_errors")],
    ]),
    isOnFlash(d) && chart("Found in", "rate", [
      ["RAM", "green", rate("hits_memory")], ["write buffer", "violet", rate("hits_buffer")],
      ["flash", "blue", rate("hits_flash")],
    ], { stacked: true }),
    isOnFlash(d) && chart("Flash", "byteRate", [
      ["written", "amber", rate("flash_bytes_written")], ["read", "blue", rate("flash_bytes_read")],
    ]),
    isCache(d) && chart("Entries", "count", [["entries", "blue", gauge("element_count")]]),
    isCache(d) && chart("Entries that left or were not kept", "rate", left),
    isCache(d) && chart("RAM", "bytes", [
      ["index", "blue", gauge("index_bytes")], ["RAM tier", "green", gauge("memory_bytes")],
      ["write buffers", "violet", gauge("buffer_bytes")],
    ], { stacked: true }),
  ].filter(chart => chart);
}

function dictionaryPage(name) {
  const root = element("div"), head = element("div", undefined, "head near"), about = element("p", "", "about");
  const errors = element("section", undefined, "panel"), figures = element("section", undefined, "panel");
  const ddl = element("pre", "", "wrapped");
  const charts = [], drawn = element("div", undefined, "charts");
  let state = null;
  within(root, within(element("p"), link("← Overview", "#/")), head, about, errors, drawn, figures, panel("Definition", ddl));
  head.append(element("h2", name));
  // One whose file names no database is in none for SQL, and found from all.
  const quoted = text => `\`${text.replaceAll("\\", "\\\\").replaceAll("`", "\\`")}\``;
  let layout, asked;
  async function ask(d) {
    const full = d.database ? `${quoted(d.database)}.${quoted(d.name)}` : quoted(d.name);
    try {
      ddl.textContent = await sql(`SHOW CREATE DICTIONARY ${full}`, "TabSeparatedRaw");
    } catch (error) {
      ddl.textContent = error.message;
    }
  }
  function update() {
    const d = known.dictionaries.find(d => nameOf(d) === name), track = trackOf(name);
    if (!d) {
      about.textContent = known.silent ? "" : "There is no such dictionary, or you may not see it.";
      return;
    }
    // One that is opened only now has no layout before.
    const shown = JSON.stringify([d.type, d.source, d.comment]);
    if (asked !== shown) ask(d);
    asked = shown;
    if (layout !== d.type) {
      layout = d.type;
      charts.splice(0, charts.length, ...chartsOf(d));
      drawn.replaceChildren(...charts.map(chart => chart.root));
    }
    charts.forEach(chart => chart.update(track));
    const how = health(d);
    if (state) state.remove();
    head.append(state = pill(how));
    about.textContent = `${d.type} over ${d.source}${d.comment ? `. ${d.comment}` : ""}`;
    const failures = [...(known.failures.get(name) || [])].reverse();
    const when = ({ first, last }) => last > first ? `${date(first)} to ${clock(last, true)}` : date(first);
    const rows = failures.map(one => within(element("tr"), element("td", when(one)), element("td", one.text)));
    errors.hidden = !rows.length && !how.why;
    errors.replaceChildren(element("h3", "Last errors"));
    const why = rows.length && how.short ? how.short : how.why;
    if (why) errors.append(element("p", why, how.level));
    if (rows.length) {
      const header = within(element("tr"), element("th", "When"), element("th", "What"));
      errors.append(within(element("table"), within(element("thead"), header), within(element("tbody"), ...rows)));
    }
    figures.replaceChildren(element("h3", "Figures, counters since the start"), facts([
      ["open since", date(d.opened)],
      ["source last answered", date(d.answered)],
      isCache(d) && ["lifetime of entries", lifetime(d)],
      ["key", d.key],
      isCache(d) && ["entries", count(d.element_count)],
      isCache(d) && ["entries at most", d.capacity > 0 ? count(d.capacity) : "as fit"],
      isCache(d) && ["load factor", percent(d.load_factor)],
      ["RAM", bytes(d.bytes_allocated)],
      isCache(d) && ["index per entry", d.element_count > 0 ? `${(d.index_bytes / d.element_count).toFixed(1)} B` : "–"],
      ["keys asked for", count(d.keys_requested)],
      isCache(d) && ["hit ratio", d.keys_requested > 0 ? percent(d.hit_rate) : "–"],
      ["found, source counted", d.keys_requested > 0 ? percent(d.found_rate) : "–"],
      isCache(d) && ["source spared", d.source_keys > 0 ? percent(1 - d.source_keys / d.keys_requested) : "–"],
      isCache(d) && ["absent keys answered", count(d.keys_negative)],
      ["waited for another's request", count(d.keys_joined)],
      ["lookup, median", d.lookups > 0 ? `≤ ${micros(d.lookup_us_p50)}` : "–"],
      ["lookup, 99 %", d.lookups > 0 ? `≤ ${micros(d.lookup_us_p99)}` : "–"],
      ["requests to the source", count(d.source_requests)],
      ["of these failed", count(d.source_errors)],
      ["keys a request", d.source_requests > 0 ? count(d.source_keys / d.source_requests) : "–"],
      d.compression_versions > 0 && ["compression ratio", d.compression_ratio.toFixed(2)],
      d.compression_versions > 0 && ["compression dictionaries", count(d.compression_versions)],
      d.compression_versions > 0 && ["dictionaries trained", count(d.compression_trainings)],
      isOnFlash(d) && ["flash written", bytes(d.flash_bytes_written)],
      isOnFlash(d) && ["write amplification", d.bytes_put > 0 ? d.write_amplification.toFixed(2) : "–"],
      isOnFlash(d) && ["flash wear a day, as now", or(rateNow(track, "flash_bytes_written"), perSecond => bytes(86400 * perSecond))],
      isOnFlash(d) && ["blocks corrupt", count(d.flash_blocks_corrupt)],
      isCache(d) && ["entries too large", count(d.entries_too_large)],
      isOnFlash(d) && ["entries dropped", count(d.entries_dropped)],
    ].filter(fact => fact)));
  }
  return { title: `${name} – Granary`, root, charts, update };
}

function memcachedPage() {
  const root = element("div"), figures = element("section", undefined, "panel"), about = element("p", "", "about");
  const others = ["cmd_touch", "cmd_meta", "incr_hits", "incr_misses", "decr_hits", "decr_misses"];
  const charts = [
    getRatio(),
    chart("Commands", "rate", [
      ["get", "blue", rate("cmd_get")], ["set", "amber", rate("cmd_set")],
      ["delete", "red", rate("delete_hits", "delete_misses")], ["others", "grey", rate(...others)],
    ]),
    chart("Found in", "rate", [
      ["RAM", "green", rate("hits_memory")], ["write buffer", "violet", rate("hits_buffer")],
      ["flash", "blue", rate("hits_flash")], ["nowhere", "grey", rate("get_misses")],
    ], { stacked: true }),
    chart("Items that left or were not kept", "rate", [
      ["evicted", "amber", rate("evictions")], ["expired when asked for", "blue", rate("get_expired")],
      ["dropped or too large", "red", rate("items_dropped", "items_too_large")],
    ]),
    chart("Items", "count", [["items", "blue", gauge("items")]]),
    chart("RAM", "bytes", [
      ["items", "green", gauge("ram_memory_bytes")], ["index", "blue", gauge("ram_index_bytes")],
      ["write buffers", "violet", gauge("ram_buffer_bytes")], ["policy", "grey", gauge("ram_policy_bytes")],
    ], { stacked: true }),
    chart("Flash", "byteRate", [
      ["written", "amber", rate("flash_written_bytes")], ["read", "blue", rate("flash_read_bytes")],
    ]),
    chart("Network", "byteRate", [
      ["to clients", "blue", rate("network_written_bytes")], ["from clients", "amber", rate("network_read_bytes")],
    ]),
    chart("Connections", "count", [["open", "blue", gauge("connections")]]),
  ];
  within(root, element("h2", "memcached"), about, grid(charts), figures);
  function update() {
    if (!known.memcached) {
      about.textContent = "This server does not serve memcached's protocol, or you may not see it. The flag --memcached starts it.";
      charts.forEach(chart => chart.update(nothing));
      return;
    }
    const track = known.memcached.series, now = column => newest(track, column);
    const has = (column, text = count) => or(now(column), text);
    charts.forEach(chart => chart.update(track));
    about.textContent = `memcached's protocol on ${known.memcached.address}`;
    figures.replaceChildren(element("h3", "Figures, counters since the start"), facts([
      ["running for", has("uptime_seconds", seconds)],
      ["RAM at most", has("memory_bytes_max", bytes)],
      ["flash at most", has("flash_bytes_max", bytes)],
      ["threads", has("threads")],
      ["connections at most", has("connections_max")],
      ["connections so far", has("connections_accepted")],
      ["gets", has("cmd_get")],
      ["hit ratio", now("cmd_get") > 0 ? percent(now("get_hits") / now("cmd_get")) : "–"],
      ["sets", has("cmd_set")],
      ["items stored", has("items_stored")],
      ["items now", has("items")],
      ["index per item", now("items") > 0 ? `${(now("ram_index_bytes") / now("items")).toFixed(1)} B` : "–"],
      ["evictions", has("evictions")],
      ["items dropped", has("items_dropped")],
      ["items too large", or(sum([now("items_too_large") ?? null, now("items_refused") ?? null]), count)],
      now("value_kept_bytes") > 0 && ["compression ratio", (now("value_raw_bytes") / now("value_kept_bytes")).toFixed(2)],
      now("value_kept_bytes") > 0 && ["compression dictionaries", has("compression_versions")],
      now("value_kept_bytes") > 0 && ["dictionaries trained", has("compression_trainings")],
      ["flash written", has("flash_written_bytes", bytes)],
      ["flash wear a day, as now", or(rateNow(track, "flash_written_bytes"), perSecond => bytes(86400 * perSecond))],
      ["written for each byte stored", now("put_bytes") > 0 ? (now("flash_written_bytes") / now("put_bytes")).toFixed(2) : "–"],
      ["blocks corrupt", has("flash_blocks_corrupt")],
      ["write errors", has("flash_write_errors")],
      ["logins refused", has("auth_errors")],
    ].filter(fact => fact)));
  }
  return { title: "memcached – Granary", root, charts, update };
}

function volumePage(name) {
  const root = element("div"), figures = element("section", undefined, "panel"), about = element("p", "", "about");
  const charts = [
    requests(),
    chart("Bytes of clients", "byteRate", [["read", "blue", rate("read_bytes")], ["written", "amber", rate("written_bytes")]]),
    volumeLatency("Latency, 99 %", "p99"),
    volumeLatency("Latency, median", "p50"),
    chart("Space", "ratio", [
      ["blocks in use", "blue", track => (track.blocks_mapped || []).map((mapped, i) => part(mapped, track.blocks[i]))],
      ["live share of the log", "green", live],
    ]),
    chart("Segments", "count", [["free", "green", gauge("segments_free")]]),
    chart("Cleaning", "rate", [
      ["blocks moved", "amber", rate("blocks_moved")], ["segments emptied", "blue", rate("segments_cleaned")],
      ["writes that waited", "red", rate("write_waits")],
    ]),
    chart("Written to the device", "byteRate", [
      ["all", "amber", rate("device_written_bytes")], ["asked for", "blue", rate("written_bytes")],
    ]),
    chart("RAM", "bytes", [
      ["map", "blue", gauge("ram_map_bytes")], ["checksums", "green", gauge("ram_checksum_bytes")],
      ["write buffers", "violet", gauge("ram_buffer_bytes")],
    ], { stacked: true }),
  ];
  within(root, element("h2", name), about, grid(charts), figures);
  function update() {
    const track = volumeTrack(name), now = column => newest(track, column);
    const has = (column, text = count) => or(now(column), text);
    charts.forEach(chart => chart.update(track));
    about.textContent = known.volumes?.series.has(name)
      ? `volume at ${known.volumes.address}`
      : "This server does not serve such a volume, or you may not see it. The flag --nbd serves volumes.";
    const written = now("written_bytes") > 0 ? (now("device_written_bytes") / now("written_bytes")).toFixed(2) : "–";
    figures.replaceChildren(element("h3", "Figures, counters since the start"), facts([
      ...volumeFacts(track),
      ["read", has("read_bytes", bytes)],
      ["written", has("written_bytes", bytes)],
      ["written to the device", has("device_written_bytes", bytes)],
      ["written : asked for", written],
      ["flushes", has("flushes")],
      ["blocks trimmed", has("blocks_trimmed")],
      ["segments", has("segments")],
      ["maps written down", has("checkpoints")],
      ["writes that waited", has("write_waits")],
    ]));
  }
  return { title: `${name} – Granary`, root, charts, update };
}

function queryPage() {
  const root = element("section"), box = element("textarea"), button = element("button", "Run");
  const took = element("span", "Ctrl+Enter runs it, too."), answer = element("pre");
  root.setAttribute("aria-label", "Query");
  box.value = sessionStorage.getItem("query") || QUERY;
  box.spellcheck = false;
  box.setAttribute("aria-label", "SQL");
  answer.tabIndex = 0;
  answer.setAttribute("aria-label", "Answer");
  async function run() {
    const started = performance.now();
    sessionStorage.setItem("query", box.value);
    try {
      answer.textContent = await sql(box.value, "PrettyCompact");
      answer.className = "";
    } catch (error) {
      answer.textContent = error.message;
      answer.className = "bad wrapped";
    }
    took.textContent = `${(performance.now() - started).toFixed(0)} ms`;
    look();
  }
  button.addEventListener("click", run);
  box.addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  within(root, box, within(element("div", undefined, "run"), button, took), answer);
  return { title: "Query – Granary", root, charts: [], update() {} };
}

// What the page is about is behind the #.
function route() {
  const [, page, encoded] = location.hash.split("/");
  let name = encoded;
  try { name = decodeURIComponent(encoded); } catch { /* nobody wrote it by our links */ }
  cursor = null;
  view = page === "dictionary" && encoded ? dictionaryPage(name)
    : page === "volume" && encoded ? volumePage(name)
    : page === "memcached" ? memcachedPage() : page === "query" ? queryPage() : overview();
  document.title = view.title;
  byId("main").replaceChildren(view.root);
  for (const id of ["overview", "memcached", "query"]) {
    const here = byId(`to-${id}`), current = (page || "overview") === id;
    if (current) here.setAttribute("aria-current", "page"); else here.removeAttribute("aria-current");
  }
  view.update();
}

// What the server says.

async function sql(query, format) {
  const answer = await fetch(`./?default_format=${format}`, { method: "POST", body: query });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.trim());
  return text;
}

async function look() {
  try {
    const times = "toUnixTimestamp(loading_start_time) AS opened, toUnixTimestamp(last_successful_update_time) AS answered";
    const query = `SELECT *, ${times} FROM system.dictionaries`;
    known.dictionaries = JSON.parse(await sql(query, "JSON")).data;
    known.silent = "";
  } catch (error) {
    known.silent ||= `No answer since ${clock(Date.now() / 1000, true)}, what is shown is from before: ${error.message}`;
  }
  summarize();
  view.update();
}

function summarize() {
  const summary = byId("summary"), all = known.dictionaries;
  const total = column => all.reduce((total, d) => total + Number(d[column]), 0);
  const failing = all.filter(d => health(d).level === "bad").length;
  const dictionaries = `${all.length} ${all.length === 1 ? "dictionary" : "dictionaries"}`;
  const sizes = `${count(total("element_count"))} entries, ${bytes(total("bytes_allocated"))} of RAM`;
  const some = `${dictionaries}, ${sizes}${failing ? `, ${failing} failing` : ""}`;
  const text = known.silent || (all.length ? some : "No dictionaries yet: CREATE DICTIONARY makes one.");
  // It is read aloud when it changes; numbers change all the time.
  summary.setAttribute("aria-live", known.silent ? "assertive" : "off");
  summary.textContent = text;
  summary.className = known.silent ? "bad" : "";
}

// Adds what is new to a track, and forgets what is older than the longest span.
function extend(track, fresh) {
  const old = track.time.findIndex(at => at >= (fresh.time[fresh.time.length - 1] ?? 0) - 3600);
  const kept = name => (track[name] || []).slice(Math.max(0, old));
  return Object.fromEntries(Object.entries(fresh).map(([name, values]) => [name, [...kept(name), ...values]]));
}

async function remember() {
  if (document.hidden && known.last) return;
  try {
    const answer = await fetch(`dashboard/history?since=${known.last}`);
    if (!answer.ok) return;
    const { dictionaries, memcached, volumes } = await answer.json();
    const series = new Map();
    for (const [name, one] of Object.entries(dictionaries)) {
      series.set(name, extend(trackOf(name), one.series));
      known.failures.set(name, one.failures);
    }
    known.series = series;
    const before = known.memcached?.series || nothing;
    if (memcached) known.memcached = { address: memcached.address, series: extend(before, memcached.series) };
    byId("to-memcached").hidden = !known.memcached;
    if (volumes) {
      const tracks = Object.entries(volumes.series).map(([name, fresh]) => [name, extend(volumeTrack(name), fresh)]);
      known.volumes = { address: volumes.address, series: new Map(tracks) };
    }
    const others = known.volumes ? known.volumes.series.values() : [];
    const times = [...series.values(), known.memcached?.series || nothing, ...others].map(track => track.time);
    known.first = Math.min(...times.flatMap(time => time.slice(0, 1)));
    known.last = Math.max(known.last, ...times.flatMap(time => time.slice(-1)));
  } catch { /* the summary says it */ }
}

// Switches, which the browser remembers where it may.

function kept(name) { try { return localStorage.getItem(name); } catch { return null; } }
function keep(name, value) { try { localStorage.setItem(name, value); } catch { /* until it is closed, then */ } }
function switches(id, fallback, apply) {
  const choice = byId(id);
  choice.value = kept(id) || fallback;
  if (!choice.value) choice.value = fallback;
  choice.addEventListener("change", () => { keep(id, choice.value); apply(choice.value); });
  apply(choice.value);
}

switches("theme", "auto", theme => { document.documentElement.dataset.theme = theme; });
switches("span", "900", value => { span = Number(value); if (view) view.update(); });
window.addEventListener("hashchange", () => {
  route();
  window.scrollTo(0, 0);
  byId("main").focus({ preventScroll: true });
});
route();
remember().then(look);
setInterval(() => { if (!document.hidden) look(); }, LOOK_MS);
setInterval(remember, HISTORY_MS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) remember().then(look); });
