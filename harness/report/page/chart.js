// One case's chart: every arm's curves over all seeds, with what a check reads drawn onto them.

// Okabe and Ito, and dashes besides: colour alone tells nothing.
const TONES = {control: ['currentColor'], fault: ['#d55e00'],
  remedy: ['#009e73', '#56b4e9', '#0072b2', '#3ccba2'], decoy: ['#cc79a7', '#e69f00', '#b8860b'],
  reference: ['#8a8f98'], rounding: ['#8a8f98'], bug: ['#d55e00', '#cc79a7', '#e69f00'],
  a: ['--limit'], b: ['#d55e00']};
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

function stylesOf(arms) {
  const counts = {};
  const styles = new Map();
  const ink = getComputedStyle(document.body).color;
  for (const arm of arms) {
    const tones = TONES[arm.kind] ?? TONES.remedy;
    const index = counts[arm.kind] = (counts[arm.kind] ?? -1) + 1;
    const tone = tones[index % tones.length];
    styles.set(arm.arm, {color: tone === 'currentColor' ? ink : tone.startsWith('--') ? toneOf(tone) : tone,
      dash: DASHES[(arm.kind === 'decoy' || arm.kind === 'b' ? index + 1 : index) % DASHES.length]});
  }
  return styles;
}

function toneOf(name) {
  return getComputedStyle(document.body).getPropertyValue(name);
}

function addSwatch(place, color, dash) {
  const svg = addSvg(place, 'svg', {viewBox: '0 0 34 10'});
  addSvg(svg, 'path', {d: 'M0 5h34', stroke: color, 'stroke-width': 2.5, 'stroke-dasharray': dash.join(' ')});
}

// Words on a chart, on a patch of paper.
function writeOn(context, words, x, y, tone) {
  context.font = '12px sans-serif';
  context.globalAlpha = .8;
  context.fillStyle = toneOf('--paper');
  context.fillRect(x - 2, y - 11, context.measureText(words).width + 4, 15);
  context.globalAlpha = 1;
  context.fillStyle = tone;
  context.fillText(words, x, y);
}

class Chart {
  constructor(place, data) {
    this.picture = data.picture;
    this.checks = data.checks;
    this.styles = stylesOf(this.picture.arms);
    const shown = this.picture.shown ?? this.picture.arms.map((arm) => arm.arm);
    this.arms = new Set(this.picture.arms.filter((arm) => arm.runs.length && shown.includes(arm.arm)).map((arm) => arm.arm));
    this.signals = signalsOf(this.picture);
    this.signal = this.signals[0];
    this.seed = null;
    this.check = null;
    this.zoom = null;
    if (!this.signal) return;
    this.build(place);
    this.choose(this.firstCheck());
  }

  // A broken check, else the first symptom of the fault: the first that reads a signal.
  firstCheck() {
    const drawn = this.checks.filter((check) => this.sketchesOf(check).length > 0);
    return drawn.find((check) => check[3]) ?? drawn.find((check) => check[1] === 'fault') ?? null;
  }

  sketchesOf(check) {
    const arm = check && this.picture.arms.find((each) => each.arm === check[1]);
    return arm?.sketches?.[check[0]] ?? [];
  }

