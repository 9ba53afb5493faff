// The timeline of one call: an SVG that is drawn anew for every view, with no more bars than pixels.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  const box = document.getElementById("timeline");
  if (!data.runs.length || !box) return;

  const NS = "http://www.w3.org/2000/svg";
  const LANES = {
    method: ["Method", 18], delegates: ["Delegates", 26], operators: ["Operators", 20],
    phases: ["Phases", 20], layers: ["Layers, host", 20], device: ["Layers, device", 20],
  };
  const AXIS = 24, LANE_GAP = 10, ROW_GAP = 2, MIN_WINDOW_US = 0.05;
  const chart = box.querySelector(".tl-chart"), overview = box.querySelector(".tl-overview");
  const detail = box.querySelector(".tl-detail"), picker = box.querySelector("select");
  const search = box.querySelector("input[type=search]"), found = box.querySelector(".tl-found");
  const ruler = document.createElement("canvas").getContext("2d");
  const widths = new Map();
  let run, spans, rows, height, from, to, selected = null, matches = null, pending = false;

  // --- data -------------------------------------------------------------------------------------------------------

  const unpack = (row, index) => ({
    index, lane: data.lanes[row[0]], depth: row[1], name: data.names[row[2]], start: row[3], us: row[4],
    end: row[3] + row[4], style: data.styles[row[5]], sources: (row[6] || []).map((k) => data.sources[k]),
    facts: row[7] == null ? [] : data.facts[row[7]],
  });

  function load(index) {
    run = data.runs[index];
    spans = run.spans.map(unpack);
    picker.value = String(index);
    arrange();
    select(null);
    find();
    fit();
  }

  // Gives every row of every lane its place.
  function arrange() {
    rows = [];
    height = AXIS + 4;
    let lane = null;
    for (const span of spans) {
      let row = rows[rows.length - 1];
      if (!row || row.lane !== span.lane || row.depth !== span.depth) {
        if (lane !== null && span.lane !== lane) height += LANE_GAP;
        if (span.lane !== lane && narrow()) height += 14;
        row = { lane: span.lane, depth: span.depth, y: height, h: LANES[span.lane][1], spans: [] };
        lane = span.lane;
        rows.push(row);
        height += row.h + ROW_GAP;
      }
      row.spans.push(span);
      span.row = row;
    }
    height += 6;
  }

  const total = () => Math.max(...spans.map((span) => span.end), 1e-3);
  const narrow = () => box.clientWidth < 640;
  const gutter = () => (narrow() ? 0 : 112);
  const chartWidth = () => Math.max(chart.clientWidth - gutter() - 1, 50);
  const x = (us) => gutter() + ((us - from) / (to - from)) * chartWidth();

  // --- drawing ----------------------------------------------------------------------------------------------------

  function shape(tag, attributes, text) {
    const node = document.createElementNS(NS, tag);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function duration(us) {
    const [value, unit] = us < 1000 ? [us, "µs"] : us < 1e6 ? [us / 1000, "ms"] : [us / 1e6, "s"];
    return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)} ${unit}`;
  }

  function ticks(lower, upper, count) {
    const raw = (upper - lower) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw);
    const marks = [];
    for (let k = Math.ceil(lower / step); k * step <= upper; k++) marks.push(k * step);
    return [marks, step];
  }

  function tickLabel(us, step) {
    const [scale, unit] = to >= 1e6 ? [1e6, "s"] : to >= 1000 ? [1000, "ms"] : [1, "µs"];
    const digits = Math.min(6, Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9)));
    return `${(us / scale).toFixed(digits)} ${unit}`;
  }

  function draw() {
    pending = false;
    const width = gutter() + chartWidth();
    const svg = shape("svg", { width, height, class: "tl-svg", "aria-hidden": "true" });
    const [marks, step] = ticks(from, to, Math.max(2, chartWidth() / 95));
    for (const mark of marks) {
      svg.append(shape("line", { x1: x(mark), x2: x(mark), y1: AXIS - 4, y2: height, class: "grid" }));
      const anchor = x(mark) > width - 40 ? "end" : x(mark) < gutter() + 20 ? "start" : "middle";
      svg.append(shape("text", { x: x(mark), y: 13, "text-anchor": anchor, class: "tick" }, tickLabel(mark, step)));
    }
    for (const row of rows) {
      if (row.depth === 0) {
        const at = narrow() ? { x: 0, y: row.y - 4 } : { x: 0, y: row.y + row.h / 2 + 4 };
        svg.append(shape("text", { ...at, class: "lane" }, LANES[row.lane][0]));
      }
      drawRow(svg, row, width);
    }
    if (selected && selected.end >= from && selected.start <= to) svg.append(outline(selected, width));
    chart.replaceChildren(svg);
  }

  function drawRow(svg, row, width) {
    let edge = -1;
    for (let k = firstVisible(row.spans); k < row.spans.length && row.spans[k].start <= to; k++) {
      const span = row.spans[k];
      const left = Math.max(x(span.start), gutter()), right = Math.min(x(span.end), width);
      if (span.end < from || (right <= edge && !matches)) continue; // Hidden behind the bar before it, less than a pixel wide.
      const wide = Math.max(right - left - (right - left > 4 ? 1 : 0), 1);
      const dim = matches && !matches.has(span.index) ? " dim" : "";
      svg.append(shape("rect", {
        x: left.toFixed(2), y: row.y, width: wide.toFixed(2), height: row.h, rx: wide > 6 ? 2 : 0,
        class: `bar ${span.style}${dim}`, "data-span": span.index,
      }));
      if (wide > 34 && row.h > 14) drawLabel(svg, span, left + 5, row.y + row.h / 2 + 4, wide - 10, dim);
      edge = Math.max(right, left + 1);
    }
  }

  // Spans of a row are in order and do not overlap.
  function firstVisible(list) {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle].end < from) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function drawLabel(svg, span, left, y, room, dim) {
    const time = duration(span.us), name = span.name.replace(/^torchtrt\./, ""), module = span.sources.length === 1 ? span.sources[0][1] : "";
    // The longest that fits: of a layer's name its module is the telling part.
    const choices = span.style === "gap" ? [time] : [`${name}, ${time}`, name, module, module.split(".").slice(-2).join(".")];
    const text = choices.find((choice) => choice && measure(choice) <= room) ?? fitted(choices[0], room);
    if (text) svg.append(shape("text", { x: left, y, class: `label${dim} ${span.style}` }, text));
  }

  function measure(text) {
    if (!widths.has(text)) {
      ruler.font = "11px " + getComputedStyle(document.body).fontFamily;
      widths.set(text, ruler.measureText(text).width);
    }
    return widths.get(text);
  }

  function fitted(text, room) {
    if (measure(text) <= room) return text;
    const keep = Math.floor((room / measure(text)) * text.length) - 1;
    return keep < 6 ? "" : `${text.slice(0, keep)}…`;
  }

  function outline(span, width) {
    const left = Math.max(x(span.start), gutter()), right = Math.max(Math.min(x(span.end), width), left + 2);
    return shape("rect", {
      x: left - 1, y: span.row.y - 1, width: right - left + 1, height: span.row.h + 2, rx: 3, class: "selected",
    });
  }

  function drawOverview() {
    const width = Math.max(overview.clientWidth, 50), scale = width / total();
    const svg = shape("svg", { width, height: 22, "aria-hidden": "true" });
    for (const row of rows) {
      if (row.lane !== "delegates" && row.lane !== "operators") continue;
      for (const span of row.spans.slice(0, 500)) {
        const wide = Math.max(span.us * scale, 0.5);
        svg.append(shape("rect", { x: span.start * scale, y: 4, width: wide, height: 14, class: `bar ${span.style}` }));
      }
    }
    const left = from * scale, right = to * scale;
    svg.append(shape("rect", { x: 0, y: 0, width: Math.max(left, 0), height: 22, class: "shade" }));
    svg.append(shape("rect", { x: right, y: 0, width: Math.max(width - right, 0), height: 22, class: "shade" }));
    svg.append(shape("rect", { x: left + 0.5, y: 0.5, width: Math.max(right - left - 1, 2), height: 21, rx: 2, class: "window" }));
    overview.replaceChildren(svg);
  }

  function redraw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(drawAll);
  }

  function drawAll() {
    draw();
    drawOverview();
  }

  // --- view -------------------------------------------------------------------------------------------------------

  function view(lower, upper) {
    const whole = total() * 1.002, window = Math.min(Math.max(upper - lower, MIN_WINDOW_US), whole);
    from = Math.min(Math.max(lower, 0), whole - window);
    to = from + window;
    redraw();
  }

  const fit = () => view(0, total() * 1.002);
  const pan = (part) => view(from + part * (to - from), to + part * (to - from));

  function zoom(factor, at = selected && inView(selected) ? (selected.start + selected.end) / 2 : (from + to) / 2) {
    const pivot = Math.min(Math.max(at, from), to);
    view(pivot - (pivot - from) * factor, pivot + (to - pivot) * factor);
  }

  const inView = (span) => span.end >= from && span.start <= to;

  function zoomTo(span) {
    const margin = Math.max(span.us * 0.08, MIN_WINDOW_US / 2);
    view(span.start - margin, span.end + margin);
  }

  // --- selection --------------------------------------------------------------------------------------------------

  function select(span) {
    selected = span;
    describe(span);
    if (span && (span.end < from || span.start > to)) view(span.start - (to - from) / 2, span.start + (to - from) / 2);
    if (from !== undefined) redraw();
  }

  function line(term, value) {
    const row = document.createElement("div"), left = document.createElement("dt"), right = document.createElement("dd");
    left.textContent = term;
    right.textContent = value;
    row.append(left, right);
    return row;
  }

  function describe(span) {
    if (!span) {
      const facts = document.createElement("dl");
      for (const [key, value] of run.facts) facts.append(line(key, value));
      detail.replaceChildren(Object.assign(document.createElement("h3"), { textContent: run.title }), facts);
      return;
    }
    const title = Object.assign(document.createElement("h3"), { textContent: span.name });
    const list = document.createElement("dl");
    const share = run.host_us && span.lane !== "device" ? `, ${((100 * span.us) / run.host_us).toFixed(1)} % of the call` : "";
    list.append(line("Duration", duration(span.us) + share));
    list.append(line("Start", duration(span.start)));
    list.append(line("Clock", span.lane === "device" ? "device; times are laid end to end" : "host"));
    for (const [op, module, location] of span.sources.slice(0, 6)) {
      list.append(line(span.sources.length > 1 ? "One of" : "Source", [op, module, location].filter(Boolean).join(" · ")));
    }
    if (span.sources.length > 6) list.append(line("", `and ${span.sources.length - 6} more operators`));
    for (const [key, value] of span.facts) list.append(line(key, value));
    detail.replaceChildren(title, list);
  }

  function step(direction) {
    if (!selected) return select(spans[0]);
    const list = selected.row.spans;
    select(list[Math.min(Math.max(list.indexOf(selected) + direction, 0), list.length - 1)]);
  }

  function changeRow(direction) {
    if (!selected) return select(spans[0]);
    const row = rows[rows.indexOf(selected.row) + direction];
    if (!row) return;
    const middle = selected.start + selected.us / 2;
    const distance = (span) => Math.max(span.start - middle, middle - span.end, 0);
    select(row.spans.reduce((best, span) => (distance(span) < distance(best) ? span : best)));
  }

  function find() {
    const wanted = search.value.trim().toLowerCase();
    matches = null;
    found.textContent = "";
    if (wanted) {
      const exact = /^"(.*)"$/.exec(wanted);
      const hits = spans.filter((span) => exact
        ? span.name.toLowerCase() === exact[1]
        : [span.name, ...span.sources.flat()].some((text) => text.toLowerCase().includes(wanted)));
      matches = new Set(hits.map((span) => span.index));
      const sum = hits.reduce((us, span) => us + span.us, 0);
      found.textContent = `${hits.length} bar${hits.length === 1 ? "" : "s"}, ${duration(sum)} together`;
    }
    redraw();
  }

  // --- input ------------------------------------------------------------------------------------------------------

  const keys = {
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => changeRow(-1), ArrowDown: () => changeRow(1),
    "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": fit, a: () => pan(-0.25), d: () => pan(0.25),
    Enter: () => selected && zoomTo(selected), Escape: () => select(null),
  };
  chart.addEventListener("keydown", (event) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });

  const spanAt = (event) => spans[event.target.dataset?.span];
  const usAt = (clientX) => from + ((clientX - chart.getBoundingClientRect().left - gutter()) / chartWidth()) * (to - from);

  chart.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, usAt(event.clientX));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / chartWidth());
    else return;
    event.preventDefault();
  }, { passive: false });
  chart.addEventListener("dblclick", (event) => spanAt(event) && zoomTo(spanAt(event)));

  const pointers = new Map();
  let moved = 0, pressed = null;
  chart.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event.clientX);
    pressed = spanAt(event);
    moved = 0;
  });
  chart.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return hover(event);
    const before = [...pointers.values()];
    pointers.set(event.pointerId, event.clientX);
    const after = [...pointers.values()];
    if (after.length === 2) {
      const gap = (values) => Math.max(Math.abs(values[0] - values[1]), 10);
      zoom(gap(before) / gap(after), usAt((after[0] + after[1]) / 2));
    } else {
      moved += Math.abs(after[0] - before[0]);
      if (moved > 3) pan((before[0] - after[0]) / chartWidth());
    }
  });
  const release = (event) => {
    if (event.type === "pointerup" && pointers.size === 1 && moved <= 3) select(pressed || null);
    pointers.delete(event.pointerId);
  };
  for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, (e) => pointers.has(e.pointerId) && release(e));

  function hover(event) {
    if (event.pointerType !== "mouse") return;
    const span = spanAt(event);
    if (!selected) describe(span || null);
    chart.title = span ? `${span.name}\n${duration(span.us)}` : "";
  }
  chart.addEventListener("pointerleave", () => !selected && describe(null));

  function jump(event) {
    if (!(event.buttons & 1)) return;
    const area = overview.getBoundingClientRect();
    const at = ((event.clientX - area.left) / area.width) * total(), half = (to - from) / 2;
    view(at - half, at + half);
  }
  overview.addEventListener("pointerdown", jump);
  overview.addEventListener("pointermove", jump);

  const actions = {
    in: () => zoom(0.6), out: () => zoom(1 / 0.6), fit,
    previous: () => load(Math.max(picker.selectedIndex - 1, 0)),
    next: () => load(Math.min(picker.selectedIndex + 1, data.runs.length - 1)),
  };
  for (const button of box.querySelectorAll("button[data-action]")) {
    button.addEventListener("click", actions[button.dataset.action]);
  }
  picker.addEventListener("change", () => load(picker.selectedIndex));
  search.addEventListener("input", find);
  for (const button of document.querySelectorAll("[data-find]")) {
    button.addEventListener("click", () => {
      search.value = button.dataset.find;
      find();
      box.scrollIntoView({ block: "start" });
      search.focus({ preventScroll: true });
    });
  }
  for (const mark of document.querySelectorAll("[data-run]")) {
    const show = () => { load(Number(mark.dataset.run)); box.scrollIntoView({ block: "start" }); };
    mark.addEventListener("click", show);
    mark.addEventListener("keydown", (event) => event.key === "Enter" && show());
  }
  new ResizeObserver(() => { arrange(); redraw(); }).observe(chart);

  window.addEventListener("beforeprint", drawAll);

  load(data.selected);
  drawAll(); // At once: a page that is read before its first frame has its bars.
  box.classList.add("ready");
})();
