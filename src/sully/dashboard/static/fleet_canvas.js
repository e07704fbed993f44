// The fleet as a canvas: draws what is visible, and turns pointer and keys into selections.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./dom.js";
import { LABEL, arrange, cellAt, cellSize, cellsIn, neighbor, placeOf, position } from "./fleet_layout.js";
import { STATES, drawShape, palette } from "./states.js";
import { store, subscribe } from "./store.js";

const MOVES = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"];

/** @param {import("./store.js").Row} row */
export function describe(row) {
  const parts = [row.d, row.n && `node ${row.n}`, (STATES[row.s] ?? STATES.unknown).name];
  if (row.u && row.s !== "used") parts.push("in use");
  if (row.t) parts.push(`taints ${row.t.join(", ")}`);
  if (row.p) parts.push(`pods ${row.p.join(", ")}`);
  return parts.filter(Boolean).join("; ");
}

/** @param {{groups: [string, any[]][], selected: Set<string>, onSelect: (ids: Set<string>) => void, onOpen: (id: string) => void}} props */
export function FleetCanvas({ groups, selected, onSelect, onOpen }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const [focus, setFocus] = useState("");
  const [hover, setHover] = useState(null);
  const drag = useRef(null);
  const frame = useRef(0);
  const colors = useRef(palette());
  const count = groups.reduce((sum, [, rows]) => sum + rows.length, 0);
  const layout = useMemo(() => arrange(groups, Math.max(width, 60), cellSize(count)), [groups, width]);
  const view = useRef(null);
  view.current = { layout, selected, focus, drag: drag.current };

  const [, redescribe] = useState(0);
  const redraw = () => {
    if (!frame.current) frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      if (canvas.current && box.current) draw(canvas.current, box.current, view.current, colors.current);
    });
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(box.current ? box.current.clientWidth - 8 : 0));
    observer.observe(box.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const recolor = () => {
      colors.current = palette();
      redraw();
    };
    scheme.addEventListener("change", recolor);
    const leave = subscribe(() => {
      if (store.touched.has(view.current.described)) redescribe((n) => n + 1);
      // A frame that draws everything draws these, too.
      if (frame.current || !canvas.current || !box.current || !store.touched.size) return;
      // Rings reach into the cells beside them.
      if (view.current.selected.size || view.current.focus) redraw();
      else drawCells(canvas.current, box.current, view.current, colors.current, store.touched);
    });
    return () => {
      leave();
      observer.disconnect();
      scheme.removeEventListener("change", recolor);
    };
  }, []);
  useEffect(redraw);

  const point = (event) => {
    const bounds = box.current.getBoundingClientRect();
    return { x: event.clientX - bounds.left - 4, y: event.clientY - bounds.top + box.current.scrollTop };
  };
  const toggle = (id, add) => {
    const next = new Set(add ? selected : []);
    if (add && selected.has(id)) next.delete(id);
    else next.add(id);
    onSelect(next);
  };
  const down = (event) => {
    if (event.button) return;
    drag.current = { from: point(event), to: point(event), moved: false };
    event.currentTarget.setPointerCapture?.(event.pointerId);
  };
  const move = (event) => {
    const at = point(event);
    if (drag.current && event.pointerType !== "touch") {
      drag.current.to = at;
      const { from } = drag.current;
      drag.current.moved ||= Math.abs(at.x - from.x) + Math.abs(at.y - from.y) > 5;
      view.current.drag = drag.current;
      redraw();
      return;
    }
    const row = cellAt(view.current.layout, at.x, at.y);
    if (row?.d !== hover?.row.d) setHover(row && { row, x: event.clientX, y: event.clientY });
  };
  const up = (event) => {
    const dragged = drag.current;
    drag.current = null;
    if (!dragged) return;
    const add = event.ctrlKey || event.metaKey || event.shiftKey;
    const { from, to } = dragged;
    if (dragged.moved) {
      const rows = cellsIn(view.current.layout, Math.min(from.x, to.x), Math.min(from.y, to.y), Math.max(from.x, to.x), Math.max(from.y, to.y));
      onSelect(new Set([...(add ? selected : []), ...rows.map((row) => row.d)]));
    } else {
      const row = cellAt(view.current.layout, from.x, from.y);
      if (row) {
        setFocus(row.d);
        toggle(row.d, add || event.pointerType === "touch");
      } else if (!add) onSelect(new Set());
    }
    redraw();
  };
  const key = (event) => {
    if (MOVES.includes(event.key)) {
      const row = neighbor(layout, focus, event.key);
      if (row) {
        setFocus(row.d);
        reveal(box.current, layout, row.d);
        if (event.shiftKey) onSelect(new Set([...selected, row.d]));
      }
    } else if (event.key === " " && focus) toggle(focus, true);
    else if (event.key === "Enter" && focus) onOpen(focus);
    else if (event.key === "Escape") onSelect(new Set());
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) onSelect(new Set(groups.flatMap(([, rows]) => rows.map((row) => row.d))));
    else return;
    event.preventDefault();
  };
  const focused = focus && groups.flatMap(([, rows]) => rows).find((row) => row.d === focus);
  view.current.described = focused;
  return html`
    <div class="fleet" ref=${box} tabindex="0" role="application" aria-label="Fleet: ${count} devices. Arrow keys move, Space selects, Enter opens a device. The table has the same devices."
        onScroll=${redraw} onKeyDown=${key} onPointerDown=${down} onPointerMove=${move} onPointerUp=${up}
        onPointerLeave=${() => setHover(null)} onDblClick=${() => focus && onOpen(focus)}
        onFocus=${() => !focus && groups.length && setFocus(groups[0][1][0].d)}>
      <canvas ref=${canvas} aria-hidden="true" />
      <div class="extent" style=${{ height: `${layout.height}px` }} />
    </div>
    <p class="hidden" aria-live="polite">${focused ? `${describe(focused)}${selected.has(focus) ? "; selected" : ""}` : ""}</p>
    ${hover && html`<div class="tip" aria-hidden="true" style=${{ left: `${Math.min(hover.x + 12, innerWidth - 330)}px`, top: `${Math.min(hover.y + 14, innerHeight - 120)}px` }}>
      ${describe(hover.row).split("; ").map((line) => html`<div>${line}</div>`)}</div>`}`;
}

