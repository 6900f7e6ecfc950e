function showCase(element) {
  if (!element.open || element.isShown) return;
  element.isShown = true;
  const data = JSON.parse(document.getElementById(element.id.replace('c', 'd')).textContent);
  const place = element.querySelector('.charts');
  new Chart(place, data);
  addRanks(place, data.picture);
  addCommand(place, data.picture);
  addLeftOut(place, data.picture);
}

for (const element of cases) element.addEventListener('toggle', () => showCase(element));
startList();
