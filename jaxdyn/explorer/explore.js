// The front end of a claim with knobs, used by the server's page and in notebooks.
// `mount` builds it in an element; a link exchanges JSON: {send(content), listen(callback), address}.

const make = (tag, props = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !name.startsWith("aria")) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};

const plain = (text) => text.replace(/_/g, "_\u200b"); // names may break after an underscore
const listed = (text) => text.match(/(?:"(?:[^"]|"")*"|[^,])+/g) ?? [text]; // commas within quotes belong to a value
const SEEDS = "seeds"; // the knob that is no field of the setting
const AS = { seeds: "--seeds", plain: "--plain" }; // the page's own options in an address: no field has such a name
const OWN = "#own"; // the address of the claim's own values: an empty one stands for those with which the server was started
const seconds = (ms) => (ms < 995 ? `${Math.round(ms / 10) * 10} ms` : `${(ms / 1000).toFixed(1)} s`);

function nearest(stops, text) { // undefined for a text that is no number
  const middle = listed(text)[Math.floor((listed(text).length - 1) / 2)].trim();
  const value = middle === "" ? NaN : Number(middle);
  if (!Number.isFinite(value)) return undefined;
  let best = 0;
  stops.forEach((stop, i) => { if (Math.abs(stop - value) < Math.abs(stops[best] - value)) best = i; });
  return best;
}

// one knob: a label, possibly a slider or a list, a text field, and a button that restores the claim's own values
function knobOf(knob, changed, prefix) {
  const id = `${prefix}-${knob.name}`;
  const row = make("div", { className: "knob" });
  row.dataset.knob = knob.name;
  const several = listed(knob.own).length > 1;
  const parts = [];
  const own = make("button", {
    type: "button", className: "own", title: "The claim's own value", "aria-label": `${knob.name}: the claim's own value`,
    onclick: () => { set(knob.own); changed(); text.focus(); },
  }, "↺");
  const text = knob.options.length
    ? make("select", { id, onchange: () => { set(text.value); changed(); } },
      ...(several || !knob.options.includes(knob.own) ? [make("option", { value: knob.own }, several ? listed(knob.own).join(", ") : knob.own)] : []),
      ...knob.options.map((value) => make("option", { value }, value)))
    : make("input", {
      id, type: "text", autocomplete: "off", spellcheck: false, inputMode: knob.stops ? "decimal" : "text",
      onchange: () => { if (text.value.trim()) set(text.value.trim()); else set(knob.own); changed(); },
    });
  text.setAttribute("aria-describedby", `${id}-takes`);
  let slider = null, typed = true, stood = 0; // where the slider stood when a run was last made with it
  if (knob.stops) {
    const stops = knob.stops.values;
    slider = make("input", {
      type: "range", min: 0, max: stops.length - 1, step: 1, "aria-label": `${knob.name}, ${knob.stops.log ? "logarithmic" : "linear"} scale`,
      oninput: () => { set(stops[slider.value], true); changed(); },
    });
    parts.push(make("div", { className: "slide" }, slider,
      make("span", { className: "ends", "aria-hidden": "true" }, make("span", {}, stops[0]), make("span", {}, knob.stops.log ? "log" : ""), make("span", {}, stops.at(-1)))));
  }
  function set(value, bySlider = false) {
    if (knob.options.length && ![...text.options].some((o) => o.value === value)) text.append(make("option", { value }, value));
    text.value = text.title = value;
    row.classList.toggle("long", value.length > 16); // the text has a line of its own
    typed = !bySlider;
    if (slider && typed) slider.value = nearest(knob.stops.values, value) ?? slider.value;
    slider?.setAttribute("aria-valuetext", value);
    own.disabled = value === knob.own;
    row.classList.toggle("moved", value !== knob.own);
    row.classList.remove("wrong");
    text.removeAttribute("aria-invalid");
  }
  row.append(
    make("label", { htmlFor: id }, plain(knob.name)), make("div", { className: "set" }, text, own), ...parts,
    ...(knob.meaning ? [make("small", { id: `${id}-meaning`, className: "meaning" }, knob.meaning)] : []),
    make("small", { id: `${id}-takes` }, `${knob.takes}${knob.stops || knob.options.length ? "" : `; own: ${knob.own}`}`),
  );
  set(knob.own);
  return {
    knob, row, set,
    get value() { return text.value; },
    get moved() { return text.value !== knob.own; },
    refuse() {
      row.classList.add("wrong");
      text.setAttribute("aria-invalid", "true");
      if (slider && typed) slider.value = stood;
    },
    ran() { if (slider) stood = slider.value; },
  };
}

