"""Write the first line of every output: a sentence with the main number, for example the held-out success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evalharness.results.completeness import Played
from evalharness.results.difference import SIGNIFICANT, Difference, headline
from evalharness.results.html.document import percent
from evalharness.results.score import ESTIMATED, HELD_OUT, POOLED

if TYPE_CHECKING:
    from evalharness.records.summary import Estimate, Scores, Summary
    from evalharness.results.comparison import Comparison
    from evalharness.results.sweep import Sweep

TOTALS = {HELD_OUT: "held-out", ESTIMATED: "held-out, estimated", POOLED: "pooled"}
"""Name of a score over several families -> its title in tables and sentences."""


def p_value(p: float) -> str:
    """Return p with three decimals; `<.001` for a smaller p."""
    return "<.001" if p < 0.001 else f"{p:.3f}"


def rate_in_words(score: Scores | Estimate) -> str:
    """Return the success rate with its interval: `36.5 % [31.2, 42.1]`."""
    rate, _, limits = percent(score.success_rate, score.success_rate_ci95).partition(" ")
    return f"{rate} % {limits}"


def answer_of_run(summary: Summary, titles: Mapping[str, str]) -> str:
    """Return a sentence with the held-out success, or else the estimated, the pooled, or each family's success."""
    if score := summary.held_out:
        return f"held-out success {rate_in_words(score)}, {score.n} tasks"
    if estimate := summary.held_out_estimate:
        return (
            f"held-out success {rate_in_words(estimate)}, estimated from {estimate.n} of "
            f"{estimate.stands_for} tasks"
        )
    if pooled := summary.pooled:
        families = len(summary.families) - len(summary.scores or {})
        return (
            f"success {rate_in_words(pooled)}, {pooled.n} tasks of {families} families pooled; "
            "this is not the held-out score"
        )
    done, wanted = (
        sum(getattr(row, name) for row in summary.families.values())
        for name in ("episodes", "episodes_selected")
    )
    if done < wanted and (len(summary.families) > 1 or not done):
        return f"no score yet: {done} of {wanted} episodes are played"
    sentences = []
    for family, row in summary.families.items():
        names = (summary.scores or {}).get(family)
        tasks = Played(row.n, row.expected, row.episodes, summary.samples).description
        sentences.append(
            f"{titles.get(family, family)} {names.success if names else 'success'} {rate_in_words(row)}, {tasks}"
        )
    return "; ".join(sentences) + (f"; {wanted - done} episodes are still to play" if done < wanted else "")


def difference_in_words(d: Difference, titles: Mapping[str, str]) -> str:
    """Return the difference with its interval: `held-out success +8.2 points [3.1, 13.2]`."""
    change, _, limits = d.points.partition(" ")
    name, _, how = (TOTALS.get(d.family) or titles.get(d.family, d.family)).partition(", ")
    return f"{name} {d.measure}{f' ({how})' if how else ''} {change} points {limits}"


def missing_evidence(d: Difference, comparisons: int = 1) -> str:
    """Explain why a difference is not significant: p values, number of tasks needed, or the detectable difference."""
    if d.p < SIGNIFICANT:
        return f"p {p_value(d.p)} alone, {p_value(d.p_holm)} with Holm's correction for {comparisons} comparisons"
    if (needed := d.tasks_needed) is not None:
        return f"about {int(float(f'{needed:.2g}')):,} tasks would be needed"
    if d.detectable is not None:
        return f"a difference of {100 * d.detectable:.1f} points would have been detected"
    return f"p {p_value(d.p)}"


def headline_of(differences: Sequence[Difference]) -> Difference:
    """Return the test of success in the main score of a comparison (`headline`)."""
    name = headline(differences)
    return next(d for d in differences if d.family == name)


def answer_of_comparison(
    comparison: Comparison, labels: tuple[str, str], titles: Mapping[str, str], comparisons: int = 1
) -> str:
    """Return a sentence that names the better of two runs. `comparisons`: number of comparisons in the command."""
    d = headline_of(comparison.differences)
    if comparison.of_losses:
        return _answer_of_losses(d, labels, comparisons)
    detail = difference_in_words(d, titles)
    if d.p_holm >= SIGNIFICANT:
        missing = missing_evidence(d, comparisons)
        return f"no significant difference between {labels[1]} and {labels[0]}: {detail}; {missing}"
    verdict = "better" if d.difference > 0 else "worse"
    return f"{labels[1]} is {verdict} than {labels[0]}: {detail}, {_p_in_words(d, comparisons)}"


def _p_in_words(d: Difference, comparisons: int) -> str:
    return f"p {p_value(d.p_holm)}" + (f" (Holm, {comparisons} comparisons)" if comparisons > 1 else "")


def _answer_of_losses(d: Difference, labels: tuple[str, str], comparisons: int) -> str:
    """Return a sentence that says which of two models loses less under perturbation."""
    change, _, limits = d.points.partition(" ")
    detail = (
        f"{d.measure} {100 * d.run:+.1f} against {100 * d.baseline:+.1f} points, difference {change} {limits}"
    )
    if d.p_holm >= SIGNIFICANT:
        missing = missing_evidence(d, comparisons)
        return (
            f"{labels[1]} and {labels[0]} do not differ significantly under perturbation: {detail}; {missing}"
        )
    verdict = "less" if d.difference > 0 else "more"
    return f"{labels[1]} loses {verdict} under perturbation than {labels[0]}: {detail}, {_p_in_words(d, comparisons)}"


def answer_of_sweep(sweep: Sweep) -> str:
    """Return a sentence about the model's loss under perturbation."""
    if (d := sweep.change) is None:
        return f"{sweep.model} on {sweep.title}: no perturbed run yet"
    change, _, limits = d.points.partition(" ")
    detail = f"success {100 * d.baseline:.1f} -> {100 * d.run:.1f} %, {change} points {limits}"
    if d.p >= SIGNIFICANT:
        return f"no significant effect of perturbation on {sweep.model}: {detail}; {missing_evidence(d)}"
    verb = "loses" if d.difference < 0 else "gains"
    return f"{sweep.model} {verb} under perturbation: {detail}, p {p_value(d.p)}"
