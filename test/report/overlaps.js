// SPDX-License-Identifier: Apache-2.0
// Appended to a copy of the page by test_browser.py: finds texts of a figure that lie on each other or outside of it,
// in the fonts of the browser, and a page that is wider than the window, and writes them to the end of the body.
const found = [];
for (const figure of document.querySelectorAll("figure")) {
  const name = figure.querySelector("h3").textContent;
  const frame = figure.querySelector("svg").getBoundingClientRect();
  const texts = [...figure.querySelectorAll("svg text")].map(
      (text) => [text.textContent.trim(), text.getBoundingClientRect()]);
  texts.forEach(([text, box], index) => {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
        box.bottom > frame.bottom + 1) {
      found.push(`${name}: '${text}' is cut off`);
    }
    for (const [other, place] of texts.slice(index + 1)) {
      const width = Math.min(box.right, place.right) - Math.max(box.left, place.left);
      const height = Math.min(box.bottom, place.bottom) - Math.max(box.top, place.top);
      // Boxes of text are higher than its letters.
      const overlap = width > 1 && height > 0.35 * Math.min(box.height, place.height);
      if (overlap) found.push(`${name}: '${text}' on '${other}'`);
    }
  });
}
if (document.documentElement.scrollWidth > window.innerWidth) found.push("the page is wider than the window");
const list = document.createElement("pre");
list.id = "found";
list.textContent = [`${document.querySelectorAll("svg text").length} texts`, ...found].join("\n");
document.body.append(list);
