// Shows each slider's position; all numbers come from the page itself, from the JSON that the slider names.
(function () {
  "use strict";

  // A decision: which action is taken in each state, and how many rows show it.
  function showPolicy(data, point, rows) {
    rows.forEach((row, i) => {
      const differs = point.actions[i] !== data.present[i];
      const few = point.rows[i] < data.least;
      row.className = differs ? "changed" : "";
      row.cells[2].textContent = point.actions[i];
      row.cells[3].textContent = (few ? "only " : "") + point.rows[i].toLocaleString("en");
    });
    return "; " + point.changed + " of " + data.states + " states change";
  }

  // A comparison: the numbers of each method.
  function showTable(data, point, rows) {
    rows.forEach((row, i) => {
      point.table[i].forEach((text, k) => { row.cells[k + 1].textContent = text; });
    });
    return "";
  }

  document.querySelectorAll(".slider").forEach((section) => {
    const data = JSON.parse(document.getElementById(section.dataset.path).textContent);
    const setting = section.querySelector("input");
    const position = section.querySelector("output");
    const marker = section.querySelector(".marker");
    const numbers = section.querySelectorAll("[data-number]");
    const rows = section.querySelectorAll("tbody tr");

    function show() {
      const k = Number(setting.value);
      const point = data.points[k];
      const used = k === data.chosen ? " (used)" : "";
      const named = data.names.map((name, i) => name + " " + point.numbers[i]).join(", ");
      const more = point.table ? showTable(data, point, rows) : showPolicy(data, point, rows);
      position.textContent = data.parameter + " = " + point.value + used + ": " + named + more + ".";
      setting.setAttribute("aria-valuetext", data.parameter + " " + point.value + used);
      numbers.forEach((cell, i) => { cell.textContent = point.numbers[i]; });
      const place = data.points.length > 1 ? (100 * k) / (data.points.length - 1) : 0;
      if (marker) {
        marker.setAttribute("x1", place);
        marker.setAttribute("x2", place);
      }
    }

    section.hidden = false;
    setting.addEventListener("input", show);
    show();
  });
  document.documentElement.classList.add("scripted");

  // What is folded up is unfolded on paper.
  const folded = document.querySelectorAll("details");
  let open = [];
  addEventListener("beforeprint", () => {
    open = [...folded].map((part) => part.open);
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((part, i) => { part.open = open[i]; }));
})();
