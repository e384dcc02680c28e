// What pages cannot say in HTML alone: prices that move while they are dragged, work that goes
// on, figures. Everything shown comes from the studio's own server.
"use strict";

const find = (what, where = document) => where.querySelector(what);
const every = (what, where = document) => [...where.querySelectorAll(what)];

function write(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

async function read(place, options) {
  const answer = await fetch(place, { headers: { Accept: "application/json" }, ...options });
  const found = await answer.json().catch(() => ({ error: "The studio does not respond." }));
  if (found && found.error) throw new Error(found.error);
  return found;
}

function number(value) {
  if (value === null || value === undefined) return "not known";
  const size = Math.abs(value);
  if (size >= 10) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(3)).toString();
}

// --- figures -----------------------------------------------------------------------------------

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The library that draws is large. Buttons must not wait for it; figures do.
const undrawn = [];

function whenDrawing(act) {
  if (window.Plotly) act(); else undrawn.push(act);
}

find("#plotly").addEventListener("load", () => { for (const act of undrawn.splice(0)) act(); });

function draw(place, figure) {
  if (figure) whenDrawing(() => drawNow(place, figure));
}

function drawNow(place, figure) {
  place.replaceChildren();
  const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false, automargin: true };
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--ink"), family: "system-ui, sans-serif", size: 12 },
    margin: { t: 10, r: 10, b: 45, l: 60 }, showlegend: figure.data.length > 1,
    legend: { orientation: "h", y: -0.35 },
    colorway: [colour("--accent"), colour("--inside-line"), colour("--bad"), "#7a6bb0", "#6b8e23", "#888888"],
    ...figure.layout,
  };
  layout.xaxis = { ...axis, ...figure.layout.xaxis };
  layout.yaxis = { ...axis, ...figure.layout.yaxis };
  const data = figure.data.map((trace) => {
    const { inside, ...plain } = trace;
    if (!inside) return plain;
    const shade = colour("--inside-line");
    return { ...plain, line: { color: shade, dash: "dot" }, marker: { ...plain.marker, color: shade } };
  });
  window.Plotly.react(place, data, layout, { displayModeBar: false, responsive: true });
}

function drawAll() {
  for (const place of every("[data-figure]")) draw(place, JSON.parse(place.nextElementSibling.textContent));
  for (const place of every("[data-figure-from]")) {
    read(place.dataset.figureFrom).then((figure) => draw(place, figure)).catch((e) => { place.textContent = e.message; });
  }
  for (const place of every("[data-heat]")) {
    read(place.dataset.heat).then((figure) => draw(place, figure)).catch((e) => { place.textContent = e.message; });
  }
  for (const button of every("[data-image]")) {
    const wanted = { format: button.dataset.image, width: 900, height: 500, filename: "release" };
    button.addEventListener("click", () => whenDrawing(() => window.Plotly.downloadImage(document.getElementById(button.dataset.of), wanted)));
  }
}

// --- prices ------------------------------------------------------------------------------------

// The slider runs from 0.01 to 10 on a logarithmic scale: 100 steps for each power of ten.
const toEpsilon = (step) => Number((0.01 * 10 ** (step / 100)).toPrecision(2));
const toStep = (epsilon) => Math.round(100 * Math.log10(epsilon / 0.01));

