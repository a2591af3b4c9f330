(function () {
  "use strict";
  // A new edition of the lake: the figures are fetched again and put in place; what is typed or open stays.
  var live = document.getElementById("live");
  var edition = Number(document.body.dataset.edition);
  var theme = null;
  try { theme = window.sessionStorage.getItem("theme"); } catch (error) { theme = null; }
  if (theme) document.documentElement.dataset.theme = theme;
  document.getElementById("theme").addEventListener("click", function () {
    try { window.sessionStorage.setItem("theme", document.documentElement.dataset.theme); } catch (error) { /* not kept */ }
  });
  function say(state, words) { live.dataset.live = state; live.textContent = words; }
  function renew() {
    return fetch(window.location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" })
      .then(function (answer) { return answer.text(); })
      .then(function (text) {
        var fresh = new DOMParser().parseFromString(text, "text/html");
        var open = Array.prototype.map.call(document.querySelectorAll("main details"), function (d) { return d.open; });
        document.getElementById("content").replaceChildren.apply(
          document.getElementById("content"), Array.prototype.slice.call(fresh.getElementById("content").childNodes));
        Array.prototype.forEach.call(document.querySelectorAll("main details"), function (d, i) { d.open = Boolean(open[i]); });
        document.body.dataset.edition = fresh.body.dataset.edition;
        document.dispatchEvent(new CustomEvent("renewed"));
      });
  }
  if (!window.EventSource) { say("no", "no live updates"); return; }
  var stream = new EventSource("/events?seen=" + edition);
  stream.onopen = function () { say("yes", "live"); };
  stream.onerror = function () { say("no", "not connected"); };
  stream.addEventListener("edition", function (event) {
    if (Number(event.data) === edition) return;
    edition = Number(event.data);
    renew().then(function () { say("yes", "live, updated " + new Date().toLocaleTimeString()); })
      .catch(function () { say("no", "not connected"); });
  });
})();
