"""The rounds of a loop as a table: scores on the validation suite, what was made, what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from evalharness.base.terminal import plain_table
from evalharness.base.text import printable
from evalharness.records.store import EPISODES
from evalharness.results.kept_summary import KeptSummary, read_summary
from evalharness.results.report.score_table import brief
from evalharness.results.score import MEASURES
from evalharness.runs.study import read_study
from evalharness.training.datasets import conversation as data
from evalharness.training.study.jobs import read_ledger
from evalharness.training.tune import plan

if TYPE_CHECKING:
    from evalharness.records.summary import Summary

SCHEMA = 1


@dataclass(frozen=True)
class Round:
    number: int
    validation: KeptSummary | None
    """None before it was played."""
    new: int | None
    """Conversations that the round made; None before, and of round 0."""
    errors: Mapping[str, int]
    """Kind -> turns of these."""
    data: int | None
    """Conversations that were trained on, those of earlier rounds among them."""
    trained_tokens: int | None
    hours: float
    """Of its finished jobs, each in the start that finished it."""

    @property
    def summary(self) -> Summary | None:
        return self.validation.summary if self.validation else None


def read_rounds(folder: Path) -> list[Round]:
    """From a loop's folder alone. Raises UserError on damage."""
    study, ledger = read_study(folder), read_ledger(folder)
    found = []
    for number in range(len(study[1]) if study else 0):
        jobs = [f"data {name}-{number}" for name in ("played", "new", "all")]
        jobs += [f"training round-{number}", f"run round-{number}"]
        run = folder / "runs" / f"round-{number}"
        new = _inside(data.read_manifest(folder / "data" / f"new-{number}.jsonl"), "counts")
        trained = plan.read_manifest(folder / "models" / f"round-{number}")
        kinds = _inside(new, "errors")
        errors = {str(kind): count for kind in kinds if (count := _count(kinds, kind)) is not None}
        found.append(
            Round(
                number,
                read_summary(run) if _begun(run) else None,
                _count(new, "samples"),
                errors,
                _count(_inside(trained, "data"), "conversations"),
                _count(_inside(trained, "training"), "trained_tokens"),
                sum(ledger[job]["seconds"] for job in jobs if job in ledger) / 3600,
            )
        )
    return found


def _begun(run: Path) -> bool:
    return (run / EPISODES).exists() and (run / EPISODES).stat().st_size > 0


def _inside(value: object, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _count(value: Mapping[str, Any], key: str) -> int | None:
    found = value.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def print_rounds(console: Console, rounds: list[Round]) -> None:
    table = plain_table("round", "new", "errors in new", "trained on", "trained tokens", "hours", gap=2)
    for each in rounds:
        errors = ", ".join(
            f"{printable(kind, single_line=True)[:40]} {count:,}"
            for kind, count in sorted(each.errors.items(), key=lambda item: (-item[1], item[0]))
        )
        numbers = [_said(each.new), errors or "-", _said(each.data), _said(each.trained_tokens)]
        table.add_row(str(each.number), *numbers, f"{each.hours:.2f}")
    console.print(table)
    titles = {f: t for each in rounds if each.validation for f, t in each.validation.titles.items()}
    families = [
        family
        for family in titles
        if any(each.summary is not None and family in each.summary.families for each in rounds)
    ]
    scores = plain_table("", *(printable(titles[family], single_line=True) for family in families), gap=2)
    for measure in MEASURES:
        scores.add_row(Text(f"{measure} %", style="bold"))
        for each in rounds:
            scores.add_row(f"  round {each.number}", *(_rate(each, family, measure) for family in families))
    if families:
        console.print()
        console.print(scores)
        what = next(each.summary for each in reversed(rounds) if each.summary is not None)
        note = (
            f"validation: suite {what.suite}; 95 % intervals over tasks; the score of a round chosen by it is biased "
            "upwards. Hours: of each job's last start"
        )
        console.print(Text(printable(note, single_line=True), style="dim"), soft_wrap=True)


def _said(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _rate(each: Round, family: str, measure: str) -> str:
    row = each.summary.families.get(family) if each.summary is not None else None
    if row is None:
        return "-"
    return brief(getattr(row, f"{measure}_rate"), getattr(row, f"{measure}_rate_ci95")).strip()


def to_json(rounds: list[Round]) -> dict[str, Any]:
    """Fractions 0..1."""
    rates = [f"{measure}_rate{end}" for measure in MEASURES for end in ("", "_ci95")]
    return {
        "schema": SCHEMA,
        "rounds": [
            {
                "round": each.number,
                "families": {
                    family: {"n": row.n, **{name: getattr(row, name) for name in rates}}
                    for family, row in (each.summary.families.items() if each.summary is not None else ())
                },
                "new": each.new,
                "errors": dict(each.errors),
                "data": each.data,
                "trained_tokens": each.trained_tokens,
                "hours": round(each.hours, 3),
            }
            for each in rounds
        ],
    }