function watchPrice(form) {
  const epsilon = find("#epsilon", form), range = find("#epsilon-range", form), delta = find("#delta", form);
  const asked = find("#asked", form), pay = find("#pay", form), plan = find("#plan", form);
  const budget = find(".budget", form), left = Number(budget.dataset.left), total = Number(budget.dataset.total);
  const mechanism = find("#mechanism", form);
  const base = `/study/${form.dataset.study}`;
  let timer, curveOf = null, turn = 0;
  if ("noCurve" in form.dataset) find("#curve", form).dataset.empty = "";

  function address(name, more) {
    const fields = { asked: asked.value, delta: delta ? delta.value : "0", ...more };
    return `${base}/${name}.json?${new URLSearchParams(fields)}`;
  }

  function mark() {
    const price = Number(epsilon.value);
    const share = find("#this-share", form);
    const over = price > left + 1e-12;
    share.style.width = `${Math.min(100, (100 * (price || 0)) / total)}%`;
    share.classList.toggle("over", over);
    find("#left-after", form).textContent = price > 0 ? (over ? `${number(left)} left: too little` : `${number(left - price)} left afterwards`) : `${number(left)} left`;
  }

  function wait(words) {
    pay.disabled = true;
    pay.textContent = words;
  }

  async function refresh() {
    // Whatever was written before is read now: a plan that is still due would only disable the
    // button under somebody's finger.
    clearTimeout(timer);
    mark();
    point();
    const mine = ++turn;
    if (!asked.value) return wait("Choose a question and a price");
    if (!(Number(epsilon.value) > 0)) { drawCurve(); return wait("Choose a price"); }
    wait("Predicting the error…");
    try {
      const made = await read(address("plan", { epsilon: epsilon.value, mechanism: mechanism.value }));
      if (mine !== turn) return;
      showPlan(plan, made, (name) => { mechanism.value = name; refresh(); }, mechanism.value);
      find("#meaning", form).textContent = made.meaning;
      pay.disabled = !made.affordable;
      pay.textContent = made.affordable ? `Spend epsilon = ${epsilon.value} and ask` : "Not enough budget is left";
    } catch (problem) {
      if (mine !== turn) return;
      plan.replaceChildren(write("p", problem.message, { class: "problem" }));
      wait("This question cannot be answered here");
    }
    drawCurve();
  }

  async function drawCurve() {
    const key = asked.value + (delta ? delta.value : "");
    const place = find("#curve", form);
    if ("noCurve" in form.dataset || !asked.value || curveOf === key) return;
    curveOf = key;
    try {
      const figure = await read(address("curve"));
      if (curveOf === key) { draw(place, figure); whenDrawing(point); }
    } catch { place.replaceChildren(); }
  }

  // A line at the price that is chosen, on the curve of errors.
  function point() {
    const place = find("#curve", form), price = Number(epsilon.value);
    if (!place.data || !(price > 0)) return;
    const shape = { type: "line", x0: price, x1: price, yref: "paper", y0: 0, y1: 1, line: { color: colour("--soft"), dash: "dot" } };
    window.Plotly.relayout(place, { shapes: [shape] });
  }

  // From the first keystroke on nothing can be paid until the plan for what is written is shown.
  function hold() {
    turn += 1;
    wait("Predicting the error…");
  }

  const later = () => { clearTimeout(timer); hold(); mark(); point(); timer = setTimeout(refresh, 250); };
  range.addEventListener("input", () => { epsilon.value = toEpsilon(Number(range.value)); later(); });
  epsilon.addEventListener("input", () => { if (Number(epsilon.value) > 0) range.value = toStep(Number(epsilon.value)); later(); });
  if (delta) delta.addEventListener("input", later);
  for (const chip of every("[data-epsilon]", form)) {
    chip.addEventListener("click", () => { epsilon.value = chip.dataset.epsilon; range.value = toStep(Number(epsilon.value)); refresh(); });
  }
  for (const card of every("[data-asked]", form)) {
    card.addEventListener("click", () => {
      for (const other of every("[data-asked]", form)) other.setAttribute("aria-pressed", String(other === card));
      asked.value = card.dataset.asked;
      mechanism.value = "";
      const text = find("#text", form);
      if (text) text.value = JSON.parse(card.dataset.asked).text || "";
      refresh();
    });
  }
  const text = find("#text", form);
  if (text) text.addEventListener("input", () => {
    for (const other of every("[data-asked]", form)) other.setAttribute("aria-pressed", "false");
    asked.value = text.value.trim() ? JSON.stringify({ kind: "graph", text: text.value.trim() }) : "";
    mechanism.value = "";
    later();
  });
  for (const field of every("[data-argument]", form)) field.addEventListener("input", () => {
    const said = {};
    for (const one of every("[data-argument]", form)) {
      const value = "text" in one.dataset ? one.value.trim() : Number(one.value) > 0 ? Number(one.value) : "";
      if (value) said[one.dataset.argument] = value;
    }
    const missing = every("[data-needed]", form).some((one) => !(one.dataset.argument in said));
    asked.value = Object.keys(said).length && !missing ? JSON.stringify({ kind: asked.dataset.kind, question: asked.dataset.question, arguments: said }) : "";
    later();
  });
  watchSql(form, base, asked, hold, refresh);
  form.addEventListener("submit", () => { pay.disabled = true; pay.textContent = "Recording the price…"; });
  mark();
}