function copier(label, what) {
  const button = make("button", { type: "button", className: "copy", onclick: copy }, label);
  async function copy() {
    try {
      await navigator.clipboard.writeText(what());
    } catch { // the clipboard is not allowed here: copy through a selection
      const area = make("textarea", { value: what(), style: "position:fixed;opacity:0" });
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  }
  return button;
}

export function mount(root, link) {
  const prefix = `knob${Math.random().toString(36).slice(2, 8)}`;
  let controls = [], worlds = {}, world = null, figures = null, start;
  let number = 0, began = 0, drawn = 0, after = 0, stopping = false;

  const verdict = make("span", { className: "verdict" });
  const head = make("header", { className: "head" });
  const statement = make("div", { className: "statement" });
  const figure = make("div", { className: "drawing" });
  const caption = make("figcaption");
  const status = make("p", { className: "status", role: "status" }, "Connecting …");
  const stop = make("button", {
    type: "button", className: "stop",
    onclick: () => { stopping = stop.disabled = true; status.textContent = "Stopping …"; link.send({ kind: "stop", number }); },
  }, "Stop");
  const alarm = make("div", { className: "alarm", role: "alert" });
  const note = make("p", { className: "note", hidden: true });
  const terminal = make("pre", { className: "terminal", hidden: true, tabIndex: 0 });
  const checks = make("div", { className: "found" });
  const facts = make("div", { className: "facts" });
  const line = make("code");
  const command = make("div", { className: "command", hidden: true }, make("pre", { tabIndex: 0 }, line), copier("Copy", () => line.textContent));
  const form = make("form", { className: "knobs", "aria-label": "Knobs", onsubmit: (event) => event.preventDefault() });
  const look = make("section", { className: "look", "aria-label": "Result" },
    make("div", { className: "bar-of-verdict" }, verdict, status, stop), alarm, note, terminal, make("figure", {}, figure, caption));
  const rest = make("section", { className: "rest", "aria-label": "Checks" }, command, checks, make("details", {}, make("summary", {}, "Resolution, runs and settings"), facts));
  const again = make("button", { type: "button", hidden: true, onclick: () => location.reload() }, "Connect again");
  root.classList.add("explore");
  root.replaceChildren(head, statement, look, again, form, rest);
  watchFigures(root.getRootNode()).enlargeable(root); // from figures.js, which follows this module's text

  function position() { // the fields that differ from the claim's own, and apart from them the page's own options
    const moved = controls.filter((c) => c.moved);
    const fields = moved.filter((c) => c.knob.name !== SEEDS).map((c) => [c.knob.name, c.value]);
    const seeds = moved.find((c) => c.knob.name === SEEDS)?.value ?? null;
    return { values: Object.fromEntries(fields), seeds, plain: figures?.value === "plain" };
  }

  function addressed({ values, seeds, plain }) {
    const own = [...(seeds === null ? [] : [[AS.seeds, seeds]]), ...(plain ? [[AS.plain, "true"]] : [])];
    return `#${new URLSearchParams([...Object.entries(values), ...own])}`;
  }

  function kept(hash) { // the position that an address keeps
    const given = new URLSearchParams(hash === OWN ? "" : hash.slice(1));
    const fields = [...given].filter(([name]) => !Object.values(AS).includes(name));
    return { values: Object.fromEntries(fields), seeds: given.get(AS.seeds), plain: given.get(AS.plain) === "true" };
  }

  function entered() { // the world at whose values the knobs are: the one that was chosen, or the one with most fields
    const knobs = Object.fromEntries(controls.map((c) => [c.knob.name, c]));
    const fits = (name) => Object.entries(worlds[name]).every(([field, value]) => knobs[field]?.value === value);
    const differs = (name) => Object.keys(worlds[name]).some((field) => knobs[field].moved); // others are the claim's own
    const size = (name) => Object.keys(worlds[name]).length;
    const fitting = Object.keys(worlds).filter(fits);
    if (fitting.includes(world.value)) return world.value;
    return fitting.filter(differs).sort((a, b) => size(b) - size(a))[0] ?? "";
  }

  function moved() {
    const now = position();
    if (world) world.value = entered();
    if (link.address) history.replaceState(null, "", addressed(now) === "#" ? OWN : addressed(now));
    number += 1;
    stopping = stop.disabled = false;
    began = performance.now();
    root.setAttribute("aria-busy", "true");
    verdict.classList.add("pending");
    figure.classList.add("waiting");
    alarm.replaceChildren();
    status.textContent = "Running …";
    link.send({ kind: "move", number, ...now });
  }

  function place({ values = {}, seeds = null, plain = false } = {}) { // set knobs to these values, all others to the claim's own
    for (const { knob, set } of controls) {
      if (knob.name === SEEDS) set(seeds ?? knob.own);
      else set(Object.hasOwn(values, knob.name) ? values[knob.name] : knob.own);
    }
    if (figures) figures.value = plain ? "plain" : "own";
    if (world) world.value = "";
  }

  function claim(content) {
    worlds = content.worlds;
    head.replaceChildren(make("h1", {}, content.title), make("code", {}, content.id), make("small", {}, `expected: ${content.expected}`));
    statement.innerHTML = content.statement;
    controls = content.knobs.map((knob) => knobOf(knob, moved, prefix));
    const of = (group) => controls.filter((c) => c.knob.group === group).map((c) => c.row);
    const buttons = make("div", { className: "buttons" },
      make("button", { type: "button", onclick: () => { place(); moved(); } }, "The claim's own"),
      make("button", { type: "button", title: "One value for each knob", onclick: single }, "One setting"));
    if (link.address) buttons.append(copier("Copy link", () => location.href));
    const choices = [];
    if (Object.keys(worlds).length) {
      world = make("select", { id: `${prefix}-world`, onchange: enter }, make("option", { value: "" }, "the claim's own"),
        ...Object.keys(worlds).map((value) => make("option", { value }, value)));
      choices.push(make("div", { className: "knob" }, make("label", { htmlFor: world.id }, "World"), world,
        make("small", {}, "the claim's controls: one assumption broken")));
    }
    if (content.two_figures) {
      figures = make("select", { id: `${prefix}-figure`, onchange: moved }, make("option", { value: "own" }, "the claim's own"),
        make("option", { value: "plain" }, "measurement against prediction"));
      choices.push(make("div", { className: "knob" }, make("label", { htmlFor: figures.id }, "Figure"), figures));
    }
    const groups = [["main", "Knobs of the claim", true], ["more", "Other knobs", false], ["fixed", "Static fields and seeds: each change compiles", false]];
    form.replaceChildren(buttons, ...choices, ...groups.filter(([group]) => of(group).length).map(([group, title, open]) =>
      make("details", { open: open || !of("main").length && group === "more" }, make("summary", {}, title), ...of(group))));
    start = content.start;
    arrive();
  }

  function arrive() { // at the values in the address; without any, where the server was started
    const hash = link.address ? location.hash : "";
    const given = hash.length > 1 ? kept(hash) : start;
    place(given);
    for (const control of controls) if (control.moved) control.row.parentElement.open = true;
    moved();
    const lost = Object.keys(given.values).filter((name) => name === SEEDS || !controls.some((c) => c.knob.name === name));
    if (lost.length) alarm.replaceChildren(make("p", {}, `Not in this claim, and left out: ${lost.join(", ")}.`));
  }

  function enter() {
    const chosen = worlds[world.value] ?? {};
    const fields = new Set(Object.values(worlds).flatMap(Object.keys));
    for (const control of controls) {
      const name = control.knob.name;
      if (fields.has(name)) control.set(Object.hasOwn(chosen, name) ? chosen[name] : control.knob.own);
    }
    moved();
  }

  function single() {
    for (const control of controls) {
      const all = listed(control.value);
      if (control.knob.name !== "seeds" && all.length > 1) control.set(all[Math.floor((all.length - 1) / 2)]);
    }
    moved();
  }

  function picture(content) {
    if (content.number < drawn) return;
    drawn = content.number;
    figure.innerHTML = content.figure;
    caption.innerHTML = content.caption;
    terminal.hidden = true;
    note.classList.add("pending");
    figure.classList.remove("old", "waiting");
    if (content.number !== number) return;
    after = performance.now() - began;
    root.dataset.picture = Math.round(after);
    status.textContent = `Picture after ${seconds(after)}; judging …`;
  }

  function found(content) {
    if (content.number < drawn) return;
    checks.innerHTML = content.checks;
    checks.classList.add("pending");
  }

  function judged(content) {
    if (content.number !== number) return;
    root.removeAttribute("aria-busy");
    verdict.classList.remove("pending");
    verdict.innerHTML = content.badge;
    note.innerHTML = content.note;
    note.hidden = !content.note;
    note.className = `note v-${content.verdict}`;
    terminal.textContent = content.terminal;
    terminal.hidden = !content.terminal;
    checks.innerHTML = content.checks;
    checks.classList.remove("pending");
    facts.innerHTML = content.facts;
    line.textContent = content.command;
    command.hidden = false;
    figure.classList.toggle("old", Boolean(content.terminal));
    const shown = drawn === number ? `picture after ${seconds(after)}, ` : "";
    status.textContent = `Last run: ${shown}verdict after ${seconds(performance.now() - began)}${content.work}`;
    for (const control of controls) control.ran();
    root.dataset.judged = number;
  }

  function refused(content) {
    if (content.number !== number) return;
    root.removeAttribute("aria-busy");
    status.textContent = "Not run.";
    command.hidden = true; // it would repeat another run
    alarm.replaceChildren(make("p", {}, content.text));
    const name = /^(?:--set )?([\w-]+)[= ]/.exec(content.text)?.[1].replace(/^--/, "");
    controls.find((c) => c.knob.name === name)?.refuse();
    root.dataset.judged = number;
  }

  function stopped(content) { // part of what was to be shown may be there already
    if (content.number !== number) return;
    root.removeAttribute("aria-busy");
    for (const part of [verdict, figure, caption, note, checks, facts]) part.replaceChildren();
    verdict.classList.remove("pending");
    terminal.hidden = note.hidden = command.hidden = true;
    status.textContent = `Stopped after ${seconds(performance.now() - began)}; nothing is shown`;
    root.dataset.judged = number;
  }

  const answers = {
    claim, picture, checks: found, verdict: judged, refused, stopped,
    progress: (content) => { if (content.number === number && !stopping) status.textContent = `Running: ${content.text}`; },
    ended: () => {
      root.removeAttribute("aria-busy");
      status.textContent = "The server has ended: start jaxdyn explore again.";
      again.hidden = false;
    },
  };
  link.listen((content) => answers[content.kind]?.(content));
  if (link.address) window.addEventListener("hashchange", arrive);
  link.send({ kind: "hello" });
}

function page() {
  const address = new URL(`talk${location.search}`, location.href);
  address.protocol = location.protocol.replace("http", "ws");
  address.hash = "";
  const socket = new WebSocket(address);
  let hear = () => {};
  const link = { address: true, send: (content) => { if (socket.readyState === 1) socket.send(JSON.stringify(content)); }, listen: (callback) => { hear = callback; } };
  socket.addEventListener("open", () => mount(document.querySelector("#explore"), link));
  socket.addEventListener("message", (event) => hear(JSON.parse(event.data)));
  socket.addEventListener("close", () => hear({ kind: "ended" }));
}

export default {
  render({ model, el }) { // in a notebook, the style is isolated from the notebook's
    const inside = el.attachShadow({ mode: "open" });
    const root = make("div");
    inside.append(make("style", {}, model.get("style")), root);
    const hear = (callback) => model.on("msg:custom", (content) => callback(content));
    mount(root, { send: (content) => model.send(content), listen: hear });
  },
};

if (new URL(import.meta.url).pathname.endsWith("/explore.js")) page();
