// Below the curves: a lane of events for each arm, and the last collectives of ranks.

function add(place, tag, properties = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  place.append(element);
  return element;
}

function addSvg(place, tag, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  place.append(element);
  return element;
}

const LANE = 16;

class Lane {
  constructor(place, chart) {
    this.chart = chart;
    this.svg = addSvg(place, 'svg', {class: 'lane', role: 'img', 'aria-label': 'events by step; the list below has them, too'});
    this.addList(place);
  }

  addList(place) {
    const rows = [];
    for (const arm of this.chart.picture.arms) {
      for (const run of arm.runs) {
        for (const event of run.events ?? []) if (event[3] !== undefined) rows.push([arm.arm, run.seed, ...event]);
      }
    }
    if (rows.length === 0) return;
    const part = add(place, 'details', {className: 'part'});
    add(part, 'summary', {textContent: 'Events of the first seed of each arm'});
    const table = add(add(part, 'div', {className: 'scroll', tabIndex: 0, role: 'group', ariaLabel: 'events'}), 'table');
    const head = table.insertRow();
    for (const name of ['arm', 'seed', 'step', 'rank', 'event', 'what it says']) add(head, 'th', {textContent: name});
    for (const row of rows) {
      const line = table.insertRow();
      row[3] = row[3] < 0 ? 'launcher' : row[3];
      for (const cell of row) line.insertCell().textContent = cell;
    }
  }

  draw(graph) {
    const arms = this.chart.picture.arms.filter((arm) => this.chart.arms.has(arm.arm) &&
        arm.runs.some((run) => run.events));
    const width = this.svg.clientWidth || 800;
    this.svg.replaceChildren();
    this.svg.setAttribute('height', arms.length * LANE);
    const {x: left, w} = graph.getArea();
    arms.forEach((arm, row) => {
      const y = row * LANE + LANE / 2;
      addSvg(this.svg, 'path', {class: 'axis', d: `M${left} ${y}h${w}`});
      this.drawEvents(arm, y, graph, left, left + w);
      const name = arm.arm.length > 15 ? arm.arm.slice(0, 14) + '…' : arm.arm;
      addSvg(this.svg, 'text', {x: left - 8, y: y + 4, 'text-anchor': 'end'}, name);
    });
  }

  drawEvents(arm, y, graph, left, right) {
    const places = new Map();  // events at one step are one mark
    for (const run of arm.runs) {
      if (this.chart.seed !== null && run.seed !== this.chart.seed) continue;
      for (const [step, rank, name] of run.events ?? []) {
        const key = `${Math.max(step, 0)} ${name}`;
        if (!places.has(key)) places.set(key, {step: Math.max(step, 0), name, seeds: new Set()});
        places.get(key).seeds.add(run.seed);
      }
    }
    const {color} = this.chart.styles.get(arm.arm);
    for (const {step, name, seeds} of places.values()) {
      const x = graph.toDomXCoord(step);
      if (x < left - 1 || x > right + 1) continue;
      const d = name === 'fired' ? `M${x - 5} ${y - 5}h10l-5 9z` : `M${x} ${y - 4}l4 4l-4 4l-4 -4z`;
      const mark = addSvg(this.svg, 'path', {d, fill: color});
      addSvg(mark, 'title', {}, `${arm.arm}, step ${step}: ${name}, seed ${[...seeds].join(', ')}`);
    }
  }
}