function reveal(box, layout, id) {
  for (const group of layout.groups) {
    const at = group.rows.findIndex((row) => row.d === id);
    if (at < 0) continue;
    const { y } = position(layout, group, at);
    if (y - LABEL < box.scrollTop) box.scrollTop = y - LABEL;
    else if (y + layout.cell > box.scrollTop + box.clientHeight) box.scrollTop = y + layout.cell - box.clientHeight + 4;
    return;
  }
}

/** Prepare drawing in the coordinates of the layout. */
function scrolled(canvas, box) {
  const scale = devicePixelRatio || 1;
  const ctx = canvas.getContext("2d");
  ctx.setTransform(scale, 0, 0, scale, 4 * scale, -box.scrollTop * scale);
  return ctx;
}

function draw(canvas, box, view, colors) {
  const { layout, drag } = view;
  const scale = devicePixelRatio || 1;
  const width = box.clientWidth, height = box.clientHeight, top = box.scrollTop;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const ctx = scrolled(canvas, box);
  ctx.clearRect(-4, top, width + 4, height);
  ctx.font = "12px system-ui, sans-serif";
  ctx.textBaseline = "top";
  const isFocused = document.activeElement === box;
  for (const group of layout.groups) {
    if (group.y + group.height < top || group.y > top + height) continue;
    ctx.fillStyle = colors.ink;
    ctx.fillText(fitted(ctx, group.label, group.width - 8), group.x, group.y + 1);
    for (let at = 0; at < group.rows.length; at++) {
      const { x, y } = position(layout, group, at);
      if (y + layout.cell < top || y > top + height) continue;
      drawCell(ctx, group.rows[at], x, y, view, colors, isFocused);
    }
  }
  if (drag?.moved) {
    const { from, to } = drag;
    ctx.strokeStyle = colors.selected;
    ctx.setLineDash([4, 3]);
    ctx.strokeRect(Math.min(from.x, to.x), Math.min(from.y, to.y), Math.abs(to.x - from.x), Math.abs(to.y - from.y));
    ctx.setLineDash([]);
  }
}

/** Draw some cells again, none of which has a ring; everything around them stays. */
function drawCells(canvas, box, view, colors, rows) {
  const { layout } = view;
  const ctx = scrolled(canvas, box);
  const top = box.scrollTop, bottom = top + box.clientHeight;
  for (const row of rows) {
    const cell = placeOf(layout, row);
    if (!cell || cell.y + layout.cell < top || cell.y > bottom) continue;
    ctx.clearRect(cell.x - 1, cell.y - 1, layout.cell + 2, layout.cell + 2);
    drawCell(ctx, row, cell.x, cell.y, view, colors, false);
  }
}

function drawCell(ctx, row, x, y, { layout, selected, focus }, colors, isFocused) {
  const state = STATES[row.s] ? row.s : "unknown";
  drawShape(ctx, STATES[state].shape, x, y, layout.cell, colors[state], colors.paper);
  if (row.u && state !== "used") {
    // In use as well as tainted.
    const dot = Math.max(3, layout.cell / 3.2);
    ctx.fillStyle = colors.paper;
    ctx.fillRect(x + layout.cell - dot - 1, y + layout.cell - dot - 1, dot + 1, dot + 1);
    ctx.fillStyle = colors.used;
    ctx.fillRect(x + layout.cell - dot, y + layout.cell - dot, dot, dot);
  }
  if (selected.has(row.d)) ring(ctx, x, y, layout.cell, colors.selected, 2);
  if (row.d === focus && isFocused) ring(ctx, x, y, layout.cell, colors.focus, 2, [3, 2]);
}

function ring(ctx, x, y, size, color, width, dash = []) {
  ctx.strokeStyle = color;
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.strokeRect(x - 1.5, y - 1.5, size + 3, size + 3);
  ctx.setLineDash([]);
}

const widths = new Map();
function fitted(ctx, text, room) {
  const key = `${text}|${Math.round(room)}`;
  if (!widths.has(key)) {
    let shown = text;
    while (shown.length > 1 && ctx.measureText(shown + (shown === text ? "" : "…")).width > room) shown = shown.slice(0, -1);
    if (widths.size > 20000) widths.clear();
    widths.set(key, shown === text ? text : `${shown}…`);
  }
  return widths.get(key);
}
