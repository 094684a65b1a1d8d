// Figures: what is under the pointer (coordinates, cell, seed), and a large view that zooms. Used by all pages and the explorer.
// A drawing says in its <metadata> what its points are; without it, there is the large view only.
function watchFigures(root) {
  "use strict";
  const REACH = 12; // pixels from the pointer to a point
  const inside = root === document ? document.body : root;
  const make = (tag, props, ...children) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  };

  // the points of a drawing, in its own units: symbols are points, lines are pieces between two points
  const known = new WeakMap();
  function pointsOf(svg) {
    if (known.has(svg)) return known.get(svg);
    let found = null;
    try {
      const about = JSON.parse(svg.querySelector("metadata").textContent);
      found = { ...about, shapes: about.series.map((one, i) => shape(svg, one, i, about)) };
    } catch { /* a drawing that says nothing */ }
    known.set(svg, found);
    return found;
  }

  function shape(svg, one, number, about) {
    const points = [], pieces = [];
    const group = svg.querySelector(`[data-series="${number}"]`);
    const moved = svg.getScreenCTM().inverse();
    for (const node of group ? group.querySelectorAll("use, path") : []) {
      if (node.closest("defs")) continue;
      const symbol = node.localName === "use";
      const place = moved.multiply((symbol ? node.parentNode : node).getScreenCTM());
      const put = (x, y) => new DOMPoint(x, y).matrixTransform(place);
      if (symbol) points.push(put(Number(node.getAttribute("x")), Number(node.getAttribute("y"))));
      else if (getComputedStyle(node).fill !== "none") { // a symbol of its own size
        const box = node.getBBox();
        points.push(put(box.x + box.width / 2, box.y + box.height / 2));
      } else for (const run of runsOf(node.getAttribute("d"))) {
        run.map(([x, y]) => put(x, y)).forEach((point, i, all) => { if (i) pieces.push([all[i - 1], point]); });
      }
    }
    const whole = one.runs && !Array.isArray(one.runs[1]);
    let index = whole ? one.runs[1] : null;
    if (one.runs && !whole && one.runs[1].length === points.length) {
      let at = 0;
      index = one.runs[1].map((step) => (at += step));
    }
    return { points, pieces, index, table: one.runs && about.tables[one.runs[0]], axes: about.axes[one.ax], name: one.name, of: one.of, xy: one.xy || [1, 1] };
  }

  // the corners of a path that is made of straight pieces, as one list for each stretch
  function runsOf(d) {
    const runs = [];
    let [x, y, command] = [0, 0, "M"];
    const words = d.match(/[a-zA-Z]|-?(?:\d+\.?\d*|\.\d+)/g) || [];
    for (let i = 0; i < words.length;) {
      if (/[a-zA-Z]/.test(words[i])) command = words[i++];
      if (command === "z") continue;
      if (!"MLl".includes(command)) return [];
      const [a, b] = [Number(words[i++]), Number(words[i++])];
      [x, y] = command === "l" ? [x + a, y + b] : [a, b];
      if (command === "M") { runs.push([]); command = "L"; }
      runs.at(-1).push([x, y]);
    }
    return runs;
  }

  // coordinates

  function value(axis, share) { // of a place along an axis, 0 to 1
    const [low, high] = axis.ends;
    if (axis.log) return low * (high / low) ** share;
    if (!axis.samples) return low + (high - low) * share;
    const at = Math.min(Math.max(share, 0), 1) * (axis.samples.length - 1), before = Math.min(Math.floor(at), axis.samples.length - 2);
    return axis.samples[before] + (axis.samples[before + 1] - axis.samples[before]) * (at - before);
  }

  function text(axis, share, length) {
    const [here, next] = [value(axis, share), value(axis, share + 0.1 / length)]; // a drawing has tenths of its units
    const named = (axis.ticks || []).find(([tick]) => Math.abs(tick - here) <= 1.5 * Math.abs(next - here));
    if (named) return named[1];
    const step = Math.abs(next - here);
    if (Math.abs(here) < step) return "0";
    const digits = Math.min(Math.max(Math.floor(Math.log10(Math.abs(here))) - Math.ceil(Math.log10(step * 1.2)) + 1, 1), 12); // the last is right to one
    const rounded = here.toPrecision(digits); // 8e+5 where zeros would stand for digits that are not known
    return written(Math.abs(here) >= 1e5 && rounded.includes("e") ? rounded.replace(/\.?0*e/, "e") : Number(rounded));
  }

  function written(number) { // 3×10⁻⁷
    const [digits, power] = String(number).replace("+", "").split("e");
    const raised = [...power || ""].map((letter) => (letter === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[letter])).join("");
    return `${digits}${power ? `×10${raised}` : ""}`.replace("-", "−").replace(/^(−?)1×/, "$1");
  }

  function coordinates({ x, y }, axes, xy = [1, 1]) {
    const [x0, y0, x1, y1] = axes.box;
    const parts = [];
    if (xy[0]) parts.push(`${axes.x.label || "x"} = ${text(axes.x, (x - x0) / (x1 - x0), x1 - x0)}`);
    if (xy[1]) parts.push(`${axes.y.label || "y"} = ${text(axes.y, (y1 - y) / (y1 - y0), y1 - y0)}`);
    return parts;
  }

  function runOf(shape, i) { // "lr = 0.1, seed 3"
    let place = Array.isArray(shape.index) ? shape.index[i] ?? -1 : shape.index ?? -1;
    if (place < 0) return "";
    const parts = [];
    for (const texts of [...shape.table].reverse()) {
      parts.unshift(texts[place % texts.length]);
      place = Math.floor(place / texts.length);
    }
    return parts.filter(Boolean).join(", ");
  }

  const lines = (hit) => [hit.shape.name, hit.shape.of || runOf(hit.shape, hit.i), ...coordinates(hit.at, hit.shape.axes, hit.shape.xy)].filter(Boolean);

  // the nearest point to a place; symbols before lines

  const within = ({ x, y }, [x0, y0, x1, y1], slack = 1) => x > x0 - slack && x < x1 + slack && y > y0 - slack && y < y1 + slack;
  const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
  function foot([a, b], at) { // the point of a piece that is nearest
    const [dx, dy] = [b.x - a.x, b.y - a.y];
    const share = Math.min(Math.max(((at.x - a.x) * dx + (at.y - a.y) * dy) / (dx * dx + dy * dy || 1), 0), 1);
    return { x: a.x + share * dx, y: a.y + share * dy };
  }

  function nearest(svg, at, reach) {
    const about = pointsOf(svg);
    let best = null;
    const offer = (shape, i, point, distance) => {
      if (distance <= reach && distance < (best ? best.distance : Infinity) && within(point, shape.axes.box)) best = { shape, i, at: point, distance };
    };
    for (const one of about ? about.shapes : []) one.points.forEach((point, i) => offer(one, i, point, apart(point, at)));
    if (best) return best;
    for (const one of about ? about.shapes : []) for (const piece of one.pieces) { const point = foot(piece, at); offer(one, -1, point, apart(point, at)); }
    return best;
  }

  // the mark and the words at a point

  const words = make("div", { className: "pointed", hidden: true, ariaHidden: "true" });
  let ring = null;
  function forget() { words.hidden = true; ring?.remove(); }

  function mark(svg, hit) {
    const scale = svg.getScreenCTM();
    ring ??= document.createElementNS(svg.namespaceURI, "circle");
    ring.setAttribute("class", "pointed-ring");
    for (const [name, number] of [["cx", hit.at.x], ["cy", hit.at.y], ["r", 6 / scale.a], ["stroke-width", 2 / scale.a]]) ring.setAttribute(name, number);
    if (ring.parentNode !== svg) svg.append(ring);
    words.replaceChildren(...lines(hit).map((line) => make("p", { textContent: line })));
    const place = svg.closest("dialog") || inside;
    if (words.parentNode !== place) place.append(words);
    words.hidden = false;
    const { x, y } = new DOMPoint(hit.at.x, hit.at.y).matrixTransform(scale);
    const { width, height } = words.getBoundingClientRect();
    words.style.left = `${x + 14 + width > innerWidth ? Math.max(x - 14 - width, 4) : x + 14}px`;
    words.style.top = `${Math.min(Math.max(y - height - 10, 4), innerHeight - height - 4)}px`;
  }

  function placeIn(svg, event) { return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()); }

  function point(event) { // what is under the pointer
    const svg = event.target.closest?.("svg.figure");
    const hit = svg && nearest(svg, placeIn(svg, event), REACH / svg.getScreenCTM().a);
    if (hit) mark(svg, hit); else forget();
    return hit;
  }
  const quiet = () => root.querySelector?.("dialog.large[open]");
  root.addEventListener("pointermove", (event) => { if (event.pointerType !== "touch" && !quiet()) point(event); });
  root.addEventListener("scroll", () => { if (!quiet()) forget(); }, { capture: true, passive: true });

  // the large view

  const readout = make("p", { className: "readout", role: "status" });
  const stage = make("div", { className: "stage", tabIndex: 0, role: "group", ariaLabel: "Figure; arrow keys go from point to point, plus and minus zoom, 0 shows all" });
  const button = (label, title, act) => {
    const made = make("button", { type: "button", textContent: label, title, ariaLabel: title });
    made.addEventListener("click", act);
    return made;
  };
  const dialog = make("dialog", { className: "large", ariaLabel: "Large view of a figure" });
  const bar = make("div", { className: "tools" }, readout, button("−", "Zoom out", () => zoom(1 / 1.4)), button("+", "Zoom in", () => zoom(1.4)),
    button("All", "Show the whole figure", () => whole()), button("Close", "Close", () => dialog.close()));
  dialog.append(bar, stage);
  let drawing = null, symbols = [], full = null, view = null, chosen = null;

  function show(box) { // a part of the drawing: x, y, width, height
    view = box;
    drawing.setAttribute("viewBox", box.join(" "));
    const size = (box[2] / full[2]) ** 0.75; // symbols grow less than the distances between them
    for (const symbol of symbols) symbol.setAttribute("transform", `scale(${size})`);
    if (chosen && within(chosen.at, [box[0], box[1], box[0] + box[2], box[1] + box[3]])) mark(drawing, chosen); else forget();
  }
  function whole() { show([...full]); }
  function zoom(factor, at = { x: view[0] + view[2] / 2, y: view[1] + view[3] / 2 }) {
    const by = Math.min(Math.max((full[2] / view[2]) * factor, 1), 60) * (view[2] / full[2]);
    move([at.x - (at.x - view[0]) / by, at.y - (at.y - view[1]) / by, view[2] / by, view[3] / by]);
  }
  function move([x, y, width, height]) { // never beyond the drawing
    show([Math.min(Math.max(x, full[0]), full[0] + full[2] - width), Math.min(Math.max(y, full[1]), full[1] + full[3] - height), width, height]);
  }

  function open(svg) {
    if (!dialog.isConnected) inside.append(dialog);
    forget();
    stage.innerHTML = svg.outerHTML.replace(/(id="|href="#|url\(#)(f[0-9a-f]{8})/g, "$1large-$2"); // symbols of its own
    drawing = stage.firstElementChild;
    symbols = drawing.querySelectorAll("[data-series] defs > path");
    full = svg.getAttribute("viewBox").split(/\s+/).map(Number);
    chosen = null;
    readout.textContent = "";
    dialog.showModal();
    stage.focus();
    whole();
  }
  dialog.addEventListener("close", () => { forget(); stage.replaceChildren(); drawing = null; });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  function say(at) { // the coordinates of a place in the large view
    const axes = pointsOf(drawing)?.axes.find((one) => within(at, one.box, 0));
    readout.textContent = axes ? coordinates(at, axes).join(", ") : "";
  }

  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), placeIn(drawing, event));
  }, { passive: false });
  stage.addEventListener("dblclick", () => whole());

  const fingers = new Map(); // pointers that are down, and where
  let dragged = false;
  stage.addEventListener("pointerdown", (event) => {
    stage.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    dragged = fingers.size > 1;
  });
  stage.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) {
      const at = placeIn(drawing, event);
      chosen = nearest(drawing, at, REACH / drawing.getScreenCTM().a);
      if (chosen) mark(drawing, chosen); else forget();
      say(at);
      return;
    }
    dragged ||= Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) > 4;
    if (!dragged) return;
    const [from, to] = [placeIn(drawing, before), placeIn(drawing, event)];
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    fingers.set(event.pointerId, event);
    if (other) { // two fingers: the one at rest stays on its place
      const pivot = placeIn(drawing, other);
      zoom(Math.max(apart(to, pivot), 1e-3) / Math.max(apart(from, pivot), 1e-3), pivot);
    } else move([view[0] - to.x + from.x, view[1] - to.y + from.y, view[2], view[3]]);
  });
  const lift = (event) => {
    const tapped = fingers.delete(event.pointerId) && event.type === "pointerup" && !dragged && !fingers.size;
    if (!tapped || !drawing) return;
    const at = placeIn(drawing, event);
    chosen = nearest(drawing, at, (event.pointerType === "touch" ? 2 : 1) * REACH / drawing.getScreenCTM().a);
    if (chosen) mark(drawing, chosen); else forget();
    say(chosen ? chosen.at : at);
  };
  stage.addEventListener("pointerup", lift);
  stage.addEventListener("pointercancel", lift);

  function step(along, across) { // to the next point of a series, or to the next series that has points
    const shapes = (pointsOf(drawing)?.shapes || []).map((shape) => ({ shape, at: shape.points.length ? shape.points : shape.pieces.map(([, end]) => end) }))
      .filter((one) => one.at.length);
    if (!shapes.length) return;
    let which = chosen ? shapes.findIndex((one) => one.shape === chosen.shape) : across > 0 ? -1 : 0;
    let i = chosen ? chosen.step ?? Math.max(chosen.i, 0) : -1;
    if (across) { which = (which + across + shapes.length) % shapes.length; i = 0; } else i = (i + along + shapes[which].at.length) % shapes[which].at.length;
    const { shape, at } = shapes[which];
    chosen = { shape, i: shape.points.length ? i : -1, step: i, at: at[i] };
    if (!within(chosen.at, [view[0], view[1], view[0] + view[2], view[1] + view[3]])) move([chosen.at.x - view[2] / 2, chosen.at.y - view[3] / 2, view[2], view[3]]);
    else mark(drawing, chosen);
    readout.textContent = lines(chosen).join(", ");
  }
  const keys = {
    ArrowRight: () => step(1, 0), ArrowLeft: () => step(-1, 0), ArrowDown: () => step(0, 1), ArrowUp: () => step(0, -1),
    "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: () => whole(),
  };
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });

  // opening it: a click on a figure, or the button next to it

  root.addEventListener("click", (event) => {
    const svg = event.target.closest?.("svg.figure");
    if (svg && !svg.closest("dialog")) open(svg);
  });
  return { // a button for each place that holds a figure, or will
    enlargeable(from) {
      for (const canvas of from.querySelectorAll(".canvas, .drawing")) {
        const made = button("⤢", "Show the figure large", () => { const svg = canvas.querySelector("svg.figure"); if (svg) open(svg); });
        made.className = "enlarge";
        canvas.closest(".scroll, .drawing").after(made);
      }
    },
  };
}
