// Filters of the page of the talks: by outcome, scale, evidence and words. Without scripts all rows are shown.
(() => {
  const place = document.getElementById("talks-filter");
  if (!place) return;
  const rows = [...document.querySelectorAll("table")].flatMap((table) => {
    const heads = [...table.querySelectorAll("th")].map((head) => head.textContent.trim());
    const [outcome, scale, decided] = ["outcome", "scale", "decided by"].map((name) => heads.indexOf(name));
    if (outcome < 0) return [];
    return [...table.querySelectorAll("tbody tr")].map((row) => {
      const cell = (i) => (row.cells[i] ? row.cells[i].textContent.trim() : "");
      const evidence = [...cell(decided).matchAll(/, (model|network|flow|reduced|algebra|numbers)\)/g)].map((match) => match[1]);
      return { row, outcome: cell(outcome), scale: cell(scale).split(" ")[0], evidence, text: row.textContent.toLowerCase() };
    });
  });
  const choice = (name, values) => {
    const label = document.createElement("label");
    const select = document.createElement("select");
    select.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
    select.addEventListener("change", show);
    label.append(`${name} `, select, " ");
    place.append(label);
    return select;
  };
  const known = (values) => [...new Set(values)].filter(Boolean).sort();
  const count = document.createElement("span");
  count.setAttribute("aria-live", "polite");
  const chosen = {
    outcome: choice("outcome", known(rows.map((one) => one.outcome))),
    scale: choice("scale", known(rows.map((one) => one.scale))),
    evidence: choice("evidence", known(rows.flatMap((one) => one.evidence))),
  };
  const words = document.createElement("input");
  words.type = "search";
  words.placeholder = "words";
  words.setAttribute("aria-label", "words");
  words.addEventListener("input", show);
  place.append(words, " ", count);
  function show() {
    const sought = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const one of rows) {
      const fits =
        (!chosen.outcome.value || one.outcome === chosen.outcome.value) &&
        (!chosen.scale.value || one.scale === chosen.scale.value) &&
        (!chosen.evidence.value || one.evidence.includes(chosen.evidence.value)) &&
        sought.every((word) => one.text.includes(word));
      one.row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
  }
  show();
})();
