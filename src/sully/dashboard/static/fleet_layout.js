// Groups of devices and where their cells are: pure functions, without the page.

import { STATES } from "./states.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {{label: string, rows: Row[], x: number, y: number, width: number, height: number, columns: number}} Group */
/** @typedef {{groups: Group[], cell: number, pitch: number, height: number}} Layout */

export const LABEL = 16;
const collator = new Intl.Collator("en", { numeric: true });
export const compare = collator.compare;

/** @param {string} id @returns {{driver: string, pool: string, device: string}} */
export function partsOf(id) {
  const first = id.indexOf("/");
  const last = id.lastIndexOf("/");
  return { driver: id.slice(0, first), pool: id.slice(first + 1, last), device: id.slice(last + 1) };
}

/** The group of a row. A device that is in several classes is in the group of all of them.
 * @param {string} by @param {Record<string, string>} values @returns {(row: Row) => string} */
function labelOf(by, values) {
  if (by === "node") return (row) => row.n || "(no node)";
  if (by === "pool") return (row) => partsOf(row.d).pool;
  if (by === "class") return (row) => (row.c ? row.c.join(", ") : "(no class)");
  if (by === "state") return (row) => (STATES[row.s] ?? STATES.unknown).name;
  return (row) => values[row.d] ?? "(not published)";
}

/** @param {Iterable<Row>} rows @param {string} by @param {Record<string, string>} values */
export function grouped(rows, by, values = {}) {
  const label = labelOf(by, values);
  /** @type {Map<string, Row[]>} */
  const groups = new Map();
  for (const row of rows) {
    const name = label(row);
    const found = groups.get(name);
    if (found) found.push(row);
    else groups.set(name, [row]);
  }
  const sorted = [...groups].sort((a, b) => compare(a[0], b[0]));
  for (const [, members] of sorted) members.sort((a, b) => compare(a.d, b.d));
  return sorted;
}

/** @param {number} devices @returns {number} the size of a cell */
export const cellSize = (devices) => (devices > 4000 ? 11 : devices > 1000 ? 14 : 22);

/** Arrange groups as blocks, in lines from left to right.
 * @param {[string, Row[]][]} groups @param {number} width @param {number} cell @returns {Layout} */
export function arrange(groups, width, cell) {
  const pitch = cell + Math.max(2, Math.round(cell / 6));
  const most = Math.max(1, Math.floor((width - 2) / pitch));
  const placed = [];
  let x = 0, y = 0, line = 0;
  for (const [label, rows] of groups) {
    const wanted = rows.length <= 16 ? 8 : Math.max(8, Math.ceil(Math.sqrt(rows.length * 4)));
    const columns = Math.min(rows.length, wanted, most);
    const blockWidth = Math.max(columns * pitch, Math.min(width, 8 * pitch)) + pitch;
    const height = LABEL + Math.ceil(rows.length / columns) * pitch + 8;
    if (x && x + blockWidth > width) {
      x = 0;
      y += line;
      line = 0;
    }
    placed.push({ label, rows, x, y, width: blockWidth, height, columns });
    x += blockWidth;
    line = Math.max(line, height);
  }
  return { groups: placed, cell, pitch, height: y + line };
}

/** @param {Layout} layout @param {Group} group @param {number} at */
export function position(layout, group, at) {
  return {
    x: group.x + (at % group.columns) * layout.pitch,
    y: group.y + LABEL + Math.floor(at / group.columns) * layout.pitch,
  };
}

/** @type {WeakMap<Layout, Map<Row, [Group, number]>>} */
const places = new WeakMap();
/** Where the cell of a row is, or null if it is not shown. @param {Layout} layout @param {Row} row */
export function placeOf(layout, row) {
  let found = places.get(layout);
  if (!found) {
    found = new Map();
    for (const group of layout.groups) group.rows.forEach((each, at) => found.set(each, [group, at]));
    places.set(layout, found);
  }
  const place = found.get(row);
  return place ? position(layout, ...place) : null;
}

/** The cell at a point. @param {Layout} layout */
export function cellAt(layout, x, y) {
  for (const group of layout.groups) {
    if (x < group.x || x >= group.x + group.width || y < group.y + LABEL || y >= group.y + group.height) continue;
    const column = Math.floor((x - group.x) / layout.pitch);
    const at = Math.floor((y - group.y - LABEL) / layout.pitch) * group.columns + column;
    if (column < group.columns && at < group.rows.length) return group.rows[at];
  }
  return null;
}

/** The cells that a rectangle touches. @param {Layout} layout */
export function cellsIn(layout, left, top, right, bottom) {
  const found = [];
  for (const group of layout.groups) {
    if (group.y > bottom || group.y + group.height < top || group.x > right || group.x + group.width < left) continue;
    group.rows.forEach((row, at) => {
      const { x, y } = position(layout, group, at);
      if (x < right && x + layout.cell > left && y < bottom && y + layout.cell > top) found.push(row);
    });
  }
  return found;
}

/** The cell that an arrow key leads to. @param {Layout} layout @param {string} id @param {string} key */
export function neighbor(layout, id, key) {
  const all = [];
  for (const group of layout.groups) {
    group.rows.forEach((row, at) => all.push({ row, ...position(layout, group, at) }));
  }
  const from = all.findIndex((cell) => cell.row.d === id);
  if (from < 0) return all[0]?.row ?? null;
  if (key === "Home") return all[0].row;
  if (key === "End") return all[all.length - 1].row;
  if (key === "ArrowRight") return all[Math.min(from + 1, all.length - 1)].row;
  if (key === "ArrowLeft") return all[Math.max(from - 1, 0)].row;
  const sign = key === "ArrowDown" ? 1 : -1;
  const here = all[from];
  let best = here, distance = Infinity;
  for (const cell of all) {
    const dy = (cell.y - here.y) * sign;
    if (dy <= 0) continue;
    const score = dy * 1000 + Math.abs(cell.x - here.x);
    if (score < distance) {
      distance = score;
      best = cell;
    }
  }
  return best.row;
}
