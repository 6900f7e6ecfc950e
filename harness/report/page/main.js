function showCase(element) {
  if (!element.open || element.isShown) return;
  element.isShown = true;
  const source = document.getElementById(element.id.replace('c', 'd'));
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const place = element.querySelector('.charts');
  new Chart(place, data);
  addRanks(place, data.picture);
  addCommand(place, data.picture);
  addLeftOut(place, data.picture);
}

for (const element of cases) element.addEventListener('toggle', () => showCase(element));
if (document.getElementById('cases')) startList();
startPage();
startPlots();
for (const table of document.querySelectorAll('table.heat')) startHeat(table);