  build(place) {
    const tools = add(place, 'div', {className: 'tools'});
    this.signalSelect = this.select(tools, 'Signal', this.signals.map((s) => [s, nameOf(s)]), (value) => {
      this.signal = value;
      this.setScale(isLog(this.picture, value));
    });
    const seeds = new Set(this.picture.arms.flatMap((arm) => arm.runs.map((run) => run.seed)));
    this.select(tools, 'Seed', [['', 'all'], ...[...seeds].sort((a, b) => a - b).map((s) => [s, s])],
        (value) => this.seed = value === '' ? null : Number(value));
    this.scaleSelect = this.select(tools, 'Scale', [['linear', 'linear'], ['log', 'log']],
        (value) => this.log = value === 'log');
    const checks = this.checks.map((check, i) => [i, `${check[3] ? '✗ ' : ''}${check[1]}: ${check[0]}`])
        .filter(([i]) => this.sketchesOf(this.checks[i]).length > 0);
    this.checkSelect = this.select(tools, 'Show check', [['', 'none'], ...checks],
        (value) => this.choose(value === '' ? null : this.checks[value], false));
    const reset = add(tools, 'button', {type: 'button', textContent: 'reset zoom'});
    reset.addEventListener('click', () => { this.zoom = null; this.draw(); });
    this.addArms(place);
    this.claim = add(place, 'p', {className: 'hint'});
    this.canvas = add(place, 'div', {className: 'chart', role: 'img'});
    this.cursor = add(place, 'div', {className: 'cursor'});
    this.lane = new Lane(place, this);
  }

  addArms(place) {
    const set = add(place, 'fieldset', {className: 'arms'});
    set.setAttribute('aria-label', 'arms');
    for (const arm of this.picture.arms) {
      if (!arm.runs.length) continue;
      const label = add(set, 'label');
      const box = add(label, 'input', {type: 'checkbox', checked: this.arms.has(arm.arm)});
      box.addEventListener('change', () => {
        box.checked ? this.arms.add(arm.arm) : this.arms.delete(arm.arm);
        this.draw();
      });
      const {color, dash} = this.styles.get(arm.arm);
      addSwatch(label, color, dash);
      label.append(` ${arm.arm}`);
      label.title = arm.kind;
    }
  }

  select(place, name, options, changed) {
    const select = add(add(place, 'label', {textContent: `${name} `}), 'select');
    for (const [value, text] of options) select.add(new Option(text, value));
    select.addEventListener('change', () => { changed(select.value); this.draw(); });
    return select;
  }

  setScale(log) {
    this.log = log;
    this.scaleSelect.value = log ? 'log' : 'linear';
  }

  // Shows a check on a signal that it reads.
  choose(check, draw = true) {
    this.check = check;
    this.checkSelect.value = check ? this.checks.indexOf(check) : '';
    const [sketch] = this.sketchesOf(check);
    const name = sketch && this.nameIn(sketch);
    if (name) this.signal = name;
    this.signalSelect.value = this.signal;
    this.setScale(isLog(this.picture, this.signal));
    if (draw) this.draw();
  }

  // The recorded signal that a sketch means; a glob of modules: the first that it fits.
  nameIn([signal, , rank]) {
    const at = rank ? `@${rank}` : '';
    const whole = this.signals.find((name) => name === signal + at);
    return whole ?? this.signals.find((name) => name.startsWith(signal.replace(/[*?].*/, '')));
  }

  draw() {
    const lines = linesOf(this.picture, this.signal, this.arms, this.seed);
    this.lines = lines;
    this.describe(lines);
    this.graph?.destroy();
    this.graph = null;
    this.canvas.replaceChildren();
    if (lines.length === 0) {
      this.canvas.textContent = 'No run that is chosen has this signal in this file.';
      return;
    }
    const styles = lines.map((line) => this.styles.get(line.arm));
    const labels = lines.map((line, i) => `${i}`);
    const series = {};
    labels.forEach((label, i) => { series[label] = {strokePattern: styles[i].dash.length ? styles[i].dash : null}; });
    const rows = rowsOf(lines);
    const single = rows.length === 1;
    this.graph = new Dygraph(this.canvas, rows, {
      labels: ['step', ...labels], colors: styles.map((style) => style.color), series,
      logscale: this.log && lines.some(({points}) => points.some(([, y]) => y > 0)),
      connectSeparatedPoints: true, drawPoints: single, pointSize: 3, strokeWidth: 1.4, legend: 'never',
      xlabel: 'step', ylabel: escapeLabel(nameOf(this.signal) + this.unit()), axisLineColor: toneOf('--line'),
      gridLineColor: toneOf('--line'), dateWindow: this.zoom ?? this.wholeWindow(rows),
      highlightCircleSize: 3, xRangePad: 6, yRangePad: 12, animatedZooms: false, axes: {y: {axisLabelWidth: 100}},
      underlayCallback: (context, area, graph) => this.shadeWindows(context, area, graph),
      plugins: [{activate: () => ({didDrawChart: ({drawingContext, dygraph}) => this.drawOver(drawingContext, dygraph)})}],
      highlightCallback: (event, step) => this.showCursor(step),
      unhighlightCallback: () => this.cursor.replaceChildren(),
      drawCallback: (graph) => this.lane.draw(graph),
      zoomCallback: (from, to) => { this.zoom = [from, to]; },
    });
  }

