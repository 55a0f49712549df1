// Shows the decision at the slider's position; all numbers come from the page itself.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("path").textContent);
  const section = document.querySelector(".slider");
  const setting = document.getElementById("setting");
  const position = document.getElementById("position");
  const marker = document.getElementById("marker");
  const numbers = section.querySelectorAll("[data-number]");
  const rows = document.querySelectorAll("#policy tbody tr");

  function show() {
    const k = Number(setting.value);
    const point = data.points[k];
    const used = k === data.chosen ? " (used)" : "";
    const named = data.names.map((name, i) => name + " " + point.numbers[i]).join(", ");
    const changed = point.changed + " of " + data.states + " states change";
    position.textContent = data.parameter + " = " + point.value + used + ": " + named + "; " + changed + ".";
    setting.setAttribute("aria-valuetext", data.parameter + " " + point.value + used);
    numbers.forEach((cell, i) => { cell.textContent = point.numbers[i]; });
    const place = data.points.length > 1 ? (100 * k) / (data.points.length - 1) : 0;
    marker.setAttribute("x1", place);
    marker.setAttribute("x2", place);
    rows.forEach((row, i) => {
      const differs = point.actions[i] !== data.present[i];
      const few = point.rows[i] < data.least;
      row.className = differs ? "changed" : "";
      row.cells[2].textContent = point.actions[i];
      row.cells[3].textContent = (few ? "only " : "") + point.rows[i].toLocaleString("en");
    });
  }

  document.documentElement.classList.add("scripted");
  section.hidden = false;
  setting.addEventListener("input", show);
  show();

  // What is folded up is unfolded on paper.
  const folded = document.querySelectorAll("details");
  let open = [];
  addEventListener("beforeprint", () => {
    open = [...folded].map((part) => part.open);
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((part, i) => { part.open = open[i]; }));
})();
