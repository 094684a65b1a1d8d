// Figures, filters, sorting, theme and copying. Without it the page lacks its figures, and long pages also their checks.
(() => {
  "use strict";
  const root = document.documentElement;
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // theme: auto -> light -> dark
  const themes = ["auto", "light", "dark"];
  const button = one("#theme");
  const theme = () => root.dataset.theme || "auto";
  const label = () => { button.textContent = `Theme: ${theme()}`; };
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(theme()) + 1) % themes.length];
    if (next === "auto") delete root.dataset.theme; else root.dataset.theme = next;
    try { if (next === "auto") localStorage.removeItem("jaxdyn-theme"); else localStorage.setItem("jaxdyn-theme", next); } catch { /* not kept */ }
    label();
  });
  label();

  // filters: stored in the address, so that a filtered page can be linked to: #verdict=refuted,error&evidence=flow&theory=NAME&q=flow
  const form = one(".filters");
  const rows = all("tr[data-claim]");
  const text = (node) => (node ? node.textContent.toLowerCase().replace(/\s+/g, " ") : "");
  const SOUGHT = ".statement, .tested, .source, .basis, figcaption, .checks tbody th, .fits th, dl.settings"; // of a claim's section
  const searched = new Map(); // row -> what its claim is searched by; filled when first searched, once it is all there
  const words = (row) => {
    const section = document.getElementById(row.dataset.claim);
    if (searched.has(row)) return searched.get(row);
    const around = [section.closest(".chapter")?.querySelector("h3.title"), section.closest("section.theory")?.querySelector("h2")];
    const said = [row.dataset.claim, row.dataset.also || "", ...[row.cells[0], ...all(SOUGHT, section), ...around].map(text)].join(" ").toLowerCase();
    if (!one("[data-part]", section)) searched.set(row, said);
    return said;
  };
  const chips = all(".chip", form);
  const fields = { theory: one("select", form), q: one("input", form) };
  const lacking = { verdict: [], evidence: [], theory: "" }; // what an address asks for that this page does not have
  const pressed = (kind) => chips.filter((c) => c.ariaPressed === "true" && kind in c.dataset).map((c) => c.dataset[kind]);

  // all words must occur; text in quotation marks is one phrase
  const terms = (text) => [...text.toLowerCase().matchAll(/"([^"]*)"?|[^\s"]+/g)]
    .map((m) => (m[1] ?? m[0]).trim().replace(/\s+/g, " ")).filter(Boolean);

  function apply() {
    const [verdicts, kinds] = ["verdict", "evidence"].map((kind) => [...pressed(kind), ...lacking[kind]]);
    const about = lacking.theory || fields.theory.value;
    const sought = terms(fields.q.value);
    let shown = 0;
    for (const row of rows) {
      const { verdict, evidence, theory, claim } = row.dataset;
      const found = !verdicts.length || verdicts.includes(verdict) || ["differs", "blunt"].some((k) => verdicts.includes(k) && k in row.dataset);
      const fits = found && (!kinds.length || kinds.includes(evidence)) && (!about || theory === about) && sought.every((term) => words(row).includes(term));
      row.hidden = !fits;
      document.getElementById(claim).hidden = !fits;
      shown += fits;
    }
    for (const section of all("section.theory, .chapter")) section.hidden = !one(".claim:not([hidden])", section);
    one(".nothing").hidden = shown > 0;
    one(".shown", form).textContent = shown === rows.length ? "" : `${shown} of ${rows.length} claims shown`;
  }

  function toAddress() {
    const query = new URLSearchParams();
    for (const kind of ["verdict", "evidence"]) if (pressed(kind).length) query.set(kind, pressed(kind).join(","));
    for (const [name, field] of Object.entries(fields)) if (field.value) query.set(name, field.value);
    const hash = query.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function fromAddress() {
    const hash = location.hash.slice(1);
    if (!hash || hash.includes("=")) {
      const query = new URLSearchParams(hash);
      for (const kind of ["verdict", "evidence"]) {
        const chosen = (query.get(kind) || "").split(",").filter(Boolean);
        const own = chips.filter((chip) => kind in chip.dataset);
        for (const chip of own) chip.ariaPressed = String(chosen.includes(chip.dataset[kind]));
        lacking[kind] = chosen.filter((value) => !own.some((chip) => chip.dataset[kind] === value));
      }
      for (const [name, field] of Object.entries(fields)) field.value = query.get(name) || "";
      lacking.theory = fields.theory.value ? "" : query.get("theory") || "";
      apply();
      return;
    }
    const target = hash && document.getElementById(decodeURIComponent(hash));
    if (target && target.closest("[hidden]")) { // a link to a claim that the filters hide
      form.reset();
      target.scrollIntoView();
    }
  }

  const forget = () => Object.assign(lacking, { verdict: [], evidence: [], theory: "" });
  const changed = () => { forget(); apply(); toAddress(); };
  for (const chip of chips) {
    chip.addEventListener("click", () => { chip.ariaPressed = String(chip.ariaPressed !== "true"); changed(); });
  }
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    for (const chip of chips) chip.ariaPressed = "false";
    for (const field of Object.values(fields)) field.value = "";
    forget();
    apply();
    if (location.hash.includes("=")) toAddress();
  });
  window.addEventListener("hashchange", fromAddress);

  // sorting
  const key = (row, column) => row.children[column].dataset.sort ?? row.dataset.claim;
  const compare = (a, b) => (a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? a - b : a.localeCompare(b));
  all(".claims thead th").forEach((head, column) => {
    const toggle = document.createElement("button");
    toggle.type = "button";
    toggle.append(...head.childNodes);
    head.append(toggle);
    toggle.addEventListener("click", () => {
      const sign = head.ariaSort === "ascending" ? -1 : 1;
      for (const other of all(".claims thead th")) other.removeAttribute("aria-sort");
      head.ariaSort = sign > 0 ? "ascending" : "descending";
      one(".claims tbody").append(...[...rows].sort((a, b) => sign * compare(key(a, column), key(b, column))));
    });
  });

  // copying
  for (const command of all(".command")) {
    const code = one("code", command);
    const copy = document.createElement("button");
    copy.type = "button";
    copy.className = "copy";
    copy.textContent = "Copy";
    copy.ariaLabel = `Copy the command ${code.textContent}`;
    command.append(copy);
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        copy.textContent = "Selected";
      }
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
  }

  // tables that are wider than the screen can be scrolled with the keyboard, and have a name
  const reachable = (from) => {
    for (const box of all(".scroll", from)) {
      const place = box.closest("article, section");
      const head = place && one("h2, h3, h4", place);
      Object.assign(box, { tabIndex: 0, role: "region", ariaLabel: box.getAttribute("aria-label") || `${head ? head.textContent : ""}: ${one("th", box)?.textContent || "figure"}` });
    }
  };
  reachable(document);

  const { enlargeable } = watchFigures(document);
  enlargeable(document);

  // figures: inflated when they are near the screen
  const glyphs = one("#glyphs");
  const bytes = (packed) => Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const common = bytes(glyphs.dataset.common || ""); // the beginning that figures share
  const inflated = (...parts) => new Response(new Blob(parts).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
  const together = glyphs.dataset.figures && inflated(bytes(glyphs.dataset.figures)).then(JSON.parse);
  const inflate = async (packed) => packed[0] === "#" ? (await together)[Number(packed.slice(1))] : (await inflated(common, bytes(packed))).slice(Number(glyphs.dataset.skip || 0));
  let letters = null; // the outlines of all letters, stored once for all figures
  async function show(canvas) {
    const packed = canvas.dataset.figure;
    if (!packed) return;
    delete canvas.dataset.figure;
    letters ??= glyphs.dataset.glyphs ? inflate(glyphs.dataset.glyphs).then((svg) => { glyphs.innerHTML = svg; }) : Promise.resolve();
    try {
      const [svg] = await Promise.all([inflate(packed), letters]);
      canvas.innerHTML = svg;
    } catch {
      canvas.textContent = "This browser cannot inflate the figure.";
    }
  }
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); show(entry.target); }
  }, { rootMargin: "1200px 0px" });
  for (const canvas of all("[data-figure]")) near.observe(canvas);

  // a long page stores checks and facts by theory, compressed; they are inserted at once
  const parts = Promise.all(all("[data-parts]").map(async (section) => {
    const places = all("[data-part]", section);
    try {
      const texts = JSON.parse(await inflated(bytes(section.dataset.parts)));
      delete section.dataset.parts;
      places.forEach((place, i) => {
        place.innerHTML = texts[i];
        delete place.dataset.part;
        reachable(place);
        for (const canvas of all("[data-figure]", place)) near.observe(canvas);
        enlargeable(place);
      });
    } catch {
      for (const place of places) place.textContent = "This browser cannot inflate this part.";
    }
  }));
  parts.then(() => { if (fields.q.value) apply(); }); // sources are among these parts
  const showAll = () => parts.then(() => Promise.all(all("[data-figure]").map(show)));
  const idle = window.requestIdleCallback || ((then) => setTimeout(then, 50));
  const next = () => { const canvas = one("[data-figure]"); if (canvas) show(canvas).then(() => idle(next)); }; // for printing
  window.addEventListener("load", () => parts.then(() => setTimeout(() => idle(next), 500)));

  // before printing: all figures, and everything that is folded away
  let folded = [];
  const unfold = () => { folded = all("details:not([open])"); for (const d of folded) d.open = true; };
  window.addEventListener("beforeprint", () => { showAll(); unfold(); });
  addEventListener("keydown", (event) => { // printing does not wait: show all figures before the dialogue opens
    if (!(event.ctrlKey || event.metaKey) || event.key !== "p") return;
    event.preventDefault();
    showAll().then(() => window.print());
  });
  window.addEventListener("afterprint", () => { for (const d of folded) d.open = false; });

  fromAddress();
})();