function showPlan(place, made, choose, chosen) {
  const parts = made.parts.length ? made.parts : [made];
  const table = write("table");
  const head = write("tr");
  for (const title of ["mechanism", "19 of 20 within", "on any data"]) head.append(write("th", title));
  table.append(head);
  for (const part of parts) for (const offer of part.offers) {
    const row = write("tr", undefined, { class: offer.chosen ? "chosen" : "" });
    const name = write("td");
    name.append(write("span", `${offer.chosen ? "→ " : ""}${offer.mechanism}`), write("br"), write("small", made.parts.length ? `${part.query}: ${offer.title}` : offer.title));
    if (!made.parts.length && !offer.chosen) {
      const button = write("button", "use this one", { type: "button", class: "link" });
      button.addEventListener("click", () => choose(offer.mechanism));
      name.append(button);
    }
    row.append(name);
    for (const width of [offer.half_width_95, offer.half_width_95_on_any_data]) row.append(write("td", width === null ? "not known" : `± ${number(width)}`, { class: "number" }));
    table.append(row);
  }
  const notes = [];
  if (made.parts.length && made.half_width_95 !== null) notes.push(write("p", `Together: 19 of 20 answers within ± ${number(made.half_width_95)}.`));
  const columns = (made.columns || []).filter((column) => column.half_width_95 !== null);
  if (columns.length) notes.push(write("p", `19 of 20 answers within: ${columns.map((column) => `${column.column} ± ${number(column.half_width_95)}`).join(", ")}.`));
  if (made.unpredicted) notes.push(write("p", made.unpredicted, { class: "small" }));
  for (const part of made.parts.length ? made.parts : [made]) for (const words of [...(part.not_in_the_error || []), ...(part.expected || [])]) notes.push(write("p", words, { class: "small" }));
  if (made.stand_in) notes.push(write("p", `Typical errors are those of ${made.stand_in.split(";")[0]}.`, { class: "small" }));
  if (chosen) {
    const back = write("button", "let the plan choose again", { type: "button", class: "link" });
    back.addEventListener("click", () => choose(""));
    notes.push(back);
  }
  place.replaceChildren(table, ...notes);
}

function watchSql(form, base, asked, hold, refresh) {
  const field = find("#sql", form);
  if (!field) return;
  const problem = find("#sql-problem", form), place = find("#sql-place", form);
  const options = every("[data-option]", form);
  let timer, turn = 0;
  async function check() {
    const mine = ++turn;
    asked.value = "";
    if (!field.value.trim()) { problem.hidden = place.hidden = true; return refresh(); }
    const said = { text: field.value };
    for (const option of options) if (option.value.trim()) said[option.dataset.option] = option.value;
    const found = await read(`${base}/check.json?${new URLSearchParams(said)}`).catch((e) => ({ problem: e.message }));
    if (mine !== turn) return;
    problem.hidden = !found.problem;
    problem.textContent = found.problem || "";
    place.hidden = !found.place;
    if (found.place) {
      const [start, end] = found.place;
      place.replaceChildren(document.createTextNode(field.value.slice(0, start)), write("mark", field.value.slice(start, end)), document.createTextNode(field.value.slice(end)));
    }
    if (!found.problem) asked.value = JSON.stringify(found.asked);
    refresh();
  }
  // Until it is checked, what is written is no question: the one before must not be paid instead.
  for (const one of [field, ...options]) one.addEventListener("input", () => {
    clearTimeout(timer);
    asked.value = "";
    hold();
    timer = setTimeout(check, 350);
  });
}

// --- work that goes on --------------------------------------------------------------------------

