(function () {
  "use strict";
  var root = document.documentElement;
  var button = document.getElementById("theme");
  var media = window.matchMedia("(prefers-color-scheme: dark)");
  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : media.matches;
  }
  function label() {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to " + (isDark() ? "light" : "dark") + " colours");
  }
  button.hidden = false;
  button.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  media.addEventListener("change", label);
  label();

  // Sorting: figures by value, words by letter, what is not known always last.
  function sort(table, index, down) {
    // A row with words below it is a body of its own: then the bodies are what is sorted.
    var many = table.tBodies.length > 1;
    var parent = many ? table : table.tBodies[0];
    var items = Array.prototype.slice.call(many ? table.tBodies : parent.rows);
    function key(item) { return (many ? item.rows[0] : item).cells[index].dataset.k; }
    items.sort(function (a, b) {
      var x = key(a), y = key(b);
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      var p = Number(x), q = Number(y);
      var order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
      return down ? -order : order;
    });
    items.forEach(function (item) { parent.insertBefore(item, many ? table.tFoot : null); });
  }
  function order(table, index, down) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (h) { h.removeAttribute("aria-sort"); });
    table.tHead.rows[0].cells[index].setAttribute("aria-sort", down ? "descending" : "ascending");
    sort(table, index, down);
  }
  function bind(table) {
    if (table.dataset.bound) return;
    table.dataset.bound = "yes";
    table.addEventListener("sortby", function (event) { order(table, event.detail.index, event.detail.down); });
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, index) {
      var press = document.createElement("button");
      press.type = "button";
      press.textContent = head.textContent;
      press.title = "Sort by this column";
      head.textContent = "";
      head.appendChild(press);
      press.addEventListener("click", function () {
        var now = head.getAttribute("aria-sort");
        order(table, index, now ? now === "ascending" : !head.classList.contains("words"));
      });
    });
  }
  function bindAll() { Array.prototype.forEach.call(document.querySelectorAll("table.sorts"), bind); }
  bindAll();
  document.addEventListener("renewed", bindAll);
  document.addEventListener("themed", label);

  // What is folded on the screen is open on paper.
  window.addEventListener("beforeprint", function () {
    Array.prototype.forEach.call(document.querySelectorAll("details"), function (d) { d.open = true; });
  });

  // Marks of a chart tell their figures.
  var tip = document.getElementById("tip");
  function show(event) {
    var mark = event.target.closest ? event.target.closest("figure [data-tip]") : null;
    if (!mark) { tip.hidden = true; return; }
    tip.textContent = mark.getAttribute("data-tip");
    tip.hidden = false;
    var x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    var y = event.clientY + 16;
    if (y + tip.offsetHeight > window.innerHeight) y = event.clientY - tip.offsetHeight - 10;
    tip.style.left = Math.max(4, x) + "px";
    tip.style.top = Math.max(4, y) + "px";
  }
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerleave", function () { tip.hidden = true; });
})();
