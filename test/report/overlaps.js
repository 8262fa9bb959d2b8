// SPDX-License-Identifier: Apache-2.0
// Appended to a copy of the page by test_browser.py: finds texts of a figure that lie on each other or outside of it, as
// the browser's own fonts make them, and tables wider than what can be scrolled, and writes them to the end of the body.
const found = [];
for (const figure of document.querySelectorAll("svg.tessera-figure")) {
  const frame = figure.getBoundingClientRect();
  const texts = [...figure.querySelectorAll("text")].map(
      (text) => [text.textContent.trim(), text.getBoundingClientRect()]);
  texts.forEach(([name, box], index) => {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
        box.bottom > frame.bottom + 1) {
      found.push(`${figure.querySelector("title").textContent.split(".")[0]}: '${name}' is cut off`);
    }
    for (const [other, place] of texts.slice(index + 1)) {
      const width = Math.min(box.right, place.right) - Math.max(box.left, place.left);
      const height = Math.min(box.bottom, place.bottom) - Math.max(box.top, place.top);
      // Boxes of text are higher than its letters.
      if (width > 1 && height > 0.35 * Math.min(box.height, place.height)) {
        found.push(`${figure.querySelector("title").textContent.split(".")[0]}: '${name}' on '${other}'`);
      }
    }
  });
}
if (document.documentElement.scrollWidth > window.innerWidth) found.push("the page is wider than the window");
const list = document.createElement("pre");
list.id = "found";
list.textContent = [`${document.querySelectorAll("svg.tessera-figure text").length} texts`, ...found].join("\n");
document.body.append(list);
