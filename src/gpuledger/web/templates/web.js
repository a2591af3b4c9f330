(function () {
  "use strict";
  // A new edition of the lake: the figures are fetched again and put in place; what is typed, open, sorted, focused
  // or scrolled to stays.
  var live = document.getElementById("live");
  var problem = document.getElementById("problem");
  var content = document.getElementById("content");
  var edition = Number(document.body.dataset.edition);
  var wait = null, failures = 0;
  var theme = null;
  function each(list, act) { Array.prototype.forEach.call(list, act); }
  try { theme = window.localStorage.getItem("theme"); } catch (error) { theme = null; }
  if (theme) { document.documentElement.dataset.theme = theme; document.dispatchEvent(new CustomEvent("themed")); }
  document.getElementById("theme").addEventListener("click", function () {
    try { window.localStorage.setItem("theme", document.documentElement.dataset.theme); } catch (error) { /* not kept */ }
  });
  function say(state, words) { live.dataset.live = state; if (live.textContent !== words) live.textContent = words; }
  function warn(words) { problem.hidden = !words; if (problem.textContent !== words) problem.textContent = words; }

  // How old the newest sample is, by the server's clock; shown once it is older than the limit, on a page that may
  // stay open for days.
  var clock = null, age = document.getElementById("age");
  function aged() {
    if (!clock || clock.newest_ms === null || clock.stale_ms === null) return;
    var min = (Date.now() + clock.ahead_ms - clock.newest_ms) / 60000;
    var old = min < 120 ? Math.floor(min) + " min" : min < 2880 ? Math.floor(min / 60) + " h" : Math.floor(min / 1440) + " days";
    age.hidden = min * 60000 < clock.stale_ms;
    age.textContent = age.hidden ? "" : "newest sample " + old + " old";
  }
  window.setInterval(aged, 10000);

  // Where the reader is: an element is found again by what it is, not by its place, as rows may change their order.
  var KINDS = "a, button, summary, input, select, [tabindex]";
  function called(e) {
    var name = e.id || e.getAttribute("href") || e.getAttribute("name") || e.getAttribute("aria-label") || e.textContent;
    return e.tagName + " " + name.trim().slice(0, 200);
  }
  function nth(list, element) { // its name, and which of those with that name it is
    var name = called(element), count = 0;
    for (var i = 0; i < list.length && list[i] !== element; i += 1) if (called(list[i]) === name) count += 1;
    return { name: name, count: count };
  }
  function again(list, was) {
    var same = Array.prototype.filter.call(list, function (e) { return called(e) === was.name; });
    return same[was.count] || null;
  }
  function summaries() { return content.querySelectorAll("details > summary"); }
  function place() {
    var sorted = [], scrolled = [], open = [], active = document.activeElement;
    each(content.querySelectorAll("table.sorts"), function (t) {
      each(t.tHead.rows[0].cells, function (h, i) {
        if (h.hasAttribute("aria-sort")) sorted.push([t.id, i, h.getAttribute("aria-sort") === "descending"]);
      });
    });
    each(content.querySelectorAll(".scroll"), function (s) { scrolled.push(s.scrollLeft); });
    each(summaries(), function (s) { if (s.parentNode.open) open.push(nth(summaries(), s)); });
    var within = active && active !== content && content.contains(active);
    return {
      focus: within ? nth(content.querySelectorAll(KINDS), active) : null,
      sorted: sorted, scrolled: scrolled, y: window.scrollY, open: open
    };
  }
  function goBack(was) {
    each(content.querySelectorAll("details"), function (d) { d.open = false; });
    was.open.forEach(function (one) {
      var found = again(summaries(), one);
      if (found) found.parentNode.open = true;
    });
    document.dispatchEvent(new CustomEvent("renewed"));
    was.sorted.forEach(function (s) {
      var table = document.getElementById(s[0]);
      if (table) table.dispatchEvent(new CustomEvent("sortby", { detail: { index: s[1], down: s[2] } }));
    });
    each(content.querySelectorAll(".scroll"), function (s, i) { s.scrollLeft = was.scrolled[i] || 0; });
    if (was.focus) (again(content.querySelectorAll(KINDS), was.focus) || content).focus({ preventScroll: true });
    window.scrollTo(window.scrollX, was.y);
  }
  function renew() {
    return fetch(window.location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" })
      .then(function (answer) {
        if (answer.status >= 500 && answer.status !== 503) throw new Error(String(answer.status));
        return answer.text();
      })
      .then(function (text) {
        var fresh = new DOMParser().parseFromString(text, "text/html");
        if (Boolean(fresh.querySelector("form.filters")) !== Boolean(document.querySelector("form.filters"))) {
          window.location.reload(); // figures came, or went: the whole page changes
          return;
        }
        var was = place();
        content.replaceChildren.apply(content, Array.prototype.slice.call(fresh.getElementById("content").childNodes));
        document.title = fresh.title;
        document.body.dataset.edition = fresh.body.dataset.edition;
        goBack(was);
      });
  }
  // All viewers learn of an edition at once; each fetches it at a moment of its own. What fails is tried again, later
  // and later.
  function soon(spread) {
    window.clearTimeout(wait);
    wait = window.setTimeout(function () {
      renew().then(function () {
        failures = 0;
        say("yes", "live, updated " + new Date().toISOString().slice(11, 19) + " UTC");
      }).catch(function () {
        failures += 1;
        say("no", "not connected");
        soon(Math.min(1000 * Math.pow(2, failures), 60000));
      });
    }, Math.random() * spread);
  }

  // A page that takes long to make says that it is being made.
  function busy() { document.documentElement.classList.add("busy"); say("yes", "loading"); }
  each(document.querySelectorAll("form.filters"), function (form) { form.addEventListener("submit", busy); });
  // A choice is shown on demand: arrow keys step through a list, and each step is a change.
  each(document.querySelectorAll("form.filters"), function (form) {
    form.addEventListener("change", function () { form.classList.add("changed"); });
  });
  document.addEventListener("click", function (event) {
    var link = event.target.closest ? event.target.closest("a[href^='/']") : null;
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) busy();
  });
  window.addEventListener("pageshow", function () { document.documentElement.classList.remove("busy"); });

  if (!window.EventSource) { say("no", "no live updates"); return; }
  var stream = null, lost = 0;
  function listen() {
    stream = new EventSource("/events?seen=" + edition);
    stream.onopen = function () { lost = 0; say("yes", "live"); };
    stream.onerror = function () {
      say("no", "not connected");
      if (stream.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      lost += 1;
      window.setTimeout(listen, Math.min(1000 * Math.pow(2, lost), 60000) * (0.5 + Math.random() / 2));
    };
    stream.addEventListener("clock", function (event) {
      clock = JSON.parse(event.data);
      clock.ahead_ms = clock.now_ms - Date.now();
      aged();
    });
    stream.addEventListener("edition", function (event) {
      var news = JSON.parse(event.data);
      if (clock) { clock.newest_ms = news.newest_ms; aged(); }
      warn(news.state === "ready" && news.problem ? "These figures are not the latest: " + news.problem + ". Next: " + news.hint : "");
      if (news.edition === edition) return;
      edition = news.edition;
      soon(news.spread_ms);
    });
  }
  listen();
})();
