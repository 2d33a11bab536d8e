/* Shows what a link leads to (a chunk, a table, a note, a reference, what
   a program found) while the pointer rests on it, the keyboard is on it,
   or at the first tap. Without this script the links are links. */
(function () {
  "use strict";
  var SHOWN = ".chunk, figure.table, figure.figure, .csl-entry, .checked li, .footnotes li, [role=doc-endnotes] li";
  var box = null, owner = null, timer = 0;

  function target(link) {
    var url = link.getAttribute("href"), at = url.indexOf("#");
    if (at < 0 || link.closest("nav, .chunk-head, dl")) return null;
    var id = decodeURIComponent(url.slice(at + 1));
    var found = at === 0 ? document.getElementById(id) : null;
    if (found) return found.closest(SHOWN);
    var template = document.querySelector('template[data-for="' + CSS.escape(id) + '"]');
    return template ? template.content.firstElementChild : null;
  }

  function copy(source) {
    var clone = source.cloneNode(true);
    clone.removeAttribute("id");
    clone.querySelectorAll("[id]").forEach(function (e) {
      if (!e.closest("svg")) e.removeAttribute("id");
    });
    if (clone.tagName === "LI") {
      var note = document.createElement("div");
      note.append.apply(note, Array.from(clone.childNodes));
      note.querySelectorAll(".footnote-back, a[aria-label^=back]").forEach(function (e) { e.remove(); });
      return note;
    }
    return clone;
  }

  function hide() {
    clearTimeout(timer);
    if (box) box.remove();
    box = owner = null;
  }

  function place(link) {
    var anchor = link.getClientRects()[0] || link.getBoundingClientRect();
    var width = box.offsetWidth, height = box.offsetHeight;
    var room = document.documentElement.clientWidth;
    var left = Math.max(8, Math.min(anchor.left, room - width - 8));
    var below = anchor.bottom + 6, above = anchor.top - height - 6;
    var top = below + height > window.innerHeight && above > 0 ? above : below;
    box.style.left = left + window.scrollX + "px";
    box.style.top = top + window.scrollY + "px";
  }

  function show(link) {
    var source = target(link);
    if (!source) return false;
    hide();
    box = document.createElement("div");
    box.className = "preview";
    box.setAttribute("role", "tooltip");
    box.append(copy(source));
    document.body.append(box);
    owner = link;
    place(link);
    return true;
  }

  function link(event) {
    return event.target.closest && event.target.closest("main a[href*='#'], .preview a[href*='#']");
  }

  document.addEventListener("pointerover", function (event) {
    if (event.pointerType === "touch") return;
    var over = link(event);
    clearTimeout(timer);
    if (over && over !== owner && !over.closest(".preview")) {
      timer = setTimeout(function () { show(over); }, 180);
    } else if (box && !over && !box.contains(event.target)) {
      timer = setTimeout(hide, 250);
    }
  });
  document.addEventListener("focusin", function (event) {
    var on = link(event);
    if (on && on.matches(":focus-visible") && !on.closest(".preview")) show(on);
    else if (box && !box.contains(event.target)) hide();
  });
  document.addEventListener("click", function (event) {
    var on = link(event);
    var touch = event.pointerType === "touch" || matchMedia("(hover: none)").matches;
    if (on && touch && on !== owner && !on.closest(".preview") && show(on)) event.preventDefault();
    else if (!box || !box.contains(event.target) || on) hide();
  });
  /* The preview says what the title says; on paper everything is open. */
  document.querySelectorAll(".check[title]").forEach(function (e) { e.removeAttribute("title"); });
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (e) { e.open = true; });
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") hide();
  });
})();
