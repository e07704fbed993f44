// The states of a device: a name, a color of the style sheet and a shape each, so that none is told
// by its color alone.

/** @typedef {"square"|"outline"|"circle"|"slash"|"cross"|"chevron"|"bar"|"dots"} Shape */
/** @type {Record<string, {name: string, text: string, shape: Shape}>} */
export const STATES = {
  free: { name: "Free", text: "a new pod can be scheduled to it", shape: "outline" },
  used: { name: "In use", text: "pods use it", shape: "square" },
  none: { name: "Other taint", text: "tainted: the taint neither prevents scheduling nor evicts pods", shape: "circle" },
  noschedule: { name: "NoSchedule", text: "tainted: no new pods without a toleration", shape: "slash" },
  noexecute: { name: "NoExecute", text: "tainted: pods without a toleration are evicted", shape: "cross" },
  evicting: { name: "Evicting", text: "pods on it are or will be evicted", shape: "chevron" },
  blocked: { name: "Unavailable", text: "it cannot be allocated, for example because its node is cordoned", shape: "bar" },
  unknown: { name: "Unknown", text: "not published any more, incomplete, or not visible to you", shape: "dots" },
};

/** Draw one cell. @param {CanvasRenderingContext2D} ctx @param {Shape} shape */
export function drawShape(ctx, shape, x, y, size, color, paper) {
  ctx.fillStyle = ctx.strokeStyle = color;
  const line = Math.max(1, size / 9);
  ctx.lineWidth = line;
  const half = line / 2;
  switch (shape) {
    case "square":
      ctx.fillRect(x, y, size, size);
      return;
    case "outline":
      ctx.strokeRect(x + half, y + half, size - line, size - line);
      return;
    case "circle":
      ctx.beginPath();
      ctx.arc(x + size / 2, y + size / 2, size / 2 - half, 0, 7);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(x + size / 2, y + size / 2, size / 5, 0, 7);
      ctx.fill();
      return;
    case "slash":
      ctx.beginPath();
      ctx.moveTo(x, y + size);
      ctx.lineTo(x, y);
      ctx.lineTo(x + size, y);
      ctx.closePath();
      ctx.fill();
      ctx.strokeRect(x + half, y + half, size - line, size - line);
      return;
    case "cross":
      ctx.fillRect(x, y, size, size);
      ctx.strokeStyle = paper;
      ctx.lineWidth = Math.max(1.2, size / 7);
      ctx.beginPath();
      ctx.moveTo(x + size * 0.25, y + size * 0.25);
      ctx.lineTo(x + size * 0.75, y + size * 0.75);
      ctx.moveTo(x + size * 0.75, y + size * 0.25);
      ctx.lineTo(x + size * 0.25, y + size * 0.75);
      ctx.stroke();
      return;
    case "chevron":
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(x + size, y);
      ctx.lineTo(x + size / 2, y + size);
      ctx.closePath();
      ctx.fill();
      return;
    case "bar":
      ctx.strokeRect(x + half, y + half, size - line, size - line);
      ctx.fillRect(x + size * 0.2, y + size * 0.4, size * 0.6, size * 0.2);
      return;
    case "dots":
      for (const at of [0.12, 0.42, 0.72]) {
        ctx.fillRect(x + size * at, y, size * 0.16, size * 0.16);
        ctx.fillRect(x + size * at, y + size * 0.84, size * 0.16, size * 0.16);
      }
      ctx.fillRect(x + size * 0.42, y + size * 0.42, size * 0.16, size * 0.16);
  }
}

/** @returns {Record<string, string>} the colors of the style sheet, by state and use */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const names = [...Object.keys(STATES), "paper", "ink", "muted", "focus", "selected"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