// Each rank's last calls in seconds: a call without an end reaches the right edge, hatched.
function drawRanks(place, arm) {
  const {ranks, seed, end} = arm.calls;
  const all = ranks.flat();
  const from = Math.min(...all.map((call) => call[3]));
  const last = Math.max(...all.map((call) => call[4] ?? call[3]));
  const span = Math.max(last - from, 1e-6) * 1.25, height = 24, left = 60, width = 1000;
  const furthest = Math.max(...ranks.map((calls) => calls.at(-1)?.[0] ?? -1));
  add(place, 'p', {className: 'hint', textContent: `${arm.arm}, seed ${seed}, ${end}`});
  const svg = addSvg(place, 'svg', {class: 'ranks', viewBox: `0 0 ${width} ${ranks.length * height + 22}`, role: 'img'});
  const hatch = addSvg(addSvg(svg, 'defs', {}), 'pattern', {id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'});
  addSvg(hatch, 'path', {d: 'M0 0v6', stroke: 'var(--fail)', 'stroke-width': 3});
  const xOf = (second) => left + (second - from) / span * (width - left - 4);
  const words = ranks.map((calls, rank) => drawRank(svg, calls, rank, furthest, xOf, rank * height, width, left));
  for (let i = 0; i <= 4; ++i) {
    const second = from + span * i / 4;
    addSvg(svg, 'text', {x: xOf(second), y: ranks.length * height + 15, 'text-anchor': i === 4 ? 'end' : 'start'}, `${second.toFixed(span < .2 ? 3 : 2)} s`);
  }
  svg.setAttribute('aria-label', words.join('; '));
  const list = add(place, 'ul');
  for (const word of words) add(list, 'li', {textContent: word});
}

function drawRank(svg, calls, rank, furthest, xOf, y, width, left) {
  addSvg(svg, 'text', {x: 0, y: y + 15}, `rank ${rank}`);
  addSvg(svg, 'path', {class: 'axis', d: `M${left} ${y + 11}H${width}`});
  for (const [call, step, op, began, ended, state] of calls) {
    const x = xOf(began);
    const to = state === 'waits' ? width - 4 : xOf(ended ?? began);
    const box = addSvg(svg, 'rect', {class: state === 'ended' ? 'done' : state, x, y: y + 4, width: Math.max(to - x, 3), height: 14});
    addSvg(box, 'title', {}, `call ${call}, step ${step}: ${op}, ${state}`);
  }
  const lastCall = calls.at(-1);
  if (!lastCall) return `rank ${rank} wrote no call`;
  const [call, step, op, , , state] = lastCall;
  const word = {ended: 'ended', waits: 'waits in', failed: 'failed in'}[state];
  const behind = furthest > call ? `, ${furthest - call} behind the furthest` : '';
  return `rank ${rank} ${word} ${op} (call ${call}, step ${step})${behind}`;
}

function addRanks(place, picture) {
  const arms = picture.arms.filter((arm) => arm.calls);
  if (arms.length === 0) return;
  const part = add(place, 'details', {className: 'part', open: true});
  add(part, 'summary', {textContent: 'Last collectives of the ranks: hatched is waiting'});
  const label = add(part, 'label', {textContent: 'Arm '});
  const select = add(label, 'select');
  arms.forEach((arm, i) => select.add(new Option(arm.arm, i)));
  const drawing = add(part, 'div');
  const draw = () => { drawing.replaceChildren(); drawRanks(drawing, arms[select.value]); };
  select.value = Math.max(arms.findIndex((arm) => arm.kind === 'fault'), 0);
  select.addEventListener('change', draw);
  draw();
}

function addCommand(place, picture) {
  const arms = picture.arms.filter((arm) => arm.command && arm.runs.length);
  if (arms.length === 0) return;
  const line = add(place, 'p');
  const select = add(add(line, 'label', {textContent: 'Repeat a run: '}), 'select');
  for (const [i, arm] of arms.entries()) {
    for (const run of arm.runs) select.add(new Option(`${arm.arm}, seed ${run.seed}`, `${i} ${run.seed}`));
  }
  line.append(' ');
  const code = add(line, 'code');
  const show = () => {
    const [arm, seed] = select.value.split(' ');
    code.textContent = arms[arm].command + seed;
  };
  select.addEventListener('change', show);
  show();
  code.after(copyButton(code));
}

function addLeftOut(place, picture) {
  if (!picture.left_out?.length) return;
  add(place, 'p', {className: 'hint', textContent: `Recorded, but not in this file: ${picture.left_out.map(nameOf).join(', ')}.`});
}
