// SPDX-License-Identifier: Apache-2.0
// Appended to a copy of the page by test_browser.py: finds texts of a figure that lie on each other or outside of it,
// in the fonts of the browser, or are smaller than 11 pixels on a screen, and a page that is wider than the screen, and
// writes them to the end of the body.
// On paper, nothing scrolls, so that tables and figures must fit, too, and nothing opens, so that sentences are shown.
const paper = document.documentElement.dataset.paper === "yes";
const found = [];
for (const folded of paper ? document.querySelectorAll("details") : []) {
  const item = folded.querySelector("li");
  if (item && !item.checkVisibility({contentVisibilityAuto: true})) found.push(`'${folded.innerText}' is folded`);
  folded.open = true;
}
for (const figure of document.querySelectorAll("figure")) {
  const name = figure.querySelector("h3").textContent;
  const frame = figure.querySelector("svg").getBoundingClientRect();
  const texts = [...figure.querySelectorAll("svg text")].map(
      (text) => [text.textContent.trim(), text.getBoundingClientRect()]);
  for (const text of paper ? [] : figure.querySelectorAll("svg text")) {
    const matrix = text.getScreenCTM();
    const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b);
    if (size < 11) found.push(`${name}: '${text.textContent.trim()}' is ${size.toFixed(1)} px high`);
  }
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
const width = document.documentElement.getBoundingClientRect().width;
for (const part of document.body.querySelectorAll("*")) {
  const scrolls = part.closest(".wide");
  if (!(scrolls && scrolls !== part) && part.getBoundingClientRect().right > width + 1) {
    found.push(`the page is wider than the screen: ${part.tagName} ${part.textContent.trim().slice(0, 40)}`);
  }
}
for (const block of paper ? document.querySelectorAll(".wide") : []) {
  if (block.scrollWidth > block.clientWidth + 1) found.push(`'${block.textContent.trim().slice(0, 40)}' is cut off`);
}
// A sheet is 186 mm high without its margins. Two headings may stand above a figure.
for (const figure of paper ? document.querySelectorAll("figure") : []) {
  if (figure.getBoundingClientRect().height > 640) found.push(`'${figure.querySelector("h3").textContent}' is cut off`);
}
const list = document.createElement("pre");
list.id = "found";
list.textContent = [`${document.querySelectorAll("svg text").length} texts`, ...found].join("\n");
document.body.append(list);
