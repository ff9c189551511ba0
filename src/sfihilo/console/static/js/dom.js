// Builds elements. Text is only ever set as text: nothing that a person typed becomes markup.

/** One element; `options` are properties, `on*` listeners, `data`, `aria` and other attributes. */
export function el(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "class") node.className = value;
    else if (name === "text") node.textContent = value;
    else if (name === "value" || name === "checked") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const byId = (id) => document.getElementById(id);

const SHAPES = {
  up: "M12 4 L20 14 H15 V20 H9 V14 H4 Z",
  down: "M12 20 L4 10 H9 V4 H15 V10 H20 Z",
  stay: "M3 10 H21 V14 H3 Z",
  stop: "M8 2 H16 L22 8 V16 L16 22 H8 L2 16 V8 Z",
  again: "M12 4a8 8 0 1 0 8 8h-3a5 5 0 1 1-5-5v3l6-4.5L12 1z",
  check: "M4 12 L10 18 L21 6 L18.6 3.8 L9.9 13.6 L6.2 9.9 Z",
  warning: "M12 2 L23 21 H1 Z M11 9 V15 H13 V9 Z M11 17 V19 H13 V17 Z",
};

/** A drawn sign beside a text that says the same, so it is hidden from screen readers. */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("focusable", "false");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", SHAPES[name]);
  path.setAttribute("fill-rule", "evenodd");
  svg.append(path);
  return svg;
}

/**
 * Replaces the content of a place only when what it depends on changed, so that a person who types
 * or tabs through it is not disturbed. Focus returns to the element with the same id.
 */
export class Panel {
  constructor(place) {
    this.place = place;
    this.shown = undefined;
  }

  show(depends, build) {
    const key = JSON.stringify(depends);
    if (key === this.shown) return false;
    this.shown = key;
    const active = this.place.contains(document.activeElement) ? document.activeElement : null;
    const focused = active?.id;
    const caret = active?.selectionStart;
    const built = build();
    this.place.replaceChildren(...(Array.isArray(built) ? built : [built]).filter(Boolean));
    const again = focused ? byId(focused) : null;
    again?.focus();
    if (again && typeof caret === "number") again.setSelectionRange?.(caret, caret);
    return true;
  }
}
