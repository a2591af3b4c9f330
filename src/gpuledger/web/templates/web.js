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

  // Where the reader is: an element is found again by its place among those of its kind.
  var KINDS = "a, button, summary, input, select, [tabindex]";
  function place() {
    var all = Array.prototype.slice.call(content.querySelectorAll(KINDS));
    var sorted = [], scrolled = [];
    each(content.querySelectorAll("table.sorts"), function (t) {
      each(t.tHead.rows[0].cells, function (h, i) {
        if (h.hasAttribute("aria-sort")) sorted.push([t.id, i, h.getAttribute("aria-sort") === "descending"]);
      });
    });
    each(content.querySelectorAll(".scroll"), function (s) { scrolled.push(s.scrollLeft); });
    return {
      focus: all.indexOf(document.activeElement), sorted: sorted, scrolled: scrolled, y: window.scrollY,
      open: Array.prototype.map.call(content.querySelectorAll("details"), function (d) { return d.open; })
    };
  }
  function goBack(was) {
    each(content.querySelectorAll("details"), function (d, i) { d.open = Boolean(was.open[i]); });
    document.dispatchEvent(new CustomEvent("renewed"));
    was.sorted.forEach(function (s) {
      var table = document.getElementById(s[0]);
      if (table) table.dispatchEvent(new CustomEvent("sortby", { detail: { index: s[1], down: s[2] } }));
    });
    each(content.querySelectorAll(".scroll"), function (s, i) { s.scrollLeft = was.scrolled[i] || 0; });
    var again = was.focus < 0 ? null : content.querySelectorAll(KINDS)[was.focus];
    if (again) again.focus({ preventScroll: true });
    window.scrollTo(window.scrollX, was.y);
  }
  function renew() {
    return fetch(window.location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" })
      .then(function (answer) {
        if (!answer.ok && answer.status !== 503) throw new Error(String(answer.status));
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
        say("yes", "live, updated " + new Date().toLocaleTimeString());
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
  each(document.querySelectorAll("form.filters select"), function (select) {
    select.addEventListener("change", function () { select.form.requestSubmit(); });
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
    stream.addEventListener("edition", function (event) {
      var news = JSON.parse(event.data);
      warn(news.state === "ready" && news.problem ? "These figures are not the latest: " + news.problem + ". Next: " + news.hint : "");
      if (news.edition === edition) return;
      edition = news.edition;
      soon(news.spread_ms);
    });
  }
  listen();
})();
