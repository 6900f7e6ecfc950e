// The data of a case, as harness/picture/picture.h describes them.

const NUMBERS = {nan: NaN, inf: Infinity, '-inf': -Infinity};

// A curve as [[step, value], ..].
function pointsOf([first, gaps, values]) {
  let step = first;
  return values.map((value, i) => {
    if (i > 0) step += gaps.length > 0 ? gaps[i - 1] : 1;
    return [step, typeof value === 'string' ? NUMBERS[value] : value];
  });
}

function signalsOf(picture) {
  const names = new Set();
  for (const arm of picture.arms) {
    for (const run of arm.runs) Object.keys(run.curves ?? {}).forEach((name) => names.add(name));
  }
  const rank = (name) => [name !== 'loss', name.includes('@'), name.includes('{'), name].join();
  return [...names].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

function isLog(picture, signal) {
  return (picture.log ?? []).includes(signal.replace(/[{@].*/, ''));
}

function nameOf(signal) {
  return signal.replace(/@(\d+)$/, ' of rank $1');
}

// A line for each run: of the chosen arms and seed (null: all) that has the signal.
function linesOf(picture, signal, arms, seed) {
  const lines = [];
  for (const arm of picture.arms) {
    if (!arms.has(arm.arm)) continue;
    for (const run of arm.runs) {
      if (seed !== null && run.seed !== seed) continue;
      if (!run.curves?.[signal]) continue;
      lines.push({arm: arm.arm, seed: run.seed, points: pointsOf(run.curves[signal])});
    }
  }
  return lines;
}

// Rows for dygraphs: [step, value of each line]; null where a line has no point, NaN where it
// has one that cannot be drawn.
function rowsOf(lines) {
  const rows = new Map();
  lines.forEach(({points}, column) => {
    for (const [step, value] of points) {
      if (!rows.has(step)) rows.set(step, [step, ...Array(lines.length).fill(null)]);
      rows.get(step)[column + 1] = Number.isFinite(value) ? value : NaN;
    }
  });
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

// Labels of axes are markup to dygraphs.
function escapeLabel(text) {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

function shortNumber(value) {
  if (!Number.isFinite(value)) return String(value).toLowerCase().replace('infinity', 'inf');
  return value === Math.trunc(value) && Math.abs(value) < 1e6 ? String(value) : value.toPrecision(4);
}