async function follow(box) {
  if (!["waiting", "running"].includes(box.dataset.state)) return;
  const bar = find("progress", box), label = find("[data-label]", box);
  for (;;) {
    await new Promise((done) => setTimeout(done, 400));
    let job;
    try { job = await read(`/jobs/${box.dataset.job}.json`); } catch { continue; }
    if (!["waiting", "running"].includes(job.state)) { window.location.reload(); return; }
    box.className = `job ${job.state}`;
    if (job.fraction === null) bar.removeAttribute("value"); else bar.value = job.fraction;
    label.textContent = job.state === "waiting" ? "waits its turn" : `${job.label || "at work"}, ${job.seconds} s`;
  }
}

// --- the truth, inside ---------------------------------------------------------------------------

function watchTruth(button) {
  button.addEventListener("click", async () => {
    const place = find("#truth");
    button.disabled = true;
    place.textContent = "Computing the truth…";
    try {
      const found = await read(button.dataset.truth);
      place.replaceChildren();
      if (typeof found.truth === "number") place.append(write("p", `The truth is ${found.truth.toLocaleString("en")}; the release is off by ${number(found.off)}. This stays inside.`));
      const figure = write("div", undefined, { class: "figure" });
      place.append(figure);
      draw(figure, found.figure);
    } catch (problem) { place.replaceChildren(write("p", problem.message, { class: "problem" })); }
    button.disabled = false;
  });
}

function watchAttack(form) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const place = find("#attacked");
    place.textContent = "Attacking…";
    try {
      const found = await read(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      const percent = (share) => `${(100 * share).toFixed(1)} %`;
      const rows = [["They believed before", percent(found.before)], ["They believe after", found.after === null ? "not computed" : percent(found.after)],
        ["The guarantee allows", `${percent(found.limits[0])} to ${percent(found.limits[1])}`]];
      const list = write("dl");
      for (const [name, value] of rows) list.append(write("dt", name), write("dd", value));
      const figure = write("div", undefined, { class: "figure" });
      place.replaceChildren(write("p", found.secret), list, figure, write("p", found.words, { class: "small" }));
      draw(figure, found.figure);
    } catch (problem) { place.replaceChildren(write("p", problem.message, { class: "problem" })); }
  });
}

function watchCompare(button) {
  button.addEventListener("click", async () => {
    const place = find("#compared");
    button.disabled = true;
    try {
      const { job } = await read(button.dataset.compare, { method: "POST" });
      for (;;) {
        const state = await read(`/jobs/${job}.json`);
        place.textContent = `${state.label || "waiting"}, ${state.seconds} s`;
        if (state.state === "done") break;
        if (!["waiting", "running"].includes(state.state)) throw new Error(state.problem);
        await new Promise((done) => setTimeout(done, 400));
      }
      showComparison(place, await read(`/study/${button.dataset.study}/compared/${job}.json`));
    } catch (problem) { place.replaceChildren(write("p", problem.message, { class: "problem" })); }
    button.disabled = false;
  });
}

function showComparison(place, found) {
  const table = write("table"), head = write("tr");
  for (const title of ["", "original (inside)", "synthetic", "score", ""]) head.append(write("th", title));
  table.append(head);
  for (const row of found.rows) {
    const line = write("tr");
    line.append(write("td", row.question));
    for (const value of [row.true, row.made, row.score]) line.append(write("td", typeof value === "number" ? number(value) : value || "", { class: "number" }));
    line.append(write("td", row.measure, { class: "small" }));
    table.append(line);
  }
  const figure = write("div", undefined, { class: "figure" });
  place.replaceChildren(table, figure);
  draw(figure, found.figure);
}

// --- everything ------------------------------------------------------------------------------------

document.addEventListener("DOMContentLoaded", () => {
  drawAll();
  every("#ask").forEach(watchPrice);
  every("[data-job]").forEach(follow);
  every("#reveal").forEach(watchTruth);
  every("#compare").forEach(watchCompare);
  every("#attack").forEach(watchAttack);
  for (const field of every("[data-submit]")) field.addEventListener("change", () => field.form.submit());
  for (const chip of every("[data-fill]")) chip.addEventListener("click", () => { document.getElementById(chip.dataset.fill).value = chip.dataset.value; });
  for (const owner of every("[data-owner]")) owner.addEventListener("input", () => {
    const choice = find("select", owner.closest("tr"));
    if (owner.value && !choice.value) choice.value = "owned";
  });
});
