// Charts of plain curves, from the specs of harness/report/html_page.h.

const PLOT_TONES = ['--limit', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9'];

function numberOf(value) {
  return typeof value === 'string' ? NUMBERS[value] ?? NaN : value;
}

function plotTone(index) {
  const tone = PLOT_TONES[index % PLOT_TONES.length];
  return tone.startsWith('--') ? toneOf(tone) : tone;
}

class Plot {
  constructor(figure, spec) {
    this.spec = spec;
    this.lines = spec.lines.map((line, i) => ({...line, color: plotTone(i),
      dash: DASHES[Math.floor(i / PLOT_TONES.length) % DASHES.length],
      points: line.points.map(([x, y]) => [this.atX(x), numberOf(y)])}));
    this.on = new Set(this.lines);
    this.addLegend(figure);
    this.canvas = add(figure, 'div', {className: 'chart', role: 'img'});
    this.canvas.setAttribute('aria-label', `${figure.dataset.label}; the table has its numbers`);
    this.cursor = add(figure, 'div', {className: 'cursor'});
    this.draw();
  }

  atX(x) {
    return this.spec.x.log ? Math.log10(x) : x;
  }

  nameX(place) {
    if (this.spec.x.labels) return this.spec.x.labels[place] ?? '';
    return String(Number((this.spec.x.log ? 10 ** place : place).toPrecision(4)));
  }

  addLegend(figure) {
    if (this.lines.length < 2) return;
    const set = add(figure, 'fieldset', {className: 'arms'});
    set.setAttribute('aria-label', 'curves');
    for (const line of this.lines) {
      const label = add(set, 'label');
      const box = add(label, 'input', {type: 'checkbox', checked: true});
      box.addEventListener('change', () => {
        box.checked ? this.on.add(line) : this.on.delete(line);
        this.draw();
      });
      addSwatch(label, line.color, line.dash);
      label.append(` ${line.name}`);
    }
  }

  draw() {
    this.graph?.destroy();
    this.graph = null;
    this.canvas.replaceChildren();
    const lines = this.lines.filter((line) => this.on.has(line));
    if (lines.every((line) => line.points.length === 0)) {
      this.canvas.textContent = 'Nothing is shown.';
      return;
    }
    const {x, y} = this.spec;
    const labels = lines.map((line, i) => `${i}`);
    const series = Object.fromEntries(labels.map((label, i) => [label,
      {strokePattern: lines[i].dash.length ? lines[i].dash : null, drawPoints: lines[i].dots ?? false, pointSize: 3.5}]));
    const rows = rowsOf(lines);
    this.graph = new Dygraph(this.canvas, rows, {
      labels: ['x', ...labels], colors: lines.map((line) => line.color), series, legend: 'never',
      logscale: Boolean(y.log), connectSeparatedPoints: true, strokeWidth: 1.6, xlabel: escapeLabel(x.name), ylabel: escapeLabel(y.name),
      axisLineColor: toneOf('--line'), gridLineColor: toneOf('--line'), dateWindow: this.window(rows),
      valueRange: this.valueRange(lines), highlightCircleSize: 4, yRangePad: 12,
      axes: {x: {ticker: (from, to) => this.ticks(from, to)}, y: {axisLabelWidth: 76}},
      underlayCallback: (context, area, graph) => this.shade(context, area, graph),
      plugins: [{activate: () => ({didDrawChart: ({drawingContext, dygraph}) => this.drawOver(drawingContext, dygraph)})}],
      highlightCallback: (event, place) => this.showCursor(place, lines),
      unhighlightCallback: () => this.cursor.replaceChildren(),
    });
  }

  window(rows) {
    const first = rows[0][0], last = rows.at(-1)[0];
    const marks = (this.spec.marks ?? []).map((mark) => this.atX(mark.x));
    const from = Math.min(first, ...marks), to = Math.max(last, ...marks);
    const pad = (to - from || 1) * .03;
    return [from - pad, to + pad];
  }

  // With the ranges of the points, and the levels.
  valueRange(lines) {
    const {y, levels = []} = this.spec;
    if (y.from !== undefined) return [y.from, y.to];
    if (y.log || lines.every((line) => !line.ranges)) return null;
    const values = [...levels.map((level) => level.y), ...lines.flatMap(({points, ranges = []}) =>
        [...points.map(([, value]) => value), ...ranges.flatMap(([, lo, hi]) => [numberOf(lo), numberOf(hi)])])];
    const finite = values.filter(Number.isFinite);
    const lo = Math.min(...finite), hi = Math.max(...finite), pad = (hi - lo || 1) * .06;
    return finite.length > 0 ? [lo - pad, hi + pad] : null;
  }

  // Powers of ten for logarithms, each place for labels, as far as there is room.
  ticks(from, to) {
    const {x} = this.spec;
    const most = Math.max(Math.floor(this.canvas.clientWidth / 90), 2);
    const rough = (to - from) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    let step = [1, 2, 5, 10].map((size) => size * power).find((size) => size >= rough);
    if (x.labels || x.log) step = Math.max(Math.ceil(rough), 1);
    const values = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) values.push(at);
    if (x.log && values.length < 3) {  // less than two powers of ten
      for (let at = Math.floor(from); at <= to; ++at) {
        for (const digit of [2, 5]) values.push(at + Math.log10(digit));
      }
    }
    return values.filter((v) => v >= from && v <= to).map((v) => ({v, label: escapeLabel(this.nameX(Number(v.toFixed(9))))}));
  }

  shade(context, area, graph) {
    context.save();
    (this.spec.bands ?? []).forEach((band) => {
      const left = graph.toDomXCoord(this.atX(band.from)), right = graph.toDomXCoord(this.atX(band.to));
      context.globalAlpha = .16;
      context.fillStyle = toneOf('--pass');
      context.fillRect(left - 3, area.y, right - left + 6, area.h);
    });
    context.restore();
  }

  drawOver(context, graph) {
    const area = graph.getArea();
    context.save();
    context.beginPath();
    context.rect(area.x, area.y, area.w, area.h);
    context.clip();
    for (const line of this.on) this.drawRanges(context, graph, line, area);
    context.setLineDash([4, 3]);
    context.lineWidth = 1.4;
    for (const {y, name} of this.spec.levels ?? []) {
      const at = graph.toDomYCoord(y);
      this.stroke(context, area.x, at, area.x + area.w, at, toneOf('--faint'));
      writeOn(context, name, area.x + 4, at - 4, toneOf('--faint'));
    }
    const names = [...(this.spec.bands ?? []).map(({from, name}) => [from, name, '--pass', false]),
      ...(this.spec.marks ?? []).map(({x, name}) => [x, name, '--open', true])];
    names.forEach(([x, name, tone, line], i) => {
      const at = graph.toDomXCoord(this.atX(x));
      if (line) this.stroke(context, at, area.y, at, area.y + area.h, toneOf(tone));
      context.font = '12px sans-serif';
      const width = context.measureText(name).width + 8;
      writeOn(context, name, at + width > area.x + area.w ? at - width : at + 4, area.y + 12 + 16 * (i % 8), toneOf(tone));
    });
    context.restore();
  }

  stroke(context, x, y, toX, toY, tone) {
    context.strokeStyle = tone;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(toX, toY);
    context.stroke();
  }

  // Ranges of a point, and a cross at the edge where a value is not finite.
  drawRanges(context, graph, line, area) {
    context.setLineDash([]);
    context.lineWidth = 1;
    context.globalAlpha = .6;
    for (const [x, lo, hi] of line.ranges ?? []) {
      const at = graph.toDomXCoord(this.atX(x));
      this.stroke(context, at, graph.toDomYCoord(numberOf(lo)), at, graph.toDomYCoord(numberOf(hi)), line.color);
    }
    context.globalAlpha = 1;
    context.lineWidth = 2;
    for (const [x, value] of line.points) {
      if (Number.isFinite(value)) continue;
      const at = graph.toDomXCoord(x), y = value < 0 ? area.y + area.h - 8 : area.y + 8;
      this.stroke(context, at - 4, y - 4, at + 4, y + 4, line.color);
      this.stroke(context, at + 4, y - 4, at - 4, y + 4, line.color);
    }
  }

  showCursor(place, lines) {
    this.cursor.replaceChildren();
    add(this.cursor, 'b', {textContent: `${this.spec.x.name} ${this.nameX(place)} `});
    for (const line of lines) {
      const value = line.points.find(([x]) => x === place)?.[1];
      if (value === undefined) continue;
      const span = add(this.cursor, 'span', {textContent: ` ${line.name} `});
      span.style.color = line.color;
      add(this.cursor, 'span', {textContent: shortNumber(value)});
    }
  }
}

// Each when it comes near: a page may have many.
function startPlots() {
  const watcher = new IntersectionObserver((entries) => {
    for (const {isIntersecting, target} of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      new Plot(target, JSON.parse(document.getElementById(`data-${target.id}`).textContent));
    }
  }, {rootMargin: '600px'});
  for (const figure of document.querySelectorAll('figure.plot')) watcher.observe(figure);
}
