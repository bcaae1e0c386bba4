"""Print the table of results/published/gains.csv as Markdown: what each published ALFWorld gain can support.

`python benchmarks/published_gains.py`; the numbers are those of `evalharness compare --published`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from evalharness.stats.published_gain import difference_interval, fisher_p, games_needed, parse_rate

GAINS = Path(__file__).parent.parent / "results/published/gains.csv"
COLUMNS = (
    "gain of",
    "model",
    "over",
    "rates",
    "split",
    "games",
    "points [95 %]",
    "p",
    "games for 80 % power",
)


def read_gains() -> list[dict[str, str]]:
    with GAINS.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table_lines() -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for row in read_gains():
        before, after = (parse_rate(f"{row[rate]}% of {row['games']}") for rate in ("baseline_rate", "rate"))
        low, high = difference_interval(before, after)
        stated = row["games_stated"]
        cells = (
            f"[{row['method']}]({row['source']})",
            row["model"],
            row["baseline"],
            f"{row['baseline_rate']} → {row['rate']}",
            row["split"],
            f"{row['games']} assumed" if stated == "not stated" else stated,
            f"{100 * (after.share - before.share):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]",
            f"{fisher_p(before, after):.2g}",
            f"{games_needed(before, after):,}",
        )
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print("\n".join(table_lines()))
