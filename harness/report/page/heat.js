// Tables of signs (matrix): the keys of the arrows go from cell to cell, and what a cell means is
// said below the table. A search hides rows and columns.

function startHeat(table) {
  const said = document.getElementById(table.dataset.said);
  const heads = [...table.tHead.rows[0].cells];
  let current = null;
  const describe = (cell) => {
    const [yes, no, unknown, controlYes, controlNo, controlUnknown] = cell.dataset.n.split(' ');
    const count = (holds, fails, lost) => `true in ${holds}, false in ${fails}, unknown in ${lost}`;
    return `${cell.parentNode.cells[0].textContent} over ${heads[cell.cellIndex].textContent}` +
        `${cell.classList.contains('own') ? ' (its own)' : ''}: fault runs: ${count(yes, no, unknown)}; ` +
        `control runs: ${count(controlYes, controlNo, controlUnknown)}`;
  };
  const choose = (cell) => {
    if (!cell?.dataset.n) return;
    current?.classList.remove('current');
    current = cell;
    current.classList.add('current');
    said.textContent = describe(cell);
  };
  table.addEventListener('click', (event) => choose(event.target.closest('td')));
  table.addEventListener('mouseover', (event) => {
    const cell = event.target.closest('td');
    if (cell?.dataset.n) cell.title = describe(cell);
  });
  table.addEventListener('focus', () => choose(current ?? table.tBodies[0].querySelector('td')));
  table.addEventListener('keydown', (event) => {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    if (!step || !current) return;
    event.preventDefault();
    choose(neighbour(current, step));
    current.scrollIntoView({block: 'nearest', inline: 'nearest'});
  });
  document.getElementById('filter')?.addEventListener('input', () => filterHeat(table, heads));
  filterHeat(table, heads);
}

function neighbour(cell, [down, right]) {
  for (let row = cell.parentNode, at = cell.cellIndex; ;) {
    at += right;
    row = down < 0 ? row.previousElementSibling : down > 0 ? row.nextElementSibling : row;
    const next = row?.cells[at];
    if (!next?.dataset.n) return cell;
    if (!next.hidden && !row.hidden) return next;
  }
}

function filterHeat(table, heads) {
  const wanted = (id) => document.getElementById(id).value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (cell, words) => words.every((word) => cell.textContent.toLowerCase().includes(word));
  const rowWords = wanted('search'), columnWords = wanted('search-columns');
  const shown = heads.map((head, i) => i === 0 || fits(head, columnWords));
  let rows = 0;
  for (const row of table.rows) {
    row.hidden = row.parentNode.tagName === 'TBODY' && !fits(row.cells[0], rowWords);
    rows += !row.hidden && row.parentNode.tagName === 'TBODY' ? 1 : 0;
    [...row.cells].forEach((cell, i) => { cell.hidden = !shown[i]; });
  }
  document.getElementById('shown').textContent =
      `${rows} of ${table.tBodies[0].rows.length} symptoms, ${shown.filter(Boolean).length - 1} of ${heads.length - 1} cases`;
}
