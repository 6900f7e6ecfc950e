// The list of cases: filter, search, sort, links into it, buttons that copy commands.

const cases = [...document.querySelectorAll('.case')];

function matches(element, words, verdict) {
  if (verdict && element.dataset.verdict !== verdict) return false;
  if (words.length === 0) return true;
  element.searched ??= element.textContent.toLowerCase();
  return words.every((word) => element.searched.includes(word));
}

function applyFilter() {
  const words = document.getElementById('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = document.getElementById('verdict').value;
  let shown = 0;
  for (const element of cases) {
    element.hidden = !matches(element, words, verdict);
    shown += element.hidden ? 0 : 1;
  }
  document.getElementById('shown').textContent = `${shown} of ${cases.length} cases`;
}

function applySort() {
  const by = document.getElementById('sort').value;
  const sorted = [...cases];  // as they came: the weakest first
  if (by === 'name') sorted.sort((a, b) => a.dataset.name.localeCompare(b.dataset.name));
  if (by === 'seconds') sorted.sort((a, b) => b.dataset.seconds - a.dataset.seconds);
  document.getElementById('cases').append(...sorted);
}

function openLinked() {
  const element = /^#c\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
  if (!element) return;
  element.hidden = false;
  element.open = true;
  element.scrollIntoView();
  element.querySelector('summary').focus({preventScroll: true});
}

function copyButton(code) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copied';
  button.textContent = 'copy';
  button.setAttribute('aria-label', 'copy the command');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = 'copied';
    } catch {  // a page that is no secure context: select it, for the keyboard's copy
      getSelection().selectAllChildren(code);
      button.textContent = 'selected';
    }
  });
  return button;
}

function startList() {
  const select = document.getElementById('verdict');
  for (const verdict of new Set(cases.map((element) => element.dataset.verdict))) {
    select.add(new Option(verdict, verdict));
  }
  document.getElementById('search').addEventListener('input', applyFilter);
  select.addEventListener('change', applyFilter);
  document.getElementById('sort').addEventListener('change', applySort);
  addEventListener('hashchange', openLinked);
  applyFilter();
  openLinked();
}

// What all pages have.
function startPage() {
  const filter = document.getElementById('filter');
  if (filter) {
    filter.hidden = false;
    filter.addEventListener('submit', (event) => event.preventDefault());
    document.addEventListener('keydown', (event) => {
      if (event.key !== '/' || /INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) return;
      event.preventDefault();
      document.getElementById('search').focus();
    });
  }
  for (const code of document.querySelectorAll('code.copy')) code.after(copyButton(code));
}