  wholeWindow(rows) {
    const last = Math.max((this.picture.steps ?? 1) - 1, rows[rows.length - 1][0], 1);
    return [Math.min(rows[0][0], 0), last];
  }

  unit() {
    const unit = this.picture.units?.[this.signal.replace(/[{@].*/, '')];
    return unit ? ` (${unit})` : '';
  }

  describe(lines) {
    const check = this.check;
    this.claim.replaceChildren();
    if (check) {
      this.claim.append(`${check[1]}: ${check[0]} ${check[2] ? 'must hold' : 'must not hold'}: `);
      this.markFormula(check);
    }
    this.canvas.setAttribute('aria-label', `${nameOf(this.signal)} by step, ${lines.length} runs of ` +
        `${[...this.arms].join(', ')}; the table of arms below has the final losses`);
  }

  // The part of the formula that is drawn stands out.
  markFormula([check, arm, , broken, , , formula]) {
    const code = add(this.claim, 'code');
    const drawn = this.drawnSketches();
    const bytes = new TextEncoder().encode(formula);
    const text = (from, to) => new TextDecoder().decode(bytes.slice(from, to));
    let done = 0;
    for (const sketch of drawn) {
      if (sketch[3] < done) continue;
      code.append(text(done, sketch[3]));
      add(code, broken ? 'mark' : 'b', {textContent: text(sketch[3], sketch[4])});
      done = sketch[4];
    }
    code.append(text(done, bytes.length));
  }

  showCursor(step) {
    this.cursor.replaceChildren();
    add(this.cursor, 'b', {textContent: `step ${step} `});
    for (const arm of this.arms) {
      const values = this.lines.filter((line) => line.arm === arm)
          .map((line) => line.points.find(([x]) => x === step)?.[1]).filter((value) => value !== undefined);
      if (values.length === 0) continue;
      const span = add(this.cursor, 'span', {textContent: ` ${arm} `});
      span.style.color = this.styles.get(arm).color;
      add(this.cursor, 'span', {textContent: values.map(shortNumber).join(', ')});
    }
  }

  drawnSketches() {
    return this.sketchesOf(this.check).filter((sketch) => this.nameIn(sketch) === this.signal);
  }

  shadeWindows(context, area, graph) {
    context.save();
    context.globalAlpha = .13;
    context.fillStyle = toneOf('--open');
    for (const [, , , , , from, to] of this.drawnSketches()) {
      const left = Math.max(graph.toDomXCoord(from - .5), area.x);
      const right = Math.min(graph.toDomXCoord(to - .5), area.x + area.w);
      context.fillRect(left, area.y, Math.max(right - left, 0), area.h);
    }
    context.restore();
  }

  drawOver(context, graph) {
    const area = graph.getArea();
    context.save();
    context.beginPath();
    context.rect(area.x, area.y, area.w, area.h);
    context.clip();
    for (const [, , , , , from, to, comparison, curve] of this.drawnSketches()) {
      const left = graph.toDomXCoord(from - .5), right = graph.toDomXCoord(to - .5);
      if (curve) this.drawThreshold(context, graph, pointsOf(curve), left, right, comparison);
    }
    if (this.check) this.drawHolds(context, area, graph);
    this.drawFired(context, area, graph);
    this.drawLost(context, area, graph);
    context.restore();
  }

  drawThreshold(context, graph, points, left, right, comparison) {
    const path = new Path2D();
    if (points.length === 1) {
      path.moveTo(left, graph.toDomYCoord(points[0][1]));
      path.lineTo(right, graph.toDomYCoord(points[0][1]));
    } else {
      for (const [step, value] of points) {
        if (Number.isFinite(value)) path.lineTo(graph.toDomXCoord(step), graph.toDomYCoord(value));
      }
    }
    // A pale line below makes it stand out from the curves.
    for (const [tone, width, dash] of [['--paper', 5, []], ['--open', 2.5, [6, 4]]]) {
      context.strokeStyle = toneOf(tone);
      context.lineWidth = width;
      context.setLineDash(dash);
      context.stroke(path);
    }
    context.setLineDash([]);
    if (points.length === 1) {
      writeOn(context, `${comparison} ${shortNumber(points[0][1])}`, Math.max(left, graph.getArea().x) + 4,
          graph.toDomYCoord(points[0][1]) - 8, toneOf('--open'));
    }
  }

  // Where the check was decided in each seed in which it holds.
  drawHolds(context, area, graph) {
    const [, arm, , , truths, steps] = this.check;
    context.fillStyle = this.styles.get(arm)?.color;
    steps.forEach((step, seed) => {
      if (step < 0 || truths[seed] !== 't' || (this.seed !== null && this.seed !== seed)) return;
      const x = graph.toDomXCoord(step), y = area.y + area.h;
      context.beginPath();
      context.moveTo(x, y - 9);
      context.lineTo(x - 5, y);
      context.lineTo(x + 5, y);
      context.fill();
    });
  }

  // The first moment at which a fault changed something; of a comparison on each side.
  drawFired(context, area, graph) {
    for (const arm of this.picture.arms) {
      const isFault = arm.kind === 'fault' || (arm.was === 'fault' && this.arms.has(arm.arm));
      const steps = (isFault ? arm.runs : []).flatMap((run) => run.events ?? []).filter((event) => event[2] === 'fired')
          .map((event) => event[0]);
      if (steps.length > 0) this.drawFiredAt(context, area, graph, arm, Math.max(Math.min(...steps), 0));
    }
  }

  drawFiredAt(context, area, graph, arm, step) {
    const x = graph.toDomXCoord(step);
    context.save();
    context.strokeStyle = this.styles.get(arm.arm).color;
    context.setLineDash([2, 2]);
    context.beginPath();
    context.moveTo(x, area.y);
    context.lineTo(x, area.y + area.h);
    context.stroke();
    context.restore();
    const words = `${arm.was ? `${arm.arm}: ` : ''}fault fired, step ${step}`;
    context.font = '12px sans-serif';
    const width = context.measureText(words).width + 6;
    const near = x + width > area.x + area.w;
    writeOn(context, words, x + (near ? -width : 4), area.y + 12 + (arm.kind === 'b' ? 16 : 0), this.styles.get(arm.arm).color);
  }

  // A cross where a curve leaves the finite numbers; a line of crosses for each arm.
  drawLost(context, area, graph) {
    const arms = [...this.styles.keys()];
    for (const line of this.lines) {
      const lost = line.points.find(([, value]) => !Number.isFinite(value));
      if (!lost) continue;
      const x = graph.toDomXCoord(lost[0]), y = area.y + 20 + 9 * (arms.indexOf(line.arm) % 10);
      context.strokeStyle = this.styles.get(line.arm).color;
      context.setLineDash([]);
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(x - 4, y - 4);
      context.lineTo(x + 4, y + 4);
      context.moveTo(x + 4, y - 4);
      context.lineTo(x - 4, y + 4);
      context.stroke();
    }
  }
}
