document.querySelectorAll('thead button').forEach(button => button.addEventListener('click', () => {
  const head = button.closest('th'), body = document.querySelector('#board tbody');
  const index = Array.from(head.parentNode.children).indexOf(head);
  const numeric = head.dataset.kind === 'number';
  const down = head.getAttribute('aria-sort') ? head.getAttribute('aria-sort') === 'ascending' : numeric;
  const key = row => row.children[index].dataset.value, part = row => 'part' in row.children[index].dataset;
  const rows = Array.from(body.rows).sort((a, b) => {
    const x = key(a), y = key(b);
    if (x === '' || y === '') return (x === '') - (y === '');
    if (part(a) !== part(b)) return part(a) - part(b); // a part of a family below the rows that have all of it
    return (numeric ? x - y : x.localeCompare(y)) * (down ? -1 : 1);
  });
  head.parentNode.querySelectorAll('th').forEach(other => other.removeAttribute('aria-sort'));
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  body.append(...rows);
}));
