// Tables that sort, fold and filter; the theme.
(() => {
  "use strict";
  const root = document.documentElement;

  const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const remember = (theme) => { try { localStorage.setItem("etrt-theme", theme); } catch { /* A file may have no storage. */ } };
  const button = document.getElementById("theme");
  const named = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remember(root.dataset.theme);
    named();
  });
  named();

  const value = (row, column) => {
    const cell = row.cells[column], raw = cell.dataset.v ?? cell.textContent.trim().toLowerCase();
    const number = Number(raw);
    return raw === "" || Number.isNaN(number) ? raw : number;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    for (const header of table.tHead.rows[0].cells) {
      const label = header.querySelector("button");
      if (!label) continue;
      label.addEventListener("click", () => {
        const numeric = header.classList.contains("n");
        const descending = header.ariaSort ? header.ariaSort !== "descending" : numeric;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        header.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const column = header.cellIndex, sign = descending ? -1 : 1;
        body.append(...[...body.rows].sort((a, b) => sign * compare(value(a, column), value(b, column))));
        table.dispatchEvent(new Event("arranged"));
      });
    }
    fold(table, body);
  }

  // Shows the first rows of a long table, all rows on demand, and only those that match its filter.
  function fold(table, body) {
    const limit = Number(table.dataset.fold || 0), filter = document.querySelector(`input[data-filter="${table.id}"]`);
    if (!limit && !filter) return;
    let open = false;
    const more = document.createElement("button");
    more.type = "button";
    more.className = "more";
    const arrange = () => {
      const wanted = filter ? filter.value.trim().toLowerCase() : "";
      const hits = [...body.rows].filter((row) => row.textContent.toLowerCase().includes(wanted));
      const shown = new Set(open ? hits : hits.slice(0, limit));
      for (const row of body.rows) row.hidden = !shown.has(row);
      more.hidden = hits.length <= limit;
      more.textContent = open ? `Show the first ${limit}` : `Show all ${hits.length} rows`;
      more.setAttribute("aria-expanded", String(open));
    };
    more.addEventListener("click", () => { open = !open; arrange(); });
    if (filter) filter.addEventListener("input", arrange);
    table.addEventListener("arranged", arrange);
    table.closest(".scroll").after(more);
    arrange();
  }

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const section of document.querySelectorAll("main > section")) watcher.observe(section);
})();
