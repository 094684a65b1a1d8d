// Filters, sorting, theme and copying. The page is complete without it.
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

  // filters: kept in the address, so that a filtered page can be linked to: #verdict=refuted,error&theory=joma&q=flow
  const form = one(".filters");
  const rows = all("tr[data-claim]");
  const chips = all(".chip", form);
  const fields = { theory: one("select", form), q: one("input", form) };
  const pressed = () => chips.filter((c) => c.ariaPressed === "true").map((c) => c.dataset.verdict);

  function apply() {
    const verdicts = pressed();
    const words = fields.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const { verdict, theory, search, claim } = row.dataset;
      const kind = !verdicts.length || verdicts.includes(verdict) || (verdicts.includes("differs") && "differs" in row.dataset);
      const fits = kind && (!fields.theory.value || theory === fields.theory.value) && words.every((w) => search.includes(w));
      row.hidden = !fits;
      document.getElementById(claim).hidden = !fits;
      shown += fits;
    }
    for (const section of all("section.theory")) section.hidden = !one(".claim:not([hidden])", section);
    one(".nothing").hidden = shown > 0;
    one(".shown", form).textContent = shown === rows.length ? "" : `${shown} of ${rows.length} claims shown`;
  }

  function toAddress() {
    const query = new URLSearchParams();
    if (pressed().length) query.set("verdict", pressed().join(","));
    for (const [name, field] of Object.entries(fields)) if (field.value) query.set(name, field.value);
    const hash = query.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function fromAddress() {
    const hash = location.hash.slice(1);
    if (hash.includes("=")) {
      const query = new URLSearchParams(hash);
      const verdicts = (query.get("verdict") || "").split(",");
      for (const chip of chips) chip.ariaPressed = String(verdicts.includes(chip.dataset.verdict));
      for (const [name, field] of Object.entries(fields)) field.value = query.get(name) || "";
      apply();
      return;
    }
    const target = hash && document.getElementById(decodeURIComponent(hash));
    if (target && target.closest("[hidden]")) { // a link to a claim that the filters hide
      form.reset();
      target.scrollIntoView();
    }
  }

  const changed = () => { apply(); toAddress(); };
  for (const chip of chips) {
    chip.addEventListener("click", () => { chip.ariaPressed = String(chip.ariaPressed !== "true"); changed(); });
  }
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    for (const chip of chips) chip.ariaPressed = "false";
    for (const field of Object.values(fields)) field.value = "";
    apply();
    if (location.hash.includes("=")) toAddress();
  });
  window.addEventListener("hashchange", fromAddress);

  // sorting
  const key = (row, column) => row.children[column].dataset.sort;
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
  for (const copy of all(".copy")) {
    copy.addEventListener("click", async () => {
      const code = one("code", copy.parentElement);
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

  // print everything that is folded away
  let folded = [];
  window.addEventListener("beforeprint", () => { folded = all("details:not([open])"); for (const d of folded) d.open = true; });
  window.addEventListener("afterprint", () => { for (const d of folded) d.open = false; });

  fromAddress();
})();
